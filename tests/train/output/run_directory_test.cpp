#include "sevenfold/train/output/run_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

namespace fs = std::filesystem;

std::string content_of(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

class RunDirectoryTest : public testing::Test {
 protected:
  RunDirectoryTest() : root_(fs::path(testing::TempDir()) / "sevenfold_run_directory") {
    fs::remove_all(root_);
  }
  ~RunDirectoryTest() override { fs::remove_all(root_); }

  void expect_refused(const fs::path& path, Resume resume, const std::string& reason) {
    try {
      RunDirectory::open(path, resume);
      FAIL() << path << " was accepted";
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(reason));
      EXPECT_THAT(error.what(), testing::HasSubstr(path.string()));
      EXPECT_THAT(error.what(), testing::HasSubstr("--out DIR"));
    }
  }

  fs::path root_;
};

TEST_F(RunDirectoryTest, MakesParentsAndLeavesNoTraceOfItsProof) {
  const RunDirectory directory = RunDirectory::open(root_ / "group/user/run", Resume::kAuto);
  EXPECT_TRUE(fs::is_directory(directory.path()));
  EXPECT_TRUE(fs::is_empty(directory.path()));
  EXPECT_EQ(directory.metrics(), root_ / "group/user/run/metrics.jsonl");
}

TEST_F(RunDirectoryTest, WithoutResumeMustBeEmpty) {
  {
    const RunDirectory directory = RunDirectory::open(root_, Resume::kNone);
    std::ofstream(directory.metrics()) << "{}\n";
  }
  expect_refused(root_, Resume::kNone, "is not empty and --resume none starts anew");
  EXPECT_EQ(content_of(root_ / "metrics.jsonl"), "{}\n");
  RunDirectory::open(root_, Resume::kAuto);
}

TEST_F(RunDirectoryTest, RefusesWhatCannotBeWritten) {
  RunDirectory::open(root_, Resume::kAuto);
  std::ofstream(root_ / "file") << "text";
  expect_refused(root_ / "file", Resume::kAuto, "it is not a directory");
  expect_refused(root_ / "file" / "run", Resume::kAuto, "Not a directory");
  expect_refused("/proc/sevenfold-run", Resume::kAuto, "cannot write to the output directory");
  EXPECT_THROW(RunDirectory::open("", Resume::kAuto), ConfigError);
}

TEST_F(RunDirectoryTest, ReplacesTheResolvedConfigurationAsAWhole) {
  const RunDirectory directory = RunDirectory::open(root_, Resume::kAuto);
  directory.write_resolved_config("a: 1\nb: 2\n");
  directory.write_resolved_config("a: 3\n");
  EXPECT_EQ(content_of(directory.resolved_config()), "a: 3\n");
  const auto entries = std::distance(fs::directory_iterator(root_), fs::directory_iterator());
  EXPECT_EQ(entries, 1);  // no partial file is left
}

TEST_F(RunDirectoryTest, BelongsToOneRunAtATime) {
  {
    const RunDirectory first = RunDirectory::open(root_, Resume::kAuto);
    expect_refused(root_, Resume::kAuto, "another run is writing to it");
  }
  EXPECT_NO_THROW(RunDirectory::open(root_, Resume::kAuto)) << "the lock goes with the run";
}

TEST_F(RunDirectoryTest, RemovesTraceAndEventFilesOfAnEarlierRun) {
  const RunDirectory run = RunDirectory::open(root_, Resume::kAuto);
  const fs::path folder = run.path() / "tensorboard";
  fs::create_directory(folder);
  for (const auto& file :
       {run.path() / "trace.json", folder / "events.out.tfevents.1.host.2", folder / "notes.txt"})
    std::ofstream(file) << "earlier";
  run.remove_earlier_results();
  EXPECT_FALSE(fs::exists(run.path() / "trace.json"));
  EXPECT_FALSE(fs::exists(folder / "events.out.tfevents.1.host.2"));
  EXPECT_TRUE(fs::exists(folder / "notes.txt")) << "not ours";
}

}  // namespace
}  // namespace sevenfold
