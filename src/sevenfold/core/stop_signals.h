#pragma once

#include <csignal>

namespace sevenfold {

// While alive, SIGINT and SIGTERM ask for a stop instead of ending the process: the work looks
// between its steps, cleans up and leaves in order. A second signal ends the process at once (exit
// 130 or 143). The handlers from before come back with the destructor. One at a time; made and
// destroyed by the main thread.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // From any thread; may turn true between two calls, so ranks must agree on one rank's answer.
  bool stop_requested() const;

 private:
  struct sigaction interrupt_before_ {};
  struct sigaction terminate_before_ {};
};

}  // namespace sevenfold
