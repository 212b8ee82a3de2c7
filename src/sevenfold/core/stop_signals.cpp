#include "sevenfold/core/stop_signals.h"

#include <unistd.h>

#include <atomic>
#include <string_view>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

// A signal handler gets no argument of ours, so these are the process's.
std::atomic<bool> installed{false};
std::atomic<bool> stop{false};
std::atomic<int> num_signals{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free,
              "handlers may touch only lock-free atomics");

// Calls only what POSIX allows in a handler.
void on_signal(int signal) {
  stop.store(true);
  if (num_signals.fetch_add(1) > 0) ::_exit(128 + signal);
  if (signal != SIGINT) return;
  constexpr std::string_view kMessage = "\nstopping; interrupt again to leave at once\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kMessage.data(), kMessage.size());
}

}  // namespace

StopSignals::StopSignals() {
  SEVENFOLD_CHECK(!installed.exchange(true), "StopSignals exists already");
  stop.store(false);
  num_signals.store(0);
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;  // reads and waits under way go on
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, &interrupt_before_);
  ::sigaction(SIGTERM, &action, &terminate_before_);
}

StopSignals::~StopSignals() {
  ::sigaction(SIGINT, &interrupt_before_, nullptr);
  ::sigaction(SIGTERM, &terminate_before_, nullptr);
  installed.store(false);
}

bool StopSignals::stop_requested() const {
  return stop.load();
}

}  // namespace sevenfold
