#include "sevenfold/core/atomic_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

namespace fs = std::filesystem;

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string message_of(const fs::path& path, std::string_view module) {
  try {
    write_file_atomically(path, "text", module);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

class AtomicFile : public testing::Test {
 protected:
  AtomicFile() : root_(fs::path(testing::TempDir()) / "sevenfold_atomic_file") {
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  ~AtomicFile() override { fs::remove_all(root_); }

  fs::path root_;
};

TEST_F(AtomicFile, ReplacesTheWholeText) {
  const std::string bytes(1 << 20, '\0');
  write_file_atomically(root_ / "file", bytes);
  EXPECT_EQ(content_of(root_ / "file"), bytes);
  write_file_atomically(root_ / "file", "short");
  EXPECT_EQ(content_of(root_ / "file"), "short");
  write_file_atomically(root_ / "file", "");
  EXPECT_EQ(content_of(root_ / "file"), "");
  EXPECT_EQ(std::distance(fs::directory_iterator(root_), fs::directory_iterator()), 1)
      << "no partial file is left";
}

// Readers hold either text: the new one is another file under the old one's name.
TEST_F(AtomicFile, LeavesTheOldTextToWhoHasItOpen) {
  write_file_atomically(root_ / "file", "first");
  std::ifstream reader(root_ / "file");
  write_file_atomically(root_ / "file", "second text");
  std::string text;
  reader >> text;
  EXPECT_EQ(text, "first");
}

TEST_F(AtomicFile, TakesANameWithoutAFolder) {
  const fs::path before = fs::current_path();
  fs::current_path(root_);
  write_file_atomically("file", "text");
  fs::current_path(before);
  EXPECT_EQ(content_of(root_ / "file"), "text");
}

TEST_F(AtomicFile, AFailureLeavesEverythingAsItWas) {
  // A folder stands where the file is to go, so the rename fails.
  fs::create_directories(root_ / "taken" / "inside");
  EXPECT_EQ(message_of(root_ / "taken", "train"),
            "train: cannot write " + (root_ / "taken").string() + ": Is a directory");
  EXPECT_FALSE(fs::exists(root_ / "taken.partial"));
  EXPECT_TRUE(fs::exists(root_ / "taken" / "inside"));
  EXPECT_EQ(message_of("/nowhere/file", ""),
            "cannot write /nowhere/file: No such file or directory");
}

TEST_F(AtomicFile, AFullDiskLeavesTheOldText) {
  write_file_atomically(root_ / "file", "old");
  fs::create_symlink("/dev/full", root_ / "file.partial");
  EXPECT_EQ(message_of(root_ / "file", "train"),
            "train: cannot write " + (root_ / "file").string() + ": No space left on device");
  EXPECT_EQ(content_of(root_ / "file"), "old");
  EXPECT_FALSE(fs::is_symlink(root_ / "file.partial"));
}

}  // namespace
}  // namespace sevenfold
