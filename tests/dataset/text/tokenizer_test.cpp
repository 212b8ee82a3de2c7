#include "sevenfold/dataset/text/tokenizer.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "sevenfold/core/error.h"
#include "support/fixtures.h"

namespace sevenfold {
namespace {

using Json = nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::TemporaryDirectory;
using ::testing::ThrowsMessage;
using testing::write_text;

const std::string kFolder = std::string(SEVENFOLD_SOURCE_DIR) + "/tests/golden/tokenizers/";

std::vector<int64_t> encode(const Tokenizer& tokenizer, const std::string& text) {
  std::vector<int64_t> ids;
  tokenizer.encode(text, ids);
  return ids;
}

// A folder whose tokenizer.json starts as a golden one and is changed by the test.
class TokenizerFile : public ::testing::Test {
 protected:
  Json golden(const std::string& name) const {
    return Json::parse(testing::read_text(kFolder + name + ".json"));
  }
  std::unique_ptr<Tokenizer> open(const Json& json, const TokenizerOptions& options = {}) const {
    write_text(directory_ / "tokenizer.json", json.dump());
    return open_tokenizer(directory_.path().string(), options);
  }
  void expect_refused(const Json& json, const std::string& place, const std::string& what) const {
    EXPECT_THAT([&] { open(json); },
                ThrowsMessage<ConfigError>(AllOf(HasSubstr(place), HasSubstr(what))))
        << place;
  }

  TemporaryDirectory directory_;
};

TEST_F(TokenizerFile, IsRefusedForWhatWouldChangeIdsAndIsNotSupported) {
  const auto changed = [&](const char* pointer, const Json& value, const char* name = "gpt2") {
    Json json = golden(name);
    json[Json::json_pointer(pointer)] = value;
    return json;
  };
  expect_refused(changed("/model/type", "WordPiece"), "tokenizer.model", "model WordPiece");
  expect_refused(changed("/model/dropout", 0.1), "tokenizer.model.dropout", "dropout");
  expect_refused(changed("/model/end_of_word_suffix", "</w>"), "end_of_word_suffix", "a mark");
  expect_refused(changed("/model/fancy", true), "tokenizer.model.fancy", "this setting");
  expect_refused(changed("/normalizer", {{"type", "Lowercase"}}), "tokenizer.normalizer",
                 "normalizer Lowercase");
  expect_refused(changed("/pre_tokenizer", nullptr), "tokenizer.pre_tokenizer", "null");
  expect_refused(changed("/pre_tokenizer", {{"type", "Metaspace"}}), "tokenizer.pre_tokenizer",
                 "pre-tokenizer Metaspace");
  const std::string split = "/pre_tokenizer/pretokenizers/0";
  expect_refused(changed((split + "/behavior").c_str(), "MergedWithNext", "llama3"),
                 "pretokenizers[0].behavior", "MergedWithNext");
  expect_refused(changed((split + "/type").c_str(), "Punctuation", "llama3"), "pretokenizers[0]",
                 "Punctuation");
  expect_refused(changed("/pre_tokenizer/pretokenizers/2", {{"type", "Digits"}}, "llama3"),
                 "pretokenizers[2]", "a step after ByteLevel");
  expect_refused(changed("/added_tokens/0/id", 5), "added_tokens", "has id 5, but");
}

TEST_F(TokenizerFile, IsRefusedForPatternsThatTheEnginesReadDifferently) {
  const auto with_pattern = [&](const char* pattern) {
    Json json = golden("llama3");
    json["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = pattern;
    return json;
  };
  for (const auto& [pattern, problem] : std::initializer_list<std::pair<const char*, const char*>>{
           {"\\w+", "this escape"},
           {"\\p{Greek}", "the property \"Greek\""},
           {"\\p{N}{1,3}+", "a repeat of a repeat"},
           {"a{,3}", "a brace"},
           {"^a", "an anchor"},
           {"(?i)a", "this kind of group"},
           {"(?i:ss)", "(?i:...) around"},
           {"(?i:\xc3\xa4)", "(?i:...) around"},
           {"[a[b]]", "a class within a class"},
           {"[a&&b]", "an intersection"},
           {"\\xe4", "a byte escape"},
           {"a*", "matches an empty text"},
           {"(a", "malformed"}})
    expect_refused(with_pattern(pattern), "", problem);
}

TEST_F(TokenizerFile, IsRefusedWhereItDoesNotFitItself) {
  Json json = golden("gpt2");
  json.erase("added_tokens");
  json["model"]["vocab"].erase("\xc4\xa0");  // the space
  expect_refused(json, "no token for byte 0x20", "would be lost");
  json = golden("gpt2");
  json.erase("added_tokens");  // they would have to follow it
  json["model"]["vocab"]["far"] = 2'000'000'000;
  expect_refused(json, "token \"far\" has id 2000000000", "far above the number of tokens");
  json = golden("gpt2");
  json["model"]["merges"].push_back("zz qq");
  expect_refused(json, "a merge makes or takes \"zz", "not in the vocabulary");
  write_text(directory_ / "tokenizer.json", "{\"model\": ");
  EXPECT_THAT([&] { open_tokenizer(directory_ / "tokenizer.json"); },
              ThrowsMessage<ConfigError>(HasSubstr("is no JSON")));
  write_text(directory_ / "tokenizer.json", "{\"model\": 1e999}");
  EXPECT_THAT([&] { open_tokenizer(directory_ / "tokenizer.json"); },
              ThrowsMessage<ConfigError>(HasSubstr("number overflow")));
  write_text(directory_ / "cut.model", testing::read_text(kFolder + "bpe.model").substr(0, 5000));
  EXPECT_THAT([&] { open_tokenizer(directory_ / "cut.model"); },
              ThrowsMessage<ConfigError>(HasSubstr("is no SentencePiece model")));
}

TEST_F(TokenizerFile, SplitsAsTheStepsSay) {
  // Ids without merges are bytes; a token for "12" tells whether digits stay together.
  Json json = golden("gpt2");
  json["model"]["merges"] = Json::array({Json::array({"1", "2"})});
  json["model"]["vocab"]["12"] = 1500;
  json.erase("added_tokens");
  const auto count = [&](const Json& steps) {
    Json with_steps = json;
    with_steps["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", steps}};
    with_steps["pre_tokenizer"]["pretokenizers"].push_back(
        {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}});
    return encode(*open(with_steps), "12a12").size();
  };
  const auto split = [](const char* kind, const char* pattern, const char* behavior, bool invert) {
    return Json{{"type", "Split"},
                {"pattern", {{kind, pattern}}},
                {"behavior", behavior},
                {"invert", invert}};
  };
  EXPECT_EQ(count(Json::array()), 3U);
  EXPECT_EQ(count(Json::array({{{"type", "Digits"}, {"individual_digits", true}}})), 5U);
  EXPECT_EQ(count(Json::array({{{"type", "Digits"}, {"individual_digits", false}}})), 3U);
  EXPECT_EQ(count(Json::array({split("Regex", "a|1(?=2)", "Isolated", false)})), 5U);
}

TEST_F(TokenizerFile, DropsOrKeepsMatchesAsTheBehaviorSays) {
  Json json = golden("llama3");
  Json& split = json["pre_tokenizer"]["pretokenizers"][0];
  split["behavior"] = "Removed";
  split["pattern"] = {{"String", "."}};
  EXPECT_EQ(encode(*open(json), "a.b..c"), encode(*open_tokenizer(kFolder + "llama3.json"), "abc"));
  split["invert"] = true;
  EXPECT_EQ(encode(*open(json), "a.b..c").size(), 3U);
}

TEST_F(TokenizerFile, NamesTheEndOfDocumentByAFixedRule) {
  Json json = golden("llama3");  // has <|begin|> 1500 and <|endoftext|> 1501
  EXPECT_EQ(open(json)->eod_token_id(), 1501);
  write_text(directory_ / "tokenizer_config.json", "{\"eos_token\": {\"content\": \"<|begin|>\"}}");
  EXPECT_EQ(open(json)->eod_token_id(), 1500);
  EXPECT_EQ(open(json, {.eod_token = "<|endoftext|>"})->eod_token_id(), 1501);
  EXPECT_EQ(open(json, {.eod_token = "!"})->eod_token_id(), json["model"]["vocab"]["!"]);
  EXPECT_THAT([&] { open(json, {.eod_token = "<none>"}); },
              ThrowsMessage<ConfigError>(HasSubstr("\"<none>\" is not in the vocabulary")));
  write_text(directory_ / "tokenizer_config.json", "{\"eos_token\": \"<gone>\"}");
  EXPECT_THAT([&] { open(json); }, ThrowsMessage<ConfigError>(HasSubstr("<gone>")));
  write_text(directory_ / "tokenizer_config.json", "{\"eos_token\": null}");
  json["added_tokens"].erase(1);
  EXPECT_EQ(open(json)->eod_token_id(), std::nullopt);
}

TEST_F(TokenizerFile, AddsTheTemplatesTokensOnlyWhenAsked) {
  const std::vector<int64_t> plain = encode(*open(golden("llama3")), "abc");
  std::vector<int64_t> expected = {1500};
  expected.insert(expected.end(), plain.begin(), plain.end());
  EXPECT_EQ(encode(*open(golden("llama3"), {.add_special_tokens = true}), "abc"), expected);
  Json json = golden("gpt2");
  json["post_processor"] = {{"type", "BertProcessing"}};
  EXPECT_EQ(open(json)->vocab_size(), 1501);
  EXPECT_THAT([&] { open(json, {.add_special_tokens = true}); },
              ThrowsMessage<ConfigError>(HasSubstr("BertProcessing")));
}

TEST(Tokenizer, RefusesTextThatIsNotUtf8) {
  for (const char* file : {"gpt2.json", "bpe.model"}) {
    const auto tokenizer = open_tokenizer(kFolder + file);
    EXPECT_THAT([&] { encode(*tokenizer, "abc\xe2\x82"); },
                ThrowsMessage<DataError>(HasSubstr("not UTF-8 at byte 3")));
    EXPECT_FALSE(encode(*tokenizer, "abc").empty());
  }
}

TEST(Tokenizer, NamesFoldersWithoutOneAndOptionsWithoutUse) {
  const TemporaryDirectory directory;
  EXPECT_THAT([&] { open_tokenizer(directory.path().string()); },
              ThrowsMessage<ConfigError>(HasSubstr("neither tokenizer.json nor tokenizer.model")));
  EXPECT_THAT([] { open_tokenizer("byte", {.eod_token = "</s>"}); },
              ThrowsMessage<ConfigError>(HasSubstr("tokenizer=byte ends documents with id 256")));
  EXPECT_THAT([] { open_tokenizer("byte", {.add_special_tokens = true}); },
              ThrowsMessage<ConfigError>(HasSubstr("no special tokens to add")));
}

TEST(Tokenizer, DecodesIdsOutsideTheVocabularyAndSpecialTokensAsText) {
  const auto bpe = open_tokenizer(kFolder + "gpt2.json");
  EXPECT_EQ(bpe->decode(std::vector<int64_t>{1500, -1, 1501}), "<|endoftext|><-1><1501>");
  const auto pieces = open_tokenizer(kFolder + "bpe.model");
  std::vector<int64_t> ids = encode(*pieces, "a <mask> b\n");
  ids.push_back(*pieces->eod_token_id());
  ids.push_back(99999);
  EXPECT_EQ(pieces->decode(ids), "a <mask> b\n</s><99999>");
}

TEST(Tokenizer, GivesTheSameIdsToThreadsAtTheSameTime) {
  std::istringstream lines(testing::read_text(kFolder + "lines.jsonl"));
  std::vector<std::string> texts;
  for (std::string line; std::getline(lines, line);)
    texts.push_back(Json::parse(line).get<std::string>());
  for (const char* file : {"library.json", "qwen.json", "unigram.model"}) {
    const auto tokenizer = open_tokenizer(kFolder + file);
    std::vector<std::vector<int64_t>> found(4);
    std::vector<std::thread> threads;
    for (auto& ids : found)
      threads.emplace_back([&] {
        for (const std::string& text : texts) tokenizer->encode(text, ids);
      });
    for (std::thread& thread : threads) thread.join();
    for (const auto& ids : found) EXPECT_EQ(ids, found[0]);
    EXPECT_GT(found[0].size(), texts.size());
  }
}

}  // namespace
}  // namespace sevenfold
