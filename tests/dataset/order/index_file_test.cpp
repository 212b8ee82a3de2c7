#include "sevenfold/dataset/order/index_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <random>

#include "dataset/golden.h"
#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

using testing::TemporaryDirectory;

SampleIndex some_index(bool shuffle = true) {
  return build_sample_index("test", [](int64_t sequence) { return sequence % 7; }, {0, 100},
                            {.seq_length = 4, .num_samples = 150, .shuffle = shuffle});
}

void expect_equal(const SampleIndex& read, const SampleIndex& written) {
  EXPECT_EQ(read.num_epochs, written.num_epochs);
  EXPECT_EQ(read.tokens_per_epoch, written.tokens_per_epoch);
  EXPECT_EQ(read.separate_final_epoch, written.separate_final_epoch);
  EXPECT_TRUE(std::ranges::equal(read.document_index, written.document_index));
  EXPECT_TRUE(std::ranges::equal(read.starts, written.starts));
  EXPECT_TRUE(std::ranges::equal(read.shuffle_index, written.shuffle_index));
}

TEST(IndexFile, GivesBackWhatWasWritten) {
  const TemporaryDirectory directory;
  for (const bool shuffle : {true, false})
    for (const std::string key : {"", "1234567", "12345678", "a longer key than that"}) {
      const SampleIndex written = some_index(shuffle);
      write_index_file(directory / "a.order", key, written);
      const auto read = read_index_file(directory / "a.order", key);
      ASSERT_TRUE(read.has_value());
      expect_equal(*read, written);
    }
}

TEST(IndexFile, IsNotThereForAnotherKeyOrAMissingFile) {
  const TemporaryDirectory directory;
  write_index_file(directory / "a.order", "key", some_index());
  EXPECT_FALSE(read_index_file(directory / "a.order", "kez"));
  EXPECT_FALSE(read_index_file(directory / "a.order", "keys"));
  EXPECT_FALSE(read_index_file(directory / "b.order", "key"));
  EXPECT_FALSE(read_index_file(directory.path().string(), "key"));
}

TEST(IndexFile, IsNotThereWhenItIsTruncatedAtAnyByteOrHasMore) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a.order";
  write_index_file(path, "key", some_index());
  const std::string whole = testing::read_text(path);
  for (size_t size = 0; size < whole.size(); size += size < 200 ? 1 : 97) {
    testing::write_text(path, whole.substr(0, size));
    ASSERT_FALSE(read_index_file(path, "key")) << size << " bytes";
  }
  testing::write_text(path, whole + std::string(8, '\0'));
  EXPECT_FALSE(read_index_file(path, "key"));
  testing::write_text(path, whole);
  EXPECT_TRUE(read_index_file(path, "key"));
}

TEST(IndexFile, IsNotThereWhenOneBitIsFlipped) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a.order";
  write_index_file(path, "key", some_index());
  const std::string whole = testing::read_text(path);
  std::mt19937 engine(1);
  for (size_t trial = 0; trial < 600; ++trial) {
    std::string damaged = whole;
    // Every byte of the header and the key, then some of the rest.
    const size_t byte = trial < 100 ? trial : engine() % whole.size();
    damaged[byte] = static_cast<char>(damaged[byte] ^ (1 << engine() % 8));
    testing::write_text(path, damaged);
    ASSERT_FALSE(read_index_file(path, "key")) << "byte " << byte;
  }
}

TEST(IndexFile, LeavesNothingWhenItCannotBeWritten) {
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "a.order");  // a rename onto it fails
  EXPECT_THROW(write_index_file(directory / "a.order", "key", some_index()), DataError);
  EXPECT_THROW(write_index_file(directory / "missing/a.order", "key", some_index()), DataError);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory.path()), {}), 1);
}

TEST(IndexFile, IsWrittenBesideLeftoversOfAnEarlierProcessWithThisId) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a.order";
  const auto leftover = [&](int number) {
    return fmt::format("{}.partial-{}-{}", path, ::getpid(), number);
  };
  for (int number = 0; number < 500; ++number) testing::write_text(leftover(number), "half");
  write_index_file(path, "key", some_index());
  EXPECT_TRUE(read_index_file(path, "key"));
  for (int number = 0; number < 500; ++number)
    ASSERT_EQ(testing::read_text(leftover(number)), "half") << "another's, perhaps at work";
}

TEST(IndexFile, TakesOldLeftoversOfKilledWritersAway) {
  namespace fs = std::filesystem;
  const TemporaryDirectory directory;
  const auto make = [&](const std::string& name, std::chrono::hours age) {
    testing::write_text(directory / name, "half");
    fs::last_write_time(directory / name, fs::file_time_type::clock::now() - age);
  };
  make("b.order.partial-1-0", std::chrono::hours(25));
  make("b.order.partial-2-0", std::chrono::hours(1));  // may be at work
  make("text.bin", std::chrono::hours(1000));
  write_index_file(directory / "a.order", "key", some_index());
  EXPECT_FALSE(fs::exists(directory / "b.order.partial-1-0"));
  EXPECT_TRUE(fs::exists(directory / "b.order.partial-2-0"));
  EXPECT_TRUE(fs::exists(directory / "text.bin"));
}

}  // namespace
}  // namespace sevenfold
