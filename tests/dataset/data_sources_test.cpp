#include "sevenfold/dataset/data_sources.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>

#include "dataset/golden.h"
#include "sevenfold/core/error.h"
#include "sevenfold/dataset/blended_source.h"
#include "support/fixtures.h"

namespace sevenfold {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::TemporaryDirectory;
using ::testing::ThrowsMessage;

DataRequest request(int64_t train_samples, std::optional<int64_t> valid_samples) {
  return {.seq_length = 32,
          .vocab_size = 101,
          .train_samples = train_samples,
          .valid_samples = valid_samples};
}

TEST(DataSources, CutOneFileBySplit) {
  const TemporaryDirectory directory;
  testing::write_d1(directory / "d1");
  DataConfig config;
  config.data.prefixes = {directory / "d1"};
  const DataSources sources = open_data(config, request(200, 70));
  EXPECT_EQ(sources.train_text->sequences(), (SequenceRange{0, 62}));
  EXPECT_EQ(sources.train->num_samples(), 204);
  EXPECT_EQ(sources.valid_text->sequences(), (SequenceRange{62, 64}));
  EXPECT_EQ(sources.valid->num_samples(), 72);
}

TEST(DataSources, HaveATestSetWhereTheDataGoesThatFar) {
  const TemporaryDirectory directory;
  testing::write_d1(directory / "d1");
  DataConfig config;
  config.data.prefixes = {directory / "d1"};
  DataRequest wanted = request(8, 0);
  wanted.test_samples = 4;
  const auto has_test = [&](const char* split) {
    config.split = split;
    return open_data(config, wanted).test != nullptr;
  };
  EXPECT_TRUE(has_test("50,25,25"));
  EXPECT_FALSE(has_test("90,10,0"));
  EXPECT_FALSE(has_test("969,30,1")) << "0.064 of a document";
  config.shuffle = false;
  EXPECT_TRUE(has_test("50,25,25"));
  wanted.seq_length = 600;
  EXPECT_FALSE(has_test("70,28,2")) << "no sample fits and none is repeated";
  config = {};
  config.train.prefixes = {directory / "d1"};
  EXPECT_FALSE(has_test("50,25,25"));
  config.test.prefixes = {directory / "d1"};
  wanted.seq_length = 32;
  EXPECT_TRUE(has_test("100"));
}

TEST(DataSources, OpenAFilePerSplit) {
  const TemporaryDirectory directory;
  testing::write_d1(directory / "train");
  testing::write_d3(directory / "valid");
  DataConfig config;
  config.train.prefixes = {directory / "train"};
  config.valid.prefixes = {directory / "valid"};
  const DataSources sources = open_data(config, request(8, std::nullopt));
  EXPECT_EQ(sources.train_text->sequences(), (SequenceRange{0, 64}));
  EXPECT_EQ(sources.valid_text->index().num_epochs, 1);
  EXPECT_EQ(sources.valid->num_samples(), 8);
}

TEST(DataSources, WithoutShuffleCountOneEpoch) {
  const TemporaryDirectory directory;
  testing::write_d3(directory / "d3");
  DataConfig config;
  config.data.prefixes = {directory / "d3"};
  config.split = "1,0,0";
  config.shuffle = false;
  const DataSources sources = open_data(config, request(1000, 0));
  EXPECT_EQ(sources.train->num_samples(), 8);
  EXPECT_EQ(sources.valid, nullptr);
}

TEST(DataSources, NameWhatIsMissingOrDoesNotFit) {
  const TemporaryDirectory directory;
  DataConfig config;
  EXPECT_THAT([&] { open_data(config, request(8, 8)); },
              ThrowsMessage<ConfigError>(HasSubstr("names no training data")));
  config.train.prefixes = {directory / "d3"};
  EXPECT_THAT([&] { open_data(config, request(8, 8)); },
              ThrowsMessage<ConfigError>(HasSubstr("valid_data_path is not")));
  EXPECT_THAT([&] { open_data(config, request(8, 0)); },
              ThrowsMessage<DataError>("dataset: there is no " + directory / "d3.idx" +
                                       "; make it with `sevenfold data prepare --output " +
                                       directory / "d3" + "`, or correct the path"));
  testing::write_d7(directory / "d3");
  DataRequest small = request(1, 0);
  small.seq_length = 4;
  EXPECT_THAT([&] { open_data(config, small); },
              ThrowsMessage<DataError>(HasSubstr("token id 32767 at position 2")));
  config.mock_data = true;
  config.eod_token_id = 101;
  EXPECT_THAT([&] { open_data(config, request(8, 0)); },
              ThrowsMessage<ConfigError>(HasSubstr("token 101, beyond vocab_size=101")));
}

std::string missing_file_error(const BlendConfig& train) {
  DataConfig config;
  config.train = train;
  try {
    open_data(config, request(8, 0));
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

TEST(DataSources, NameTheKeyThatAsksForAMissingFile) {
  EXPECT_EQ(
      missing_file_error({{"a/b"}, {}, "run.yaml:31 train_data_path=a/b"}),
      "dataset: run.yaml:31 train_data_path=a/b: there is no a/b.idx; make it with `sevenfold "
      "data prepare --output a/b`, or correct the path");
  EXPECT_EQ(
      missing_file_error({{"a.bin"}, {}, "run.yaml:31 train_data_path=a.bin"}),
      "dataset: run.yaml:31 train_data_path=a.bin: there is no a.bin.idx; a data set is named "
      "by its prefix: a");
  const TemporaryDirectory directory;
  testing::write_d3(directory / "d3");
  std::filesystem::remove(directory / "d3.bin");
  EXPECT_THAT(missing_file_error({{directory / "d3"}, {}, "here"}),
              HasSubstr("here: there is no " + directory / "d3.bin;"));
}

TEST(DataSources, SayHowAListWithABadWeightWasRead) {
  const std::string hint =
      "`0.5x` is no number, so all words were read as prefixes without weights; write weight "
      "prefix "
      "weight prefix ...";
  EXPECT_THAT(missing_file_error({{"0.5x", "a"}, {}, "run.yaml:9 data_path=0.5x a"}),
              HasSubstr("run.yaml:9 data_path=0.5x a: there is no 0.5x.idx; " + hint));
  EXPECT_THAT(missing_file_error({{"b", "a"}, {}, ""}), Not(HasSubstr("is no number")));
}

void expect_golden_part(const SampleSource* part, const nlohmann::json& entry) {
  ASSERT_EQ(part == nullptr, entry.is_null());
  if (!part) return;
  EXPECT_EQ(part->num_samples(), entry["length"].get<int64_t>());
  testing::expect_array(testing::tokens_then_labels(*part, entry["tokens_then_labels_of_first"]),
                        entry["tokens_then_labels"]);
  if (entry["class"] == "GPTDataset") {
    const auto& index = dynamic_cast<const GptDataset&>(*part).index();
    testing::expect_array(index.shuffle_index, entry["shuffle_index"]);
    return;
  }
  const auto& blended = dynamic_cast<const BlendedSource&>(*part);
  const auto& sets = blended.index().dataset;
  testing::expect_array(std::vector<int64_t>(sets.begin(), sets.end()), entry["dataset_index"]);
  testing::expect_array(blended.index().sample, entry["dataset_sample_index"]);
  std::vector<int64_t> lengths;
  for (const auto& set : blended.sets()) lengths.push_back(set->num_samples());
  EXPECT_EQ(lengths, entry["lengths"].get<std::vector<int64_t>>());
}

TEST(DataSources, BlendAsMegatronDoesFromFilesToTokens) {
  const TemporaryDirectory directory;
  for (const auto& entry : testing::megatron_golden()["blend_end_to_end"]) {
    SCOPED_TRACE(entry["datasets"].dump() + " " + entry["weights"].dump() + " " +
                 entry["sizes"].dump());
    DataConfig config;
    for (const auto& name : entry["datasets"]) {
      testing::open_fixture(directory, name);
      config.data.prefixes.push_back(directory / name);
    }
    if (!entry["weights"].is_null())
      config.data.weights = entry["weights"].get<std::vector<double>>();
    config.split = entry["split"];
    config.loader = LoaderKind::kCyclic;  // may be asked for more than there is
    const auto sizes = entry["sizes"].get<std::vector<int64_t>>();
    DataRequest wanted = request(sizes[0], sizes[1]);
    wanted.seed = entry["seed"];
    wanted.test_samples = sizes[2];
    const DataSources sources = open_data(config, wanted);
    expect_golden_part(sources.train.get(), entry["splits"][0]);
    expect_golden_part(sources.valid.get(), entry["splits"][1]);
    expect_golden_part(sources.test.get(), entry["splits"][2]);
    EXPECT_EQ(sources.train_text != nullptr, entry["splits"][0]["class"] == "GPTDataset");
  }
  EXPECT_EQ(testing::megatron_golden()["blend_end_to_end"].size(), 5U);
}

TEST(DataSources, AFileOfItsOwnIsAskedForAllWhateverItsWeight) {
  const TemporaryDirectory directory;
  testing::write_d1(directory / "d1");
  DataConfig config;
  config.train = {{directory / "d1"}, {0.25}, ""};
  const DataSources sources = open_data(config, request(200, 0));
  ASSERT_NE(sources.train_text, nullptr);
  EXPECT_EQ(sources.train->num_samples(), 212);
}

TEST(DataSources, RepeatASmallSetByEpochs) {
  const TemporaryDirectory directory;
  testing::write_d1(directory / "d1");
  testing::write_d2(directory / "d2");  // 16 tokens: 3 samples of 4
  DataConfig config;
  config.train = {{directory / "d1", directory / "d2"}, {2.0, 2.0}, ""};
  for (const bool shuffle : {true, false}) {
    config.shuffle = shuffle;
    DataRequest wanted = request(20, 0);
    wanted.seq_length = 4;
    const DataSources sources = open_data(config, wanted);
    const auto& blended = dynamic_cast<const BlendedSource&>(*sources.train);
    ASSERT_EQ(blended.sets().size(), 2U);
    EXPECT_EQ(blended.num_samples(), 20);
    EXPECT_EQ(std::count(blended.index().dataset.begin(), blended.index().dataset.end(), 1U), 10);
    EXPECT_GE(blended.sets()[1]->num_samples(), 11);  // 10 and the surplus
  }
}

// 40 sets of tiny weight count one sample each, so a blend of 20 has 60, and the large set gives
// almost all of them: three times its target.
TEST(DataSources, BuildASetForAllThatTheBlendTakes) {
  const TemporaryDirectory directory;
  testing::write_d3(directory / "d3");
  DataConfig config;
  config.train.prefixes.assign(41, directory / "d3");
  config.train.weights.assign(41, 1e-9);
  config.train.weights[0] = 1.0;
  const DataSources sources = open_data(config, request(20, 0));
  const auto& blended = dynamic_cast<const BlendedSource&>(*sources.train);
  EXPECT_EQ(blended.num_samples(), 60);
  const int64_t taken = samples_taken(blended.index(), 41)[0];
  EXPECT_GT(taken, with_surplus(20, 0.005));
  EXPECT_GE(blended.sets()[0]->num_samples(), taken);
}

TEST(DataSources, BlendThreeHundredFiles) {
  const TemporaryDirectory directory;
  testing::write_d3(directory / "d3");
  DataConfig config;
  config.train.prefixes.assign(300, directory / "d3");
  EXPECT_EQ(open_data(config, request(2400, 0)).train->num_samples(), 2400);
  config.train.weights.assign(300, 7.0);
  const DataSources weighted = open_data(config, request(300, 0));
  EXPECT_EQ(dynamic_cast<const BlendedSource&>(*weighted.train).sets().size(), 300U);
}

// 3,000 million tokens: an index of five million samples.
TEST(DataSources, KeepALargeIndexBesideTheDataOrWhereTheExperimentSays) {
  namespace fs = std::filesystem;
  const TemporaryDirectory directory;
  testing::write_d6(directory / "d6");
  DataConfig config;
  config.data.prefixes = {directory / "d6"};
  config.split = "1,0,0";
  DataRequest wanted = request(1'000'000, 0);
  wanted.seq_length = 600;
  const auto num_files = [](const std::string& path) {
    return std::distance(fs::directory_iterator(path), fs::directory_iterator());
  };
  EXPECT_EQ(open_data(config, wanted).train->num_samples(), 4'999'999);
  EXPECT_EQ(num_files(directory / "d6.cache"), 1);
  config.cache_directory = directory / "kept";
  EXPECT_TRUE(open_data(config, wanted).notices.empty());
  EXPECT_EQ(num_files(directory / "kept"), 1);
  config.cache_directory = directory / "d6.bin";  // no folder
  const DataSources sources = open_data(config, wanted);
  EXPECT_EQ(sources.train->num_samples(), 4'999'999);
  EXPECT_THAT(sources.notices, ::testing::ElementsAre(HasSubstr("data_cache_path")));
}

TEST(DataSources, FullValidationReadsEverySampleOfEverySetOnce) {
  const TemporaryDirectory directory;
  testing::write_d1(directory / "d1");
  testing::write_d3(directory / "d3");
  DataConfig config;
  config.train.prefixes = {directory / "d1"};
  config.valid.prefixes = {directory / "d1", directory / "d3"};
  EXPECT_EQ(open_data(config, request(8, std::nullopt)).valid->num_samples(), 78);
  config.valid.weights = {1.0, 1.0};
  EXPECT_THAT([&] { open_data(config, request(8, std::nullopt)); },
              ThrowsMessage<ConfigError>(HasSubstr("so weights cannot be followed")));
}

TEST(DataSources, RefuseABlendThatNoIndexLists) {
  const TemporaryDirectory directory;
  testing::write_d1(directory / "d1");
  DataConfig config;
  config.train = {{directory / "d1", directory / "d1"}, {1.0, 2.0}, ""};
  EXPECT_THAT([&] { open_data(config, request(int64_t{1} << 50, 0)); },
              ThrowsMessage<DataError>(HasSubstr("a blend of 2 data sets: 1,125,899,906,842,624 "
                                                 "samples are more than an index can list "
                                                 "(8,589,934,592 entries)")));
}

TEST(DataSources, RefuseSetsThatRunDry) {
  const TemporaryDirectory directory;
  testing::write_d1(directory / "d1");
  DataConfig config;
  config.train.prefixes = {directory / "d1", directory / "d1"};
  EXPECT_THAT([&] { open_data(config, request(141, 0)); },
              ThrowsMessage<ConfigError>(HasSubstr("training takes 141 samples, but 2 data sets "
                                                   "without weights are read once and hold 140")));
  EXPECT_NO_THROW(open_data(config, request(140, 0)));
}

}  // namespace
}  // namespace sevenfold
