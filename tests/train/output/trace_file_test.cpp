#include "sevenfold/train/output/trace_file.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sevenfold/core/error.h"
#include "support/fixtures.h"

namespace sevenfold {
namespace {

using nlohmann::json;
using testing::TemporaryDirectory;

json events_of(const std::string& path) {
  return json::parse(testing::read_text(path)).at("traceEvents");
}

TEST(TraceFile, IsWholeJsonAfterEveryWrite) {
  const TemporaryDirectory directory;
  const std::string path = directory / "trace.json";
  TraceFile file(path, 2);
  EXPECT_EQ(events_of(path).size(), 6U) << "three names for each rank";
  file.write(0, {});
  EXPECT_EQ(events_of(path).size(), 6U);
  const double now = Timeline::now_s();
  file.write(0, {{"forward 0", TimeSpan::Kind::kWork, now, now + 0.002}});
  EXPECT_EQ(events_of(path).size(), 7U);
  file.write(1, {{"all_reduce dp-cp", TimeSpan::Kind::kInFlight, now, now + 0.5},
                 {"wait: all_reduce dp-cp", TimeSpan::Kind::kWork, now + 0.25, now + 0.5}});
  EXPECT_EQ(events_of(path).size(), 10U);
}

TEST(TraceFile, HasASliceOfWorkAndAPairForWhatIsInFlight) {
  const TemporaryDirectory directory;
  const std::string path = directory / "trace.json";
  TraceFile file(path, 1);
  const double now = Timeline::now_s();
  file.write(0, {{"backward 3", TimeSpan::Kind::kWork, now + 1.0, now + 1.25},
                 {"all_reduce dp", TimeSpan::Kind::kInFlight, now, now + 2.0}});
  const json events = events_of(path);
  const json work = events[3], begin = events[4], end = events[5];
  EXPECT_EQ(work["ph"], "X");
  EXPECT_EQ(work["name"], "backward 3");
  EXPECT_EQ(work["pid"], 0);
  EXPECT_NEAR(work["dur"].get<double>(), 250'000.0, 0.01);  // microseconds
  EXPECT_NEAR(work["ts"].get<double>() - begin["ts"].get<double>(), 1e6, 0.01);
  EXPECT_EQ(begin["ph"], "b");
  EXPECT_EQ(end["ph"], "e");
  EXPECT_EQ(begin["id"], end["id"]);
  EXPECT_NEAR(end["ts"].get<double>() - begin["ts"].get<double>(), 2e6, 0.01);
}

TEST(TraceFile, SaysWhyItCannotBeMade) {
  const TemporaryDirectory directory;
  EXPECT_THROW(TraceFile(directory.path() / "nowhere" / "trace.json", 1), Error);
}

}  // namespace
}  // namespace sevenfold
