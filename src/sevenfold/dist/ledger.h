#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace sevenfold {

// What a rank's tensor memory is for.
enum class MemoryCategory : uint8_t {
  kParameters, kGradients, kOptimizer, kActivations, kCommunication
};
inline constexpr int kNumMemoryCategories = 5;
std::string_view memory_category_name(MemoryCategory category);  // "parameters", ...

// Exact bytes (as requested, without rounding) of one rank, live and peak. Written by the allocator from
// any thread; freeing is booked to the rank that allocated.
class MemoryLedger {
 public:
  void add(MemoryCategory category, int64_t bytes);
  void remove(MemoryCategory category, int64_t bytes);

  int64_t live(MemoryCategory category) const;
  int64_t live_total() const;
  int64_t peak(MemoryCategory category) const;  // of this category by itself
  int64_t peak_total() const;                   // of the sum
  // Bytes of each category at the moment of the greatest sum.
  std::array<int64_t, kNumMemoryCategories> at_peak() const;
  void reset_peaks();

 private:
  // The peak's composition is approximate only if several threads allocate for one rank at once.
  std::array<std::atomic<int64_t>, kNumMemoryCategories> live_{};
  std::array<std::atomic<int64_t>, kNumMemoryCategories> peak_{};
  std::array<std::atomic<int64_t>, kNumMemoryCategories> at_peak_{};
  std::atomic<int64_t> total_{0};
  std::atomic<int64_t> peak_total_{0};
};

// While alive, tensor memory allocated by this thread is booked to `ledger` under `category`. Nests.
class MemoryScope {
 public:
  MemoryScope(MemoryLedger* ledger, MemoryCategory category);
  // Keeps the thread's ledger, changes the category.
  explicit MemoryScope(MemoryCategory category);
  ~MemoryScope();
  MemoryScope(const MemoryScope&) = delete;
  MemoryScope& operator=(const MemoryScope&) = delete;

 private:
  MemoryLedger* ledger_before_;
  MemoryCategory category_before_;
};

struct TrafficEntry {
  int64_t operations = 0;
  int64_t bytes_sent = 0;       // of this rank, as the ring algorithm sends them
  double seconds_in_flight = 0;  // from the call to the end of wait
  double seconds_blocked = 0;    // inside wait: compute stood still
};

// Traffic of one rank by (group, operation). Used by the rank's thread only.
class TrafficLedger {
 public:
  void record(const std::string& group, std::string_view operation, int64_t bytes_sent);
  void record_time(const std::string& group, std::string_view operation, double in_flight, double blocked);

  const std::map<std::pair<std::string, std::string>, TrafficEntry>& entries() const { return entries_; }
  TrafficEntry total() const;
  // Sum over operations of the group.
  TrafficEntry of_group(const std::string& group) const;
  void clear() { entries_.clear(); }

 private:
  std::map<std::pair<std::string, std::string>, TrafficEntry> entries_;
};

}  // namespace sevenfold
