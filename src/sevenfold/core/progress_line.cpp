#include "sevenfold/core/progress_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "sevenfold/core/units.h"

namespace sevenfold {
namespace {

constexpr double kQuietSeconds = 1.0;
constexpr double kTerminalInterval = 0.2;
constexpr double kLogInterval = 30.0;

}  // namespace

ProgressLine::ProgressLine(std::string action)
    : action_(std::move(action)),
      is_terminal_(::isatty(STDERR_FILENO) != 0),
      start_(std::chrono::steady_clock::now()) {}

ProgressLine::~ProgressLine() {
  if (is_terminal_ && shown_at_ > 0.0) fmt::print(stderr, "\n");
}

bool ProgressLine::is_due(double seconds, bool is_end) const {
  if (has_ended_) return false;
  if (is_end || shown_at_ == 0.0) return seconds >= kQuietSeconds;
  return seconds - shown_at_ >= (is_terminal_ ? kTerminalInterval : kLogInterval);
}

std::string ProgressLine::line_of(double seconds, int64_t bytes_done, int64_t bytes_total) const {
  const double rate = static_cast<double>(bytes_done) / seconds;
  const double left = static_cast<double>(bytes_total - bytes_done) / std::max(rate, 1.0);
  return fmt::format(
      "{} {:3}% of {}, {:.1f} MB/s, {}", action_,
      bytes_total > 0 ? 100 * bytes_done / bytes_total : 100, format_bytes(bytes_total), rate / 1e6,
      has_ended_ ? "took " + format_duration(seconds) : format_duration(left) + " left");
}

void ProgressLine::show(int64_t bytes_done, int64_t bytes_total) {
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  const bool is_end = bytes_done >= bytes_total;
  if (!is_due(elapsed.count(), is_end)) return;
  shown_at_ = elapsed.count();
  has_ended_ = is_end;
  const std::string line = line_of(elapsed.count(), bytes_done, bytes_total);
  if (is_terminal_) {
    fmt::print(stderr, "\r\033[K{}", line);
    std::fflush(stderr);
  } else {
    fmt::print(stderr, "{}\n", line);
  }
}

}  // namespace sevenfold
