#include "sevenfold/dataset/indexed/indexed_writer.h"

#include <gmock/gmock.h>

#include "sevenfold/core/error.h"
#include "support/fixtures.h"

namespace sevenfold {
namespace {

using testing::read_text;
using testing::TemporaryDirectory;

void write_all(const std::string& prefix, const testing::Documents& documents, ElementType type) {
  IndexedWriter writer(prefix, type);
  for (const auto& document : documents) {
    // In two pieces: a document may come in as many as its source likes.
    const std::span<const int64_t> tokens(document);
    writer.append(tokens.first(tokens.size() / 2));
    writer.append(tokens.subspan(tokens.size() / 2));
    writer.end_document();
  }
  writer.finish();
}

size_t count_files(const TemporaryDirectory& directory) {
  return static_cast<size_t>(
      std::distance(std::filesystem::directory_iterator(directory.path()), {}));
}

TEST(IndexedWriter, WritesTheBytesOfTheFormat) {
  const TemporaryDirectory directory;
  const testing::Documents documents = {{1, 2, 3}, {}, {65535, 0}, {7}};
  for (const uint8_t code : {uint8_t{8}, uint8_t{4}}) {
    write_all(directory / "ours", documents, static_cast<ElementType>(code));
    testing::write_indexed(directory / "expected", documents, code);
    EXPECT_EQ(read_text(directory / "ours.idx"), read_text(directory / "expected.idx"));
    EXPECT_EQ(read_text(directory / "ours.bin"), read_text(directory / "expected.bin"));
  }
  EXPECT_EQ(count_files(directory), 4U);
}

TEST(IndexedWriter, StreamsMoreThanItsBuffers) {
  const TemporaryDirectory directory;
  const std::vector<int64_t> tokens(700'001, 42);
  {
    IndexedWriter writer(directory / "long", ElementType::kU16);
    for (int i = 0; i < 3; ++i) writer.append(tokens);
    writer.end_document();
    for (int i = 0; i < 200'000; ++i) writer.end_document();
    writer.finish();
  }
  const IndexedDataset data(directory / "long");
  EXPECT_EQ(data.sequence_length(0), 3 * 700'001);
  EXPECT_EQ(data.num_sequences(), 200'001);
}

TEST(IndexedWriter, ChoosesTheTypeByTheVocabulary) {
  EXPECT_EQ(element_type_for(257), ElementType::kU16);
  EXPECT_EQ(element_type_for(65499), ElementType::kU16);
  EXPECT_EQ(element_type_for(65500), ElementType::kI32);
}

TEST(IndexedWriter, LeavesNothingWithoutFinishAndKeepsOlderFiles) {
  const TemporaryDirectory directory;
  write_all(directory / "x", {{1}}, ElementType::kU16);
  const std::string before = read_text(directory / "x.bin");
  {
    IndexedWriter writer(directory / "x", ElementType::kU16);
    writer.append(std::vector<int64_t>(2'000'000, 5));
  }
  EXPECT_EQ(read_text(directory / "x.bin"), before);
  EXPECT_EQ(count_files(directory), 2U);
}

TEST(IndexedWriter, MakesDirectoriesAndNamesAPlaceThatCannotBe) {
  const TemporaryDirectory directory;
  write_all(directory / "a/b/x", {{1}}, ElementType::kU16);
  EXPECT_EQ(IndexedDataset(directory / "a/b/x").num_tokens(), 1);
  testing::write_text(directory / "file", "");
  EXPECT_THROW(IndexedWriter(directory / "file/x", ElementType::kU16), ConfigError);
  EXPECT_THROW(IndexedWriter("/proc/no/x", ElementType::kU16), ConfigError);
}

}  // namespace
}  // namespace sevenfold
