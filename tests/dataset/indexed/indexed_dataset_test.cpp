#include "sevenfold/dataset/indexed/indexed_dataset.h"

#include <gmock/gmock.h>

#include <cstring>

#include "sevenfold/core/error.h"
#include "support/fixtures.h"

namespace sevenfold {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::read_text;
using testing::TemporaryDirectory;
using ::testing::ThrowsMessage;
using testing::write_text;

std::vector<int64_t> read_sequence(const IndexedDataset& data, int64_t sequence) {
  std::vector<int64_t> tokens(static_cast<size_t>(data.sequence_length(sequence)));
  data.read(sequence, 0, tokens);
  return tokens;
}

// D2 with one field of its index overwritten. 7 sequences: lengths at 34, positions at 62,
// documents at 118.
class CorruptIndex : public ::testing::Test {
 protected:
  void SetUp() override { testing::write_d2(prefix_); }

  template <typename T>
  void overwrite(size_t byte, T value) {
    std::string idx = read_text(prefix_ + ".idx");
    std::memcpy(idx.data() + byte, &value, sizeof(T));
    write_text(prefix_ + ".idx", idx);
  }
  void expect_error(const std::string& part) const {
    EXPECT_THAT([&] { IndexedDataset data(prefix_); }, ThrowsMessage<DataError>(HasSubstr(part)));
  }

  TemporaryDirectory directory_;
  std::string prefix_ = directory_ / "d2";
};

TEST(IndexedDataset, ReadsDocumentsAndEmptyOnes) {
  const TemporaryDirectory directory;
  testing::write_d2(directory / "d2");
  const IndexedDataset data(directory / "d2");
  EXPECT_EQ(data.num_sequences(), 7);
  EXPECT_EQ(data.num_documents(), 7);
  EXPECT_EQ(data.num_tokens(), 16);
  EXPECT_THAT(read_sequence(data, 0), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(read_sequence(data, 1), ElementsAre());
  EXPECT_THAT(read_sequence(data, 5), ElementsAre(9, 10, 11, 12, 13, 14, 15));
  std::vector<int64_t> middle(3);
  data.read(5, 2, middle);
  EXPECT_THAT(middle, ElementsAre(11, 12, 13));
}

TEST(IndexedDataset, WidensTheTopIdsOfU16) {
  const TemporaryDirectory directory;
  testing::write_d7(directory / "d7");
  EXPECT_THAT(read_sequence(IndexedDataset(directory / "d7"), 0),
              ElementsAre(0, 1, 32767, 32768, 65534, 65535));
}

TEST(IndexedDataset, ReadsPast32BitOffsets) {
  const TemporaryDirectory directory;
  testing::write_d5(directory / "d5");
  const IndexedDataset data(directory / "d5");
  EXPECT_EQ(data.num_tokens(), 1'200'000'004);
  EXPECT_THAT(read_sequence(data, 1), ElementsAre(11, 22, 33, 44));
  std::vector<int64_t> last(2, -1);
  data.read(0, 1'199'999'998, last);
  EXPECT_THAT(last, ElementsAre(0, 0));
}

TEST(IndexedDataset, CountsMoreThan32BitsOfTokens) {
  const TemporaryDirectory directory;
  testing::write_d6(directory / "d6");
  EXPECT_EQ(IndexedDataset(directory / "d6").num_tokens(), 3'000'000'000);
}

TEST(IndexedDataset, ReadsEveryIntegerType) {
  const TemporaryDirectory directory;
  const std::string prefix = directory / "x";
  struct Case {
    uint8_t code;
    std::string bin;
    std::vector<int64_t> tokens;
  };
  const std::string ff8(8, '\xff');
  const std::vector<Case> cases = {
      {1, "\xff\x01", {255, 1}},
      {2, "\xff\x01", {-1, 1}},
      {3, std::string("\xff\xff\x01\x02", 4), {-1, 513}},
      {4, std::string("\xfe\xff\xff\xff\x01\0\0\0", 8), {-2, 1}},
      {5, ff8 + std::string("\0\0\0\0\x01\0\0\0", 8), {-1, int64_t{1} << 32}},
      {8, std::string("\xff\xff\x01\x02", 4), {65535, 513}}};
  testing::write_indexed(prefix, {{1, 2}});
  const std::string idx = read_text(prefix + ".idx");
  for (const Case& example : cases) {
    std::string head = idx;
    head[17] = static_cast<char>(example.code);
    write_text(prefix + ".idx", head);
    write_text(prefix + ".bin", example.bin);
    EXPECT_EQ(read_sequence(IndexedDataset(prefix), 0), example.tokens) << int{example.code};
  }
}

TEST(IndexedDataset, ReadsAnIndexWithModes) {
  const TemporaryDirectory directory;
  testing::write_d2(directory / "d2");
  write_text(directory / "d2.idx", read_text(directory / "d2.idx") + std::string(7, '\1'));
  EXPECT_EQ(IndexedDataset(directory / "d2").num_tokens(), 16);
}

TEST(IndexedDataset, OpensAFileOfNoSequences) {
  const TemporaryDirectory directory;
  testing::write_indexed(directory / "none", {});
  EXPECT_EQ(IndexedDataset(directory / "none").num_tokens(), 0);
}

TEST(IndexedDataset, NamesAMissingFile) {
  const TemporaryDirectory directory;
  const std::string prefix = directory / "missing";
  EXPECT_THAT([&] { IndexedDataset data(prefix); },
              ThrowsMessage<DataError>(HasSubstr(prefix + ".idx: No such file")));
  testing::write_d2(prefix);
  EXPECT_THAT([&] { IndexedDataset data(prefix + ".bin"); },
              ThrowsMessage<DataError>(HasSubstr("named by its prefix: " + prefix)));
  std::filesystem::remove(prefix + ".bin");
  EXPECT_THAT([&] { IndexedDataset data(prefix); },
              ThrowsMessage<DataError>(HasSubstr(prefix + ".bin: No such file")));
  std::filesystem::create_directory(prefix + ".bin");
  EXPECT_THAT([&] { IndexedDataset data(prefix); },
              ThrowsMessage<DataError>(HasSubstr("not a regular file")));
}

TEST_F(CorruptIndex, NamesTheWrongHeaderField) {
  overwrite<char>(0, 'X');
  expect_error("does not start with MMIDIDX");
  overwrite<char>(0, 'M');
  overwrite<uint64_t>(9, 2);
  expect_error("version 2 at byte 9");
  overwrite<uint64_t>(9, 1);
  overwrite<uint8_t>(17, 9);
  expect_error("dtype code 9");
  overwrite<uint8_t>(17, 7);
  expect_error("f32 values");
}

TEST_F(CorruptIndex, RefusesCountsThatDoNotFitTheFile) {
  overwrite<uint64_t>(18, 8);
  expect_error("do not fit 8 sequences");
  overwrite<uint64_t>(18, uint64_t{1} << 62);  // times 12 it would wrap to 0
  expect_error("truncated or corrupt");
  overwrite<uint64_t>(18, 7);
  overwrite<uint64_t>(26, 0);
  expect_error("0 document entries");
  overwrite<uint64_t>(26, uint64_t{1} << 61);
  expect_error("truncated or corrupt");
}

TEST_F(CorruptIndex, RefusesLengthsAndPositionsThatContradict) {
  overwrite<int32_t>(34, -5);
  expect_error("sequence 0 has length -5");
  overwrite<int32_t>(34, 4);
  expect_error("sequence 1 starts at byte 10, but the lengths before it end at byte 8");
  overwrite<int32_t>(34, 5);
  overwrite<int64_t>(62 + 8 * 6, -2);
  expect_error("sequence 6 starts at byte -2");
}

TEST_F(CorruptIndex, RefusesADocumentTableThatDoesNotCoverTheSequences) {
  overwrite<int64_t>(118, 1);
  expect_error("document 0 starts at sequence 1");
  overwrite<int64_t>(118, 0);
  overwrite<int64_t>(118 + 8 * 3, 1);
  expect_error("document 3 starts at sequence 1, after 2");
  overwrite<int64_t>(118 + 8 * 3, 3);
  overwrite<int64_t>(118 + 8 * 7, 6);
  expect_error("ends at sequence 6, but there are 7");
}

TEST_F(CorruptIndex, RefusesABinOfAnotherSize) {
  const std::string bin = read_text(prefix_ + ".bin");
  write_text(prefix_ + ".bin", bin.substr(0, bin.size() - 1));
  expect_error("has 31 bytes, but sequence 6 of its index ends at byte 32");
  write_text(prefix_ + ".bin", bin + "x");
  expect_error("its index accounts for 32");
  write_text(prefix_ + ".bin", "");
  expect_error("has 0 bytes");
}

TEST_F(CorruptIndex, RefusesEveryTruncatedIndex) {
  const std::string idx = read_text(prefix_ + ".idx");
  for (size_t size = 0; size < idx.size(); ++size) {
    write_text(prefix_ + ".idx", idx.substr(0, size));
    EXPECT_THROW(IndexedDataset data(prefix_), DataError) << size;
  }
  write_text(prefix_ + ".idx", idx + "x");
  expect_error("truncated or corrupt");
}

// Whatever one byte of the index becomes: it is refused, or what it says can be read.
TEST_F(CorruptIndex, SurvivesEveryFlippedBit) {
  const std::string idx = read_text(prefix_ + ".idx");
  int num_opened = 0;
  for (size_t byte = 0; byte < idx.size(); ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = idx;
      flipped[byte] = static_cast<char>(flipped[byte] ^ (1 << bit));
      write_text(prefix_ + ".idx", flipped);
      try {
        const IndexedDataset data(prefix_);
        for (int64_t s = 0; s < data.num_sequences(); ++s) read_sequence(data, s);
        ++num_opened;
      } catch (const DataError&) {
      }
    }
  }
  // What still opens: another two-byte type (i16), and document starts that still rise.
  EXPECT_GT(num_opened, 0);
  EXPECT_LT(num_opened, 16);
}

TEST(IndexedDataset, NamesTheTokenBeyondTheVocabulary) {
  const TemporaryDirectory directory;
  testing::write_indexed(directory / "x", {{1, 2}, {3, 4, 300}});
  const IndexedDataset data(directory / "x");
  EXPECT_NO_THROW(check_token_ids(data, data.all_sequences(), 301));
  EXPECT_NO_THROW(check_token_ids(data, {0, 1}, 257));
  EXPECT_THAT(
      [&] { check_token_ids(data, data.all_sequences(), 257); },
      ThrowsMessage<DataError>(HasSubstr(
          "x.bin: document 1 holds token id 300 at position 2, outside the vocabulary of 257")));
}

}  // namespace
}  // namespace sevenfold
