#include "sevenfold/dataset/order/index_cache.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <set>
#include <thread>

#include "dataset/golden.h"
#include "sevenfold/dataset/mock_documents.h"

namespace sevenfold {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TemporaryDirectory;

std::set<std::string> names_in(const fs::path& directory) {
  std::set<std::string> names;
  if (!fs::exists(directory)) return names;
  for (const auto& entry : fs::directory_iterator(directory))
    names.insert(entry.path().filename().string());
  return names;
}

SampleIndex build(const SequenceSource& data, const SampleIndexOptions& options) {
  return build_sample_index(
      data.name(), [&](int64_t sequence) { return data.sequence_length(sequence); },
      data.all_sequences(), options);
}

bool equal(const SampleIndex& left, const SampleIndex& right) {
  return left.num_epochs == right.num_epochs && left.tokens_per_epoch == right.tokens_per_epoch &&
         left.separate_final_epoch == right.separate_final_epoch &&
         std::ranges::equal(left.document_index, right.document_index) &&
         std::ranges::equal(left.starts, right.starts) &&
         std::ranges::equal(left.shuffle_index, right.shuffle_index);
}

class IndexCacheTest : public ::testing::Test {
 protected:
  IndexCacheTest() : data_(testing::open_fixture(directory_, "D1")) {
    cache_ = {.directory = directory_ / "cache",
              .least_entries = 0,
              .notice = [this](const std::string& text) { notices_.push_back(text); }};
  }
  SampleIndex get(const SampleIndexOptions& options) {
    return cached_sample_index(*data_, data_->all_sequences(), options, cache_);
  }
  std::string only_file() const {
    const auto names = names_in(cache_.directory);
    EXPECT_EQ(names.size(), 1U);
    return cache_.directory + "/" + *names.begin();
  }

  TemporaryDirectory directory_;
  std::shared_ptr<const IndexedDataset> data_;
  IndexCache cache_;
  std::vector<std::string> notices_;
  const SampleIndexOptions options_ = {.seq_length = 32, .num_samples = 200};
};

TEST_F(IndexCacheTest, ReadsBackWhatAnEarlierRunBuilt) {
  const SampleIndex built = build(*data_, options_);
  EXPECT_TRUE(equal(get(options_), built));
  const std::string path = only_file();
  const auto written_at = fs::last_write_time(path);
  EXPECT_TRUE(equal(get(options_), built));
  EXPECT_EQ(fs::last_write_time(path), written_at);
  EXPECT_TRUE(notices_.empty());
}

TEST_F(IndexCacheTest, MapsTheFileInsteadOfBuilding) {
  const auto num_maps = [&] {
    const std::string maps = testing::read_text("/proc/self/maps");
    return maps.find(cache_.directory) == std::string::npos ? 0 : 1;
  };
  get(options_);
  EXPECT_EQ(num_maps(), 0);
  const SampleIndex mapped = get(options_);
  EXPECT_EQ(num_maps(), 1);
  fs::remove(only_file());
  EXPECT_TRUE(equal(mapped, build(*data_, options_)));  // lives as long as the index
}

TEST_F(IndexCacheTest, KeepsAFileForEverythingThatTheOrderFollowsFrom) {
  std::vector<SampleIndexOptions> all(8, options_);
  all[1].seq_length = 16;
  all[2].num_samples = 201;
  all[3].num_samples.reset();
  all[4].seed = 1;
  all[5].shuffle = false;
  all[6].drop_last = false;
  all[7].extra_token = false;
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_TRUE(equal(get(all[i]), build(*data_, all[i]))) << i;
    EXPECT_EQ(names_in(cache_.directory).size(), i + 1);
  }
  const auto part = [&] {
    return cached_sample_index(*data_, {0, 50}, options_, cache_).document_index.size();
  };
  EXPECT_EQ(part(), 200U);
  EXPECT_EQ(names_in(cache_.directory).size(), 9U);
}

TEST_F(IndexCacheTest, NoticesThatTheDataHaveChangedUnderTheSameName) {
  get(options_);
  testing::write_d3(directory_ / "D1");
  data_ = std::make_shared<const IndexedDataset>(directory_ / "D1");
  EXPECT_TRUE(equal(get(options_), build(*data_, options_)));
  EXPECT_EQ(names_in(cache_.directory).size(), 2U);
}

TEST_F(IndexCacheTest, BuildsADamagedFileAnew) {
  const SampleIndex built = get(options_);
  const std::string path = only_file();
  const std::string whole = testing::read_text(path);
  std::string flipped = whole;
  flipped[flipped.size() / 2] = static_cast<char>(flipped[flipped.size() / 2] ^ 4);
  for (const std::string& damaged : {whole.substr(0, whole.size() - 1), flipped, std::string()}) {
    testing::write_text(path, damaged);
    EXPECT_TRUE(equal(get(options_), built));
    EXPECT_EQ(testing::read_text(path), whole);
  }
  EXPECT_TRUE(notices_.empty());
}

TEST_F(IndexCacheTest, WritesNothingForSmallDataOrWithoutAFolder) {
  cache_.least_entries = 1000;
  get(options_);
  EXPECT_FALSE(fs::exists(cache_.directory));
  cache_ = {.directory = "", .least_entries = 0};
  EXPECT_TRUE(equal(get(options_), build(*data_, options_)));
  EXPECT_EQ(names_in(directory_.path()).size(), 2U);  // D1.bin and D1.idx
}

TEST_F(IndexCacheTest, BuildsInMemoryWithANoticeWhereNothingCanBeWritten) {
  testing::write_text(directory_ / "file", "");
  cache_.directory = directory_ / "file/cache";
  EXPECT_TRUE(equal(get(options_), build(*data_, options_)));
  EXPECT_THAT(notices_, ElementsAre(HasSubstr("data_cache_path")));
}

TEST_F(IndexCacheTest, ManyWritersAtOnceDoNoHarm) {
  const SampleIndex built = build(*data_, options_);
  std::vector<int> good(8);
  {
    std::vector<std::jthread> threads;
    for (int& count : good)
      threads.emplace_back([&] {
        for (int i = 0; i < 20; ++i) count += equal(get(options_), built) ? 1 : 0;
      });
  }
  EXPECT_THAT(good, ::testing::Each(20));
  EXPECT_EQ(names_in(cache_.directory).size(), 1U);
}

// Kills a writing process at random moments: what is there afterwards is a whole file or none.
TEST_F(IndexCacheTest, AKilledWriterLeavesAWholeFileOrNone) {
  const SampleIndex built = build(*data_, options_);
  for (int round = 0; round < 30; ++round) {
    fs::remove_all(cache_.directory);
    const pid_t child = ::fork();
    if (child == 0) {
      for (;;) {
        get(options_);
        fs::remove_all(cache_.directory);
      }
    }
    ::usleep(static_cast<useconds_t>(200 + 137 * round));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    for (const std::string& name : names_in(cache_.directory)) {
      if (name.ends_with(".order")) {
        EXPECT_GT(testing::read_text(cache_.directory + "/" + name).size(), 5000U);
      }
    }
    EXPECT_TRUE(equal(get(options_), built));
  }
}

}  // namespace
}  // namespace sevenfold
