#include "sevenfold/checkpoint/folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sevenfold/core/error.h"
#include "support/fixtures.h"

namespace sevenfold {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::TemporaryDirectory;

void publish(const fs::path& folder, int64_t step, const std::string& text = "",
             const Retention& retention = {}) {
  begin_checkpoint(folder, step);
  testing::write_text(partial_folder(folder, step) / "index.json", text);
  publish_checkpoint(folder, step, retention);
}

TEST(CheckpointFolder, NamesSteps) {
  EXPECT_EQ(step_folder_name(100), "step-00000100");
  EXPECT_EQ(step_folder_name(1'000'000'000), "step-1000000000");
  EXPECT_EQ(step_of_folder("x/step-00000100"), 100);
  EXPECT_EQ(step_of_folder("step-1000000000"), 1'000'000'000);
  for (const char* name : {"step-100", "step-00000100.partial", "step--0000001", "step-", "latest",
                           "step-99999999999999999999"})
    EXPECT_FALSE(step_of_folder(name)) << name;
}

TEST(CheckpointFolder, ShowsWholeCheckpointsOnly) {
  const TemporaryDirectory directory;
  const fs::path folder = directory.path() / "checkpoints";
  EXPECT_TRUE(steps_in(folder).empty());
  EXPECT_FALSE(newest_checkpoint(folder));
  publish(folder, 9);
  publish(folder, 10);
  begin_checkpoint(folder, 11);
  EXPECT_EQ(steps_in(folder), (std::vector<int64_t>{9, 10}));
  EXPECT_EQ(newest_checkpoint(folder), folder / "step-00000010");
  EXPECT_EQ(testing::read_text(folder / "latest"), "step-00000010\n");
}

// Field case B26: what a killed run leaves is not in the way.
TEST(CheckpointFolder, WritesOverLeftovers) {
  const TemporaryDirectory directory;
  const fs::path folder = directory.path();
  for (const char* name : {"step-00000003.partial", "step-00000001.removed"}) {
    fs::create_directory(folder / name);
    testing::write_text(folder / name / "rank-00000.safetensors", "half");
  }
  testing::write_text(folder / "notes", "mine");
  publish(folder, 3);
  EXPECT_EQ(steps_in(folder), (std::vector<int64_t>{3}));
  EXPECT_FALSE(fs::exists(folder / "step-00000003" / "rank-00000.safetensors"));
  EXPECT_FALSE(fs::exists(folder / "step-00000001.removed"));
  EXPECT_TRUE(fs::exists(folder / "notes"));
}

TEST(CheckpointFolder, ReplacesTheSameStep) {
  const TemporaryDirectory directory;
  publish(directory.path(), 5, "first");
  publish(directory.path(), 5, "second");
  EXPECT_EQ(testing::read_text(directory.path() / "step-00000005" / "index.json"), "second");
  EXPECT_EQ(steps_in(directory.path()), (std::vector<int64_t>{5}));
}

TEST(CheckpointFolder, IsGivenByItsNameOrTheFolderAroundIt) {
  const TemporaryDirectory directory;
  const fs::path folder = directory.path(), four = folder / "step-00000004";
  EXPECT_FALSE(checkpoint_at(folder));
  EXPECT_FALSE(checkpoint_at(four));
  publish(folder, 4);
  publish(folder, 8);
  EXPECT_EQ(checkpoint_at(four), four);
  EXPECT_EQ(checkpoint_at(four.string() + "/"), four);
  EXPECT_EQ(checkpoint_at(folder.string() + "/"), folder / "step-00000008");
  EXPECT_EQ(checkpoint_at(folder, 4), four);
  EXPECT_FALSE(checkpoint_at(folder, 5));
  fs::rename(four, folder / "kept");
  EXPECT_EQ(checkpoint_at(folder / "kept"), folder / "kept") << "whatever its name";
}

// A kill between the two last steps of a save leaves the pointer behind; the newest still counts.
TEST(CheckpointFolder, TakesTheNewestThoughThePointerIsBehind) {
  const TemporaryDirectory directory;
  publish(directory.path(), 5);
  publish(directory.path(), 6);
  testing::write_text(directory.path() / "latest", "step-00000005\n");
  EXPECT_EQ(newest_checkpoint(directory.path()), directory.path() / "step-00000006");
}

void expect_pointer_refused(const fs::path& folder) {
  try {
    newest_checkpoint(folder);
    ADD_FAILURE() << testing::read_text(folder / "latest");
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr((folder / "latest").string()));
    EXPECT_THAT(error.what(), HasSubstr("delete the file to go on from step-00000005"));
  }
}

TEST(CheckpointFolder, RefusesAPointerToNothing) {
  const TemporaryDirectory directory;
  publish(directory.path(), 5);
  for (const char* text : {"", "step-00000007\n", "garbage"}) {
    testing::write_text(directory.path() / "latest", text);
    expect_pointer_refused(directory.path());
  }
  fs::remove(directory.path() / "latest");
  fs::create_directory(directory.path() / "latest");
  expect_pointer_refused(directory.path());
}

TEST(CheckpointFolder, KeepsWhatRetentionSays) {
  const std::vector<int64_t> steps = {10, 20, 30, 40, 50};
  EXPECT_TRUE(steps_to_remove(steps, {}).empty());
  EXPECT_EQ(steps_to_remove(steps, {.keep_latest = 2}), (std::vector<int64_t>{10, 20, 30}));
  EXPECT_EQ(steps_to_remove(steps, {.keep_latest = 9}), std::vector<int64_t>{});
  EXPECT_EQ(steps_to_remove(steps, {.retain_interval = 20}), (std::vector<int64_t>{10, 30}));
  EXPECT_EQ(steps_to_remove(steps, {.keep_latest = 2, .retain_interval = 30}),
            (std::vector<int64_t>{10, 20}));
}

TEST(CheckpointFolder, RemovesEarlierOnesOnceANewOneIsWhole) {
  const TemporaryDirectory directory;
  const Retention retention{.keep_latest = 1};
  for (const int64_t step : {1, 2, 3}) publish(directory.path(), step, "", retention);
  EXPECT_EQ(steps_in(directory.path()), (std::vector<int64_t>{3}));
  begin_checkpoint(directory.path(), 4);
  EXPECT_EQ(steps_in(directory.path()), (std::vector<int64_t>{3}));
}

}  // namespace
}  // namespace sevenfold
