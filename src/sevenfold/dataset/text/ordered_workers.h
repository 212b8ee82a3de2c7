#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "sevenfold/core/error.h"

namespace sevenfold {

// Threads that apply one function to a stream of inputs; results come out in the order in which the
// inputs went in, whatever the number of threads. put() and take() are for one thread.
template <typename In, typename Out>
class OrderedWorkers {
 public:
  using StartThread = std::function<std::thread(std::function<void()>)>;

  // Where the system starts fewer threads, those do the work; throws ConfigError if there is none.
  OrderedWorkers(
      int64_t num_threads, std::function<Out(const In&)> work,
      const StartThread& start = [](auto run) { return std::thread(std::move(run)); })
      : work_(std::move(work)) {
    threads_.reserve(static_cast<size_t>(num_threads));
    try {
      for (int64_t i = 0; i < num_threads; ++i) threads_.push_back(start([this] { serve(); }));
    } catch (const std::system_error& error) {
      if (threads_.empty())
        raise<ConfigError>(
            "dataset: no thread can be started ({}); raise the limit of processes (ulimit -u) or "
            "of memory",
            error.what());
    }
  }
  // Inputs that no thread has begun are dropped.
  ~OrderedWorkers() {
    {
      const std::lock_guard lock(mutex_);
      is_closing_ = true;
      waiting_.clear();
    }
    arrived_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  OrderedWorkers(const OrderedWorkers&) = delete;
  OrderedWorkers& operator=(const OrderedWorkers&) = delete;

  void put(In input) {
    std::packaged_task<Out()> task([this, input = std::move(input)] { return work_(input); });
    results_.push_back(task.get_future());
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(std::move(task));
    }
    arrived_.notify_one();
  }
  // Waits for the result of the oldest input that was not taken yet; throws what its work threw.
  Out take() {
    std::future<Out> result = std::move(results_.front());
    results_.pop_front();
    return result.get();
  }
  size_t num_pending() const { return results_.size(); }
  int64_t num_threads() const { return static_cast<int64_t>(threads_.size()); }

 private:
  void serve() {
    while (true) {
      std::unique_lock lock(mutex_);
      arrived_.wait(lock, [this] { return is_closing_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      std::packaged_task<Out()> task = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      task();
    }
  }

  std::function<Out(const In&)> work_;
  std::deque<std::future<Out>> results_;
  std::mutex mutex_;  // of waiting_ and is_closing_
  std::condition_variable arrived_;
  std::deque<std::packaged_task<Out()>> waiting_;
  bool is_closing_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace sevenfold
