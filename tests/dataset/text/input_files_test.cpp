#include "sevenfold/dataset/text/input_files.h"

#include <gmock/gmock.h>

#include "sevenfold/core/error.h"
#include "support/fixtures.h"

namespace sevenfold {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TemporaryDirectory;
using ::testing::ThrowsMessage;
using testing::write_text;

// Two texts, a binary file, a symbolic link, and a folder with one more text.
class InputFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    write_text(directory_ / "b", "bb");
    write_text(directory_ / "a", "a");
    write_text(directory_ / "a.dat", std::string("\0\0", 2));
    std::filesystem::create_symlink("a", directory_ / "a.u8");
    std::filesystem::create_directory(directory_ / "folder");
    write_text(directory_ / "folder/z", "zzz");
  }
  std::vector<std::string> names(const std::vector<std::string>& globs) const {
    std::vector<std::string> found;
    for (const InputFile& file : find_input_files(globs).files)
      found.push_back(std::filesystem::path(file.path).lexically_relative(directory_.path()));
    return found;
  }

  TemporaryDirectory directory_;
};

TEST_F(InputFilesTest, SkipFoldersAndBinariesAndCountALinkedFileOnce) {
  EXPECT_THAT(names({directory_ / "*"}), ElementsAre("a", "b"));
  const InputFiles found = find_input_files({directory_ / "*"});
  EXPECT_THAT(found.skipped,
              ElementsAre(directory_ / "a.dat (binary)", directory_ / "folder (directory)"));
  EXPECT_EQ(found.num_bytes(), 3);
}

TEST_F(InputFilesTest, KeepTheOrderOfTheGlobs) {
  EXPECT_THAT(names({directory_ / "folder/*", directory_ / "b", directory_ / "*"}),
              ElementsAre("folder/z", "b", "a"));
}

TEST_F(InputFilesTest, LeaveOutWhatAnExclusionNames) {
  EXPECT_THAT(names({"!" + (directory_ / "*.dat"), directory_ / "*", "!b"}), ElementsAre("a"));
  EXPECT_TRUE(find_input_files({directory_ / "*", "!*.dat", "!folder"}).skipped.empty());
}

TEST_F(InputFilesTest, TakeAnExistingNameAsItStands) {
  write_text(directory_ / "b[1]", "x");
  write_text(directory_ / "b1", "y");
  EXPECT_THAT(names({directory_ / "b[1]"}), ElementsAre("b[1]"));
}

TEST_F(InputFilesTest, NameInputsThatAreNoText) {
  EXPECT_THAT([&] { names({directory_ / "nothing*"}); },
              ThrowsMessage<ConfigError>(HasSubstr("no file matches input")));
  EXPECT_THAT([&] { names({directory_ / "folder"}); },
              ThrowsMessage<ConfigError>(HasSubstr("directory")));
  EXPECT_THAT([&] { names({directory_ / "a.dat"}); },
              ThrowsMessage<ConfigError>(HasSubstr("binary")));
  EXPECT_THAT([&] { names({directory_ / "*.dat"}); },
              ThrowsMessage<ConfigError>(HasSubstr("no text file (1 skipped")));
  EXPECT_THAT([&] { names({"!" + (directory_ / "a")}); },
              ThrowsMessage<ConfigError>(HasSubstr("no input files are named")));
  std::filesystem::create_symlink("gone", directory_ / "dangling");
  EXPECT_THAT([&] { names({directory_ / "d*"}); },
              ThrowsMessage<ConfigError>(HasSubstr("dangling: No such file")));
}

}  // namespace
}  // namespace sevenfold
