#include "sevenfold/dataset/data_sources.h"

#include <gmock/gmock.h>

#include "sevenfold/core/error.h"
#include "support/fixtures.h"

namespace sevenfold {
namespace {

using ::testing::HasSubstr;
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
  config.data_prefix = directory / "d1";
  const DataSources sources = open_data(config, request(200, 70));
  EXPECT_EQ(sources.train->sequences(), (SequenceRange{0, 62}));
  EXPECT_EQ(sources.train->num_samples(), 204);
  EXPECT_EQ(sources.valid->sequences(), (SequenceRange{62, 64}));
  EXPECT_EQ(sources.valid->num_samples(), 72);
}

TEST(DataSources, OpenAFilePerSplit) {
  const TemporaryDirectory directory;
  testing::write_d1(directory / "train");
  testing::write_d3(directory / "valid");
  DataConfig config;
  config.train_prefix = directory / "train";
  config.valid_prefix = directory / "valid";
  const DataSources sources = open_data(config, request(8, std::nullopt));
  EXPECT_EQ(sources.train->sequences(), (SequenceRange{0, 64}));
  EXPECT_EQ(sources.valid->index().num_epochs, 1);
  EXPECT_EQ(sources.valid->num_samples(), 8);
}

TEST(DataSources, WithoutShuffleCountOneEpoch) {
  const TemporaryDirectory directory;
  testing::write_d3(directory / "d3");
  DataConfig config;
  config.data_prefix = directory / "d3";
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
  config.train_prefix = directory / "d3";
  EXPECT_THAT([&] { open_data(config, request(8, 8)); },
              ThrowsMessage<ConfigError>(HasSubstr("valid_data_path is not")));
  EXPECT_THAT([&] { open_data(config, request(8, 0)); },
              ThrowsMessage<DataError>(HasSubstr("d3.idx: No such file")));
  testing::write_d7(directory / "d3");
  DataRequest small = request(1, 0);
  small.seq_length = 4;
  EXPECT_THAT([&] { open_data(config, small); },
              ThrowsMessage<DataError>(HasSubstr("token id 32767 at position 2")));
  config.mock_data = true;
  EXPECT_THROW(open_data(config, request(8, 0)), ConfigError);
}

}  // namespace
}  // namespace sevenfold
