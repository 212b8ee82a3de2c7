#include "sevenfold/dist/timeline.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

namespace sevenfold {

double Timeline::now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void Timeline::add(TimeSpan span) {
  const std::lock_guard<std::mutex> lock(mutex_);
  spans_.push_back(std::move(span));
}

void Timeline::add_collective(const std::string& group, std::string_view operation,
                              double in_flight_s, double blocked_s) {
  const double now = now_s();
  const std::string name = fmt::format("{} {}", operation, group);
  add({name, TimeSpan::Kind::kInFlight, now - in_flight_s, now});
  add({"wait: " + name, TimeSpan::Kind::kWork, now - blocked_s, now});
}

std::vector<TimeSpan> Timeline::take() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(spans_, {});
}

WorkSpan::~WorkSpan() {
  if (timeline_ == nullptr) return;
  timeline_->add({std::move(name_), TimeSpan::Kind::kWork, start_s_, Timeline::now_s()});
}

}  // namespace sevenfold
