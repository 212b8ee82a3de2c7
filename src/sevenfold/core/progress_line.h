#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace sevenfold {

// How far work on bytes is, on stderr, with rate and time left: on a terminal one line, rewritten;
// elsewhere a line every half minute. Nothing for work that takes less than a second.
class ProgressLine {
 public:
  // `action`: what is done, "tokenizing".
  explicit ProgressLine(std::string action);
  ~ProgressLine();  // ends the line of a terminal
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(int64_t bytes_done, int64_t bytes_total);

 private:
  bool is_due(double seconds, bool is_end) const;
  std::string line_of(double seconds, int64_t bytes_done, int64_t bytes_total) const;

  std::string action_;
  bool is_terminal_;
  std::chrono::steady_clock::time_point start_;
  double shown_at_ = 0.0;  // seconds since the start; 0: not yet
  bool has_ended_ = false;
};

}  // namespace sevenfold
