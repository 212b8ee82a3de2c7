#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace sevenfold {

class Timeline;

// What a rank's tensor memory is for.
enum class MemoryCategory : uint8_t {
  kParameters,
  kGradients,
  kOptimizer,
  kActivations,
  kCommunication
};
inline constexpr int kNumMemoryCategories = 5;
std::string_view memory_category_name(MemoryCategory category);  // "parameters", ...

// What a rank is doing: a span of its timeline, its micro batch and the layer of the whole model
// (the embedding 0, decoder layers from 1 on, the head behind them); -1: none.
struct WorkMoment {
  const char* work = "start";
  int64_t microbatch = -1;
  int64_t layer = -1;
};

// The counters behind a MemoryLedger. Every live block holds a reference, so memory that outlives
// its ledger (a tensor kept beyond the run of its rank) is still freed safely. Any thread may call
// anything.
class MemoryCounters {
 public:
  void retain() { references_.fetch_add(1, std::memory_order_relaxed); }
  // acq_rel: the thread that deletes must have seen what all others did with the counters.
  void release() {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  void add(MemoryCategory category, int64_t bytes);
  void remove(MemoryCategory category, int64_t bytes);
  // What the rank does from now on: a new peak is said to be of that.
  void enter(const WorkMoment& moment) { now_.set(moment); }
  WorkMoment moment() const { return now_.get(); }

 private:
  friend class MemoryLedger;
  struct AtomicMoment {
    void set(const WorkMoment& moment) {
      work.store(moment.work, std::memory_order_relaxed);
      microbatch.store(moment.microbatch, std::memory_order_relaxed);
      layer.store(moment.layer, std::memory_order_relaxed);
    }
    WorkMoment get() const {
      return {work.load(std::memory_order_relaxed), microbatch.load(std::memory_order_relaxed),
              layer.load(std::memory_order_relaxed)};
    }
    std::atomic<const char*> work{WorkMoment().work};
    std::atomic<int64_t> microbatch{-1};
    std::atomic<int64_t> layer{-1};
  };
  std::atomic<int64_t> references_{1};
  // The peak's composition is approximate only if several threads allocate for one rank at once.
  std::array<std::atomic<int64_t>, kNumMemoryCategories> live_{};
  std::array<std::atomic<int64_t>, kNumMemoryCategories> peak_{};
  std::array<std::atomic<int64_t>, kNumMemoryCategories> at_peak_{};
  std::atomic<int64_t> total_{0};
  std::atomic<int64_t> peak_total_{0};
  AtomicMoment now_;
  AtomicMoment moment_at_peak_;
};

// Exact bytes (as requested, without rounding) of one rank, live and peak. Written by the allocator
// from any thread; freeing is booked to the rank that allocated.
class MemoryLedger {
 public:
  MemoryLedger() : counters_(new MemoryCounters) {}
  ~MemoryLedger() { counters_->release(); }
  MemoryLedger(const MemoryLedger&) = delete;
  MemoryLedger& operator=(const MemoryLedger&) = delete;

  void add(MemoryCategory category, int64_t bytes) { counters_->add(category, bytes); }
  void remove(MemoryCategory category, int64_t bytes) { counters_->remove(category, bytes); }

  int64_t live(MemoryCategory category) const;
  int64_t live_total() const;
  int64_t peak(MemoryCategory category) const;  // of this category by itself
  int64_t peak_total() const;                   // of the sum
  // Bytes of each category at the moment of the greatest sum.
  std::array<int64_t, kNumMemoryCategories> at_peak() const;
  // What the rank did at that moment.
  WorkMoment moment_at_peak() const { return counters_->moment_at_peak_.get(); }
  void reset_peaks();

  MemoryCounters* counters() const { return counters_; }

 private:
  MemoryCounters* const counters_;
};

// While alive, tensor memory allocated by this thread is booked to `ledger` under `category`.
// Nests. `ledger` outlives the scope (but not the memory); null: not booked at all.
class MemoryScope {
 public:
  MemoryScope(MemoryLedger* ledger, MemoryCategory category);
  // Keeps the thread's ledger, changes the category.
  explicit MemoryScope(MemoryCategory category);
  ~MemoryScope();
  MemoryScope(const MemoryScope&) = delete;
  MemoryScope& operator=(const MemoryScope&) = delete;

  // Of the calling thread; null outside every scope.
  static MemoryCounters* current_counters();
  static MemoryCategory current_category();

 private:
  MemoryCounters* counters_before_;
  MemoryCategory category_before_;
};

// While alive, the rank of the calling thread's MemoryScope does this; afterwards what it did
// before. Nests.
class MomentScope {
 public:
  // work: a literal. microbatch -1: none.
  explicit MomentScope(const char* work, int64_t microbatch = -1);
  // The same work, in this layer.
  explicit MomentScope(int64_t layer);
  ~MomentScope();
  MomentScope(const MomentScope&) = delete;
  MomentScope& operator=(const MomentScope&) = delete;

 private:
  MemoryCounters* counters_;  // null: memory is not booked
  WorkMoment before_;
};

struct TrafficEntry {
  int64_t operations = 0;
  int64_t bytes_sent = 0;        // of this rank, as the ring algorithm sends them
  double seconds_in_flight = 0;  // from the call to the end of wait
  double seconds_blocked = 0;    // inside wait: compute stood still
};

// Traffic of one rank by (group, operation). Used by the rank's thread only.
class TrafficLedger {
 public:
  void record(const std::string& group, std::string_view operation, int64_t bytes_sent);
  void record_time(const std::string& group, std::string_view operation, double in_flight,
                   double blocked);

  const std::map<std::pair<std::string, std::string>, TrafficEntry>& entries() const {
    return entries_;
  }
  TrafficEntry total() const;
  // Also told of every collective that ends; null: nobody. Outlives the ledger's use.
  void set_timeline(Timeline* timeline) { timeline_ = timeline; }
  // Sum over operations of the group.
  TrafficEntry of_group(const std::string& group) const;
  void clear() { entries_.clear(); }

 private:
  TrafficEntry& entry(const std::string& group, std::string_view operation);

  std::map<std::pair<std::string, std::string>, TrafficEntry> entries_;
  Timeline* timeline_ = nullptr;
};

}  // namespace sevenfold
