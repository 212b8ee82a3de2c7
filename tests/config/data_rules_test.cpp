// Where the training data comes from, and what is known of its tokens.

#include <gmock/gmock.h>

#include "config/experiment_files.h"
#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

bool refuses(const Config& config, const std::string& key) {
  for (const Unsupported& item : config.unsupported)
    if (item.key == key) return true;
  return false;
}

Config load(std::vector<std::string> words) {
  return load_text(small_llama(), std::move(words));
}

TEST(DataSources, ReadsOnePrefix) {
  const DataConfig data = load({"train_data_path=P", "valid_data_path=[V]"}).data;
  EXPECT_THAT(data.train.prefixes, ElementsAre("P"));
  EXPECT_THAT(data.train.weights, IsEmpty());
  EXPECT_THAT(data.valid.prefixes, ElementsAre("V"));
  EXPECT_TRUE(data.data.empty());
  EXPECT_TRUE(data.test.empty());
}

TEST(DataSources, ReadsBlendsWithAndWithoutWeights) {
  EXPECT_THAT(load({"train_data_path=0.5 A 2 B"}).data.train.weights, ElementsAre(0.5, 2.0));
  EXPECT_THAT(load({"train_data_path=0.5 A 2 B"}).data.train.prefixes, ElementsAre("A", "B"));
  EXPECT_THAT(load({"train_data_path=1.0 P"}).data.train.weights, ElementsAre(1.0));
  const BlendConfig plain = load({"train_data_path=A B"}).data.train;
  EXPECT_THAT(plain.prefixes, ElementsAre("A", "B"));
  EXPECT_THAT(plain.weights, IsEmpty()) << "`A` is not a number";
  EXPECT_THAT(load({"train_data_path=[0.3, my corpus, 0.7, B]"}).data.train.prefixes,
              ElementsAre("my corpus", "B"));
}

// Megatron would look for files called 3 and 1.
TEST(DataSources, RefusesNumbersThatAreNoWeights) {
  EXPECT_EQ(
      rule_of(small_llama(), {"train_data_path=3 A B"}),
      "data.weight config: override train_data_path=3 A B: `3` is a number, but the words are "
      "not weight prefix weight prefix ... (there are 3 words, an odd number); correct the "
      "list (a file of that name: ./3)");
  EXPECT_THAT(rule_of(small_llama(), {"valid_data_path=[1, A, 2x, B]"}),
              HasSubstr("`1` is a number, but the words are not weight prefix weight prefix ... "
                        "(`2x` is no number)"));
  EXPECT_THAT(load({"train_data_path=./3 A"}).data.train.prefixes, ElementsAre("./3", "A"));
}

TEST(DataSources, KnowWhereTheyAreWritten) {
  EXPECT_EQ(load({"train_data_path=1 A"}).data.train.where, "override train_data_path=1 A");
  const Config prepared =
      load_text(small_llama("", "sevenfold: {prepare: {input: ['*.txt'], output: cache/text}}\n"),
                {"train_data_path=null", "vocab_size=257"});
  EXPECT_THAT(prepared.data.data.where, HasSubstr("run.yaml:"));
  EXPECT_THAT(prepared.data.data.where, HasSubstr("sevenfold.prepare="));
}

TEST(DataSources, RefusesASplitThatSaysNothing) {
  EXPECT_EQ(
      rule_of(small_llama(), {"train_data_path=null", "data_path=P", "split=-1,2"}),
      "data.split config: override split=-1,2: a weight is a plain decimal number of at least "
      "0; write three weights like 969,30,1");
  EXPECT_EQ(load({"train_data_path=null", "data_path=P", "split=98,2"}).data.split_where,
            "override split=98,2");
  EXPECT_EQ(load({"train_data_path=null", "data_path=P"}).data.split_where, "");
  EXPECT_EQ(rule_of(small_llama(), {"split=all"}), "") << "cuts nothing";
}

TEST(DataOrder, HasASeedOf32Bits) {
  EXPECT_EQ(rule_of(small_llama(), {"seed=4294967296"}),
            "data.seed config: override seed=4294967296: is above 4294967295, the largest seed of "
            "Megatron's data order; use a smaller one");
  EXPECT_EQ(load({"seed=4294967295"}).run.seed, 4294967295u);
  EXPECT_EQ(load({"seed=4294967296", "sevenfold.shuffle=false"}).run.seed, 4294967296u);
}

TEST(DataSources, LeavesSetsOfWeightZeroOutAndSaysSoOnce) {
  const Config config = load({"train_data_path=0 A 1 B 0.0 C"});
  EXPECT_THAT(config.data.train.prefixes, ElementsAre("B"));
  EXPECT_THAT(config.data.train.weights, ElementsAre(1.0));
  EXPECT_THAT(config.notices,
              Contains(Field(&Notice::text, "train_data_path: left out for their weight 0: A, C"))
                  .Times(1));
  EXPECT_THAT(rule_of(small_llama(), {"train_data_path=0 A"}),
              StartsWith("data.weight config: override train_data_path=0 A: every weight is 0"));
  EXPECT_THAT(rule_of(small_llama(), {"train_data_path=-1 A"}),
              HasSubstr("A has the weight -1; a weight is a number of at least 0"));
  EXPECT_THAT(rule_of(small_llama(), {"train_data_path=1.0e+301 A"}), StartsWith("data.weight "));
}

TEST(DataSources, TakesOneSource) {
  for (const char* word : {"train_data_path=D1", "valid_data_path=V", "test_data_path=T"})
    EXPECT_THAT(rule_of(small_llama(), {"train_data_path=null", "data_path=P", word}),
                StartsWith("data.one_source config: override data_path=P"));
  EXPECT_TRUE(refuses(load({"train_data_path=null"}), "data_path"));
  const Config cut = load({"train_data_path=null", "data_path=P"});
  EXPECT_THAT(cut.data.data.prefixes, ElementsAre("P"));
  EXPECT_EQ(cut.data.split, "969, 30, 1");
  EXPECT_THAT(cut.notices,
              Contains(Field(&Notice::text, HasSubstr("split=null: read as `969, 30, 1`"))));
}

TEST(DataSources, MakesMockDataAsPrimusDoes) {
  const Config config = load({"mock_data=true", "vocab_size=null", "valid_data_path=V"});
  EXPECT_TRUE(config.unsupported.empty());
  EXPECT_TRUE(config.data.mock_data);
  EXPECT_TRUE(config.data.train.empty() && config.data.valid.empty());
  EXPECT_EQ(config.data.split, "1,1,1");
  EXPECT_EQ(config.model.vocab_size, 131072);
  EXPECT_EQ(config.data.eod_token_id, 131071);
  EXPECT_THAT(config.notices,
              Contains(Field(&Notice::text, HasSubstr("mock_data is true"))).Times(2));
  EXPECT_EQ(load({"mock_data=true"}).model.vocab_size, 101) << "a set value is kept";
  EXPECT_EQ(load({"mock_data=true"}).data.eod_token_id, 100);
}

TEST(DataSources, PreparesNoTextForMockData) {
  const Config config =
      load_text(small_llama("", "sevenfold: {prepare: {input: ['*.txt'], output: cache/text}}\n"),
                {"mock_data=true", "train_data_path=null"});
  EXPECT_FALSE(config.data.prepare.has_value());
  EXPECT_THAT(config.notices, Contains(Field(&Notice::text, HasSubstr("reads no files"))));
}

TEST(DataOrder, ReadsLoaderShardingResetsAndCache) {
  const DataConfig plain = load({}).data;
  EXPECT_EQ(plain.loader, LoaderKind::kSingle);
  EXPECT_TRUE(plain.data_sharding);
  EXPECT_FALSE(plain.reset_position_ids || plain.reset_attention_mask);
  EXPECT_EQ(plain.cache_directory, "");
  EXPECT_EQ(plain.surplus, 0.005);
  const DataConfig data =
      load({"dataloader_type=cyclic", "data_sharding=false", "reset_position_ids=true",
            "reset_attention_mask=true", "data_cache_path=c", "mid_level_dataset_surplus=0.1",
            "sevenfold.eod_token_id=0"})
          .data;
  EXPECT_EQ(data.loader, LoaderKind::kCyclic);
  EXPECT_FALSE(data.data_sharding);
  EXPECT_TRUE(data.reset_position_ids && data.reset_attention_mask);
  EXPECT_EQ(data.cache_directory, "c");
  EXPECT_EQ(data.surplus, 0.1);
  EXPECT_THAT(rule_of(small_llama(), {"mid_level_dataset_surplus=-1"}),
              StartsWith("data.surplus "));
}

TEST(DataOrder, WithoutShufflingIsThatOfTheFile) {
  for (const char* word : {"dataloader_type=cyclic", "dataloader_type=single"}) {
    const Config config = load({"sevenfold.shuffle=false", word});
    EXPECT_EQ(config.data.loader, LoaderKind::kSingle) << word;
    EXPECT_FALSE(config.data.shuffle);
    const auto notice = Field(&Notice::text,
                              "override dataloader_type=cyclic: gives way to single, because "
                              "override sevenfold.shuffle=false asks for the file's order");
    EXPECT_THAT(config.notices, Contains(notice).Times(std::string_view(word).ends_with("cyclic")));
  }
}

TEST(DataPadding, IsNamedInTheBlockAlone) {
  EXPECT_FALSE(load({}).data.pad_token_id.has_value());
  EXPECT_EQ(load({"sevenfold.pad_token_id=9"}).data.pad_token_id, 9);
  EXPECT_EQ(load({"sevenfold.pad_token_id=9", "sevenfold.eod_token_id=8"}).data.pad_token_id, 9);
  EXPECT_THAT(rule_of(small_llama(), {"sevenfold.pad_token_id=101"}),
              StartsWith("data.pad config: override sevenfold.pad_token_id=101: beyond "
                         "vocab_size=101; use an id below it"));
  EXPECT_THAT(rule_of(small_llama(), {"sevenfold.pad_token_id=-1"}), StartsWith("data.pad "));
  EXPECT_THAT(rule_of(small_llama(), {"sevenfold.pad_token_id=8", "sevenfold.eod_token_id=8"}),
              StartsWith("data.pad config: override sevenfold.pad_token_id=8: this id ends a "
                         "document; use another"));
  EXPECT_THAT(error_of(small_llama(), {"sevenfold.pad_token_id=x"}),
              HasSubstr("sevenfold.pad_token_id=x is not"));
}

// Loads with a tokenizer of 50 words, end of document 7, and counts its openings.
struct Opened {
  Config config;
  int times = 0;
  std::string type;
  std::string path;
  std::string eod_token;
};

Opened load_with_tokenizer(std::vector<std::string> words, std::optional<int64_t> eod = 7,
                           const std::string& top = "") {
  const ExperimentFiles files;
  files.write("tok/tokenizer.json", "{}");
  Opened opened;
  LoadOptions options;
  options.file = files.write("run.yaml", small_llama("", top));
  options.overrides = std::move(words);
  options.overrides.push_back("tokenizer_model=" + files.path("tok"));
  options.environment = environment_of({});
  options.tokenizer_facts = [&](const TokenizerRequest& request) {
    ++opened.times;
    opened.type = request.type;
    opened.path = request.path;
    opened.eod_token = request.eod_token;
    return TokenizerFacts{.vocab_size = 50, .eod_token_id = eod};
  };
  opened.config = load_config(options);
  return opened;
}

TEST(Tokenizer, IsNotOpenedWhenNothingOfItIsNeeded) {
  EXPECT_EQ(load_with_tokenizer({}).times, 0);
  EXPECT_EQ(load_with_tokenizer({"eod_mask_loss=true", "sevenfold.eod_token_id=3"}).times, 0);
  EXPECT_EQ(load_with_tokenizer({"mock_data=true", "vocab_size=null", "eod_mask_loss=true"}).times,
            0);
  EXPECT_TRUE(load({"tokenizer_model=meta-llama/Llama-2-7b-hf"}).unsupported.empty())
      << "a hub name is nothing where no tokenizer is needed";
}

TEST(Tokenizer, IsOpenedOnceForWhatIsNeeded) {
  const Opened opened = load_with_tokenizer({"vocab_size=null", "eod_mask_loss=true"});
  EXPECT_EQ(opened.times, 1);
  EXPECT_EQ(opened.type, "Llama2Tokenizer");
  EXPECT_THAT(opened.path, ::testing::EndsWith("/tok"));
  EXPECT_TRUE(opened.config.unsupported.empty());
  EXPECT_EQ(opened.config.model.vocab_size, 50);
  EXPECT_EQ(opened.config.data.eod_token_id, 7);
  EXPECT_FALSE(opened.config.data.pad_token_id.has_value());
  const Opened end_only = load_with_tokenizer({"reset_attention_mask=true"});
  EXPECT_EQ(end_only.times, 1);
  EXPECT_EQ(end_only.config.model.vocab_size, 101) << "a set value is kept";
  EXPECT_EQ(end_only.config.data.eod_token_id, 7);
}

TEST(Tokenizer, NeedsAnEndOfDocumentWithinTheVocabulary) {
  EXPECT_THAT([] { load_with_tokenizer({"eod_mask_loss=true"}, std::nullopt); },
              ::testing::ThrowsMessage<ConfigError>(
                  HasSubstr("this tokenizer knows no end of a document, which eod_mask_loss=true "
                            "needs; set sevenfold.eod_token_id")));
  EXPECT_THAT([] { load_with_tokenizer({"eod_mask_loss=true"}, 101); },
              ::testing::ThrowsMessage<ConfigError>(
                  HasSubstr("the end of a document is token 101, beyond vocab_size=101")));
}

TEST(Tokenizer, IsRefusedByNameWhereItIsNeeded) {
  const Config hub = load({"vocab_size=null", "tokenizer_model=meta-llama/Llama-2-7b-hf"});
  ASSERT_TRUE(refuses(hub, "vocab_size"));
  EXPECT_EQ(hub.unsupported[0].text,
            "config: override tokenizer_model=meta-llama/Llama-2-7b-hf: there is no such file or "
            "folder here, and the size of the vocabulary is needed; set vocab_size, or name a "
            "tokenizer.json, a .model file or a folder with one");
  const Config end = load({"eod_mask_loss=true"});
  ASSERT_TRUE(refuses(end, "eod_token_id"));
  EXPECT_THAT(end.unsupported[0].text, HasSubstr("; set sevenfold.eod_token_id, or name"));
  const Config none = load({"vocab_size=null", "tokenizer_model=null"});
  EXPECT_THAT(none.unsupported[0].text, HasSubstr("no tokenizer is named"));
}

TEST(Tokenizer, OfPreparedTextIsTheOneThatPreparesIt) {
  const ExperimentFiles files;
  const std::string model = files.write("my.model", "");
  const std::string top = "sevenfold: {prepare: {input: [a], tokenizer: " + model +
                          ", output: D1, eod_token: <end>}}\n";
  const Opened opened = load_with_tokenizer({"vocab_size=null"}, 7, top);
  EXPECT_EQ(opened.path, model);
  EXPECT_EQ(opened.eod_token, "<end>");
  EXPECT_EQ(opened.config.model.vocab_size, 50);
}

}  // namespace
}  // namespace sevenfold
