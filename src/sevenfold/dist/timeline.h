#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sevenfold {

// A stretch of time of one rank, in seconds of the steady clock.
struct TimeSpan {
  // kWork nests and runs on the rank's thread; kInFlight is a collective between call and end, and
  // may overlap anything.
  enum class Kind : uint8_t { kWork, kInFlight };
  std::string name;
  Kind kind = Kind::kWork;
  double start_s = 0.0;
  double end_s = 0.0;
};

// What one rank did when. Filled by the rank's thread; any thread may take what is there.
class Timeline {
 public:
  static double now_s();

  void add(TimeSpan span);
  // A collective that ends now: its flight, and the wait that blocked the rank as work.
  void add_collective(const std::string& group, std::string_view operation, double in_flight_s,
                      double blocked_s);
  std::vector<TimeSpan> take();

 private:
  std::mutex mutex_;
  std::vector<TimeSpan> spans_;
};

// Adds a span of work from its construction to its end; nothing without a timeline.
class WorkSpan {
 public:
  WorkSpan(Timeline* timeline, std::string name)
      : timeline_(timeline),
        name_(std::move(name)),
        start_s_(timeline != nullptr ? Timeline::now_s() : 0.0) {}
  ~WorkSpan();
  WorkSpan(const WorkSpan&) = delete;
  WorkSpan& operator=(const WorkSpan&) = delete;

 private:
  Timeline* timeline_;
  std::string name_;
  double start_s_;
};

}  // namespace sevenfold
