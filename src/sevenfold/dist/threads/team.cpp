#include "sevenfold/dist/threads/team.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <iterator>

#include "sevenfold/core/error.h"
#include "sevenfold/dist/aborted.h"

namespace sevenfold::threads {

Team::Team(int64_t num_ranks, std::chrono::milliseconds timeout, std::chrono::milliseconds grace)
    : timeout_(timeout), grace_(grace) {
  for (int64_t rank = 0; rank < num_ranks; ++rank) seats_.push_back(std::make_unique<Seat>());
}

void Team::run(const std::function<void(int64_t)>& body) {
  num_running_ = size();
  std::vector<std::thread> ranks;
  ranks.reserve(seats_.size());
  try {
    for (int64_t rank = 0; rank < size(); ++rank) {
      ranks.emplace_back([this, rank, &body] { run_rank(rank, body); });
    }
  } catch (...) {  // no more threads: those that were started must still be waited for
    const auto num_started = static_cast<int64_t>(ranks.size());
    fail(num_started, std::current_exception());
    for (int64_t rank = num_started; rank < size(); ++rank) finish(rank);
  }
  await_all();
  for (std::thread& rank : ranks) rank.join();
  if (first_failure_) std::rethrow_exception(first_failure_);
}

void Team::run_rank(int64_t rank, const std::function<void(int64_t)>& body) {
  try {
    body(rank);
  } catch (...) {
    fail(rank, std::current_exception());  // an Aborted is secondary: fail() keeps the first
  }
  finish(rank);
}

void Team::fail(int64_t rank, std::exception_ptr error) {
  {
    std::lock_guard lock(mutex_);
    if (first_failure_) return;
    first_failure_ = std::move(error);
    first_failing_rank_ = rank;
  }
  aborted_.store(true);
  wake_all();
  run_changed_.notify_all();
}

void Team::leave_if_aborted() const {
  if (!is_aborted()) return;
  std::lock_guard lock(mutex_);
  raise<Aborted>("dist/threads: rank {} has failed; this rank leaves too", first_failing_rank_);
}

void Team::finish(int64_t rank) {
  seats_[rank]->finished.store(true);
  wake_all();  // those who wait for it must learn that it will never come
  std::lock_guard lock(mutex_);
  --num_running_;
  run_changed_.notify_all();
}

void Team::wake(int64_t rank) {
  Seat& seat = *seats_[rank];
  if (!seat.asleep.load()) return;
  { std::lock_guard lock(seat.mutex); }
  seat.changed.notify_all();
}

void Team::wake_all() {
  for (int64_t rank = 0; rank < size(); ++rank) wake(rank);
}

void Team::await_all() {
  std::unique_lock lock(mutex_);
  run_changed_.wait(lock, [this] { return num_running_ == 0 || first_failure_; });
  const bool all_left = run_changed_.wait_for(lock, grace_, [this] { return num_running_ == 0; });
  if (!all_left) leave_process();
}

void Team::leave_process() const {
  std::string reason = "unknown";
  try {
    std::rethrow_exception(first_failure_);
  } catch (const std::exception& error) {
    reason = error.what();
  } catch (...) {
  }
  std::string stuck;
  for (int64_t rank = 0; rank < size(); ++rank) {
    if (!has_finished(rank)) stuck += fmt::format("{}{}", stuck.empty() ? "" : ", ", rank);
  }
  fmt::print(
      stderr,
      "rank {}: {}\ndist/threads: {} ms later these ranks had not left their computation: {}\n{}",
      first_failing_rank_, reason, grace_.count(), stuck, activity_table());
  std::fflush(nullptr);
  // Not exit(): destructors and exit handlers would run under the feet of the ranks that still
  // compute.
  ::_exit(1);
}

void Team::note(int64_t rank, const Activity& activity) {
  Seat& seat = *seats_[rank];
  std::lock_guard lock(seat.activity_mutex);
  seat.activity = activity;
}

std::string Team::activity_table() const {
  std::string table = fmt::format("{:>6}  {:<12} {:>8}  {:<16} {:>14}  {}\n", "rank", "group",
                                  "number", "operation", "bytes", "state");
  for (int64_t rank = 0; rank < size(); ++rank) {
    const Seat& seat = *seats_[rank];
    std::lock_guard lock(seat.activity_mutex);
    const Activity& last = seat.activity;
    const std::string_view state = seat.finished.load() ? "finished"
                                   : last.is_waiting    ? "waiting"
                                                        : "computing";
    if (last.group.empty()) {
      table +=
          fmt::format("{:>6}  {:<12} {:>8}  {:<16} {:>14}  {}\n", rank, "-", "-", "-", "-", state);
    } else {
      table += fmt::format("{:>6}  {:<12} {:>8}  {:<16} {:>14}  {}\n", rank, last.group,
                           last.sequence, last.operation, last.bytes, state);
    }
  }
  return table;
}

}  // namespace sevenfold::threads
