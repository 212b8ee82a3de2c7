#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace sevenfold::threads {

// What a rank was last in; the rows of the table that a timeout prints.
struct Activity {
  std::string_view group;  // empty: no operation yet
  int64_t sequence = 0;
  std::string_view operation;
  int64_t bytes = 0;
  bool is_waiting = false;
};

// The ranks of one run, as threads of this process: who failed first, who sleeps, who does what.
// All methods may be called from any thread.
class Team {
 public:
  // timeout: of one wait. grace: how long ranks inside compute may take to leave after a failure.
  Team(int64_t num_ranks, std::chrono::milliseconds timeout, std::chrono::milliseconds grace);

  int64_t size() const { return static_cast<int64_t>(seats_.size()); }
  std::chrono::milliseconds timeout() const { return timeout_; }

  // Runs body(rank) in one thread per rank; returns when all have returned. Rethrows the first
  // failure; Aborted exceptions of the others are dropped. Leaves the process with _exit(1) when a
  // rank is still inside compute when the grace after a failure is over. Called once.
  void run(const std::function<void(int64_t)>& body);

  // Registers a failure of `rank` and ends every wait. The first registered one is the run's
  // failure.
  void fail(int64_t rank, std::exception_ptr error);
  bool is_aborted() const { return aborted_.load(); }
  // Throws Aborted after a failure.
  void leave_if_aborted() const;

  // Blocks `rank` until `condition` holds: yields a while, then sleeps. Whoever may make it true
  // calls wake(rank) afterwards; the condition reads only sequentially consistent atomics. Returns
  // false at the deadline. Do not call it with a lock held.
  template <typename Condition>
  bool park(int64_t rank, std::chrono::steady_clock::time_point deadline, Condition condition) {
    for (int turn = 0; turn < kYieldsBeforeSleep; ++turn) {
      if (condition()) return true;
      std::this_thread::yield();
    }
    return sleep(*seats_[rank], deadline, condition);
  }
  void wake(int64_t rank);

  void note(int64_t rank, const Activity& activity);
  bool has_finished(int64_t rank) const { return seats_[rank]->finished.load(); }
  // One line per rank: group, sequence number, operation, bytes, waiting or computing.
  std::string activity_table() const;

 private:
  // Enough for a peer that is about to arrive; short against the cost of a sleep when cores are
  // scarce.
  static constexpr int kYieldsBeforeSleep = 100;

  struct Seat {
    std::mutex mutex;
    std::condition_variable changed;
    std::atomic<bool> asleep{false};
    std::atomic<bool> finished{false};
    mutable std::mutex activity_mutex;
    Activity activity;
  };

  // Either the sleeper's check sees the new state, or the waker sees `asleep` (both are
  // sequentially consistent: store, then load the other's); a waker that sees it passes through the
  // mutex and so cannot notify between the check and the sleep.
  template <typename Condition>
  bool sleep(Seat& seat, std::chrono::steady_clock::time_point deadline, Condition condition) {
    std::unique_lock lock(seat.mutex);
    seat.asleep.store(true);
    const bool holds = seat.changed.wait_until(lock, deadline, condition);
    seat.asleep.store(false);
    return holds;
  }

  void run_rank(int64_t rank, const std::function<void(int64_t)>& body);
  void finish(int64_t rank);
  void wake_all();
  void await_all();
  [[noreturn]] void leave_process() const;

  const std::chrono::milliseconds timeout_;
  const std::chrono::milliseconds grace_;
  std::vector<std::unique_ptr<Seat>> seats_;

  std::atomic<bool> aborted_{false};
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable run_changed_;
  std::exception_ptr first_failure_;
  int64_t first_failing_rank_ = -1;
  int64_t num_running_ = 0;
};

}  // namespace sevenfold::threads
