#include "sevenfold/dist/ledger.h"

#include "sevenfold/dist/timeline.h"

namespace sevenfold {
namespace {

// Where the calling thread's allocations are booked. The one piece of thread-local rank state: an
// allocator has no other way to learn for whom it works.
struct Booking {
  MemoryCounters* counters = nullptr;
  MemoryCategory category = MemoryCategory::kActivations;
};
thread_local Booking booking;

void raise_to(std::atomic<int64_t>& peak, int64_t value) {
  int64_t known = peak.load(std::memory_order_relaxed);
  while (known < value && !peak.compare_exchange_weak(known, value, std::memory_order_relaxed)) {
  }
}

void add_entry(TrafficEntry& sum, const TrafficEntry& entry) {
  sum.operations += entry.operations;
  sum.bytes_sent += entry.bytes_sent;
  sum.seconds_in_flight += entry.seconds_in_flight;
  sum.seconds_blocked += entry.seconds_blocked;
}

}  // namespace

std::string_view memory_category_name(MemoryCategory category) {
  switch (category) {
    case MemoryCategory::kParameters:
      return "parameters";
    case MemoryCategory::kGradients:
      return "gradients";
    case MemoryCategory::kOptimizer:
      return "optimizer";
    case MemoryCategory::kActivations:
      return "activations";
    case MemoryCategory::kCommunication:
      return "communication";
  }
  return "?";
}

// Counters are independent of each other and order nothing else: relaxed throughout.
void MemoryCounters::add(MemoryCategory category, int64_t bytes) {
  const auto index = static_cast<size_t>(category);
  raise_to(peak_[index], live_[index].fetch_add(bytes, std::memory_order_relaxed) + bytes);
  const int64_t total = total_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (total <= peak_total_.load(std::memory_order_relaxed)) return;
  raise_to(peak_total_, total);
  for (size_t i = 0; i < kNumMemoryCategories; ++i) {
    at_peak_[i].store(live_[i].load(std::memory_order_relaxed), std::memory_order_relaxed);
  }
  moment_at_peak_.set(now_.get());
}

void MemoryCounters::remove(MemoryCategory category, int64_t bytes) {
  live_[static_cast<size_t>(category)].fetch_sub(bytes, std::memory_order_relaxed);
  total_.fetch_sub(bytes, std::memory_order_relaxed);
}

int64_t MemoryLedger::live(MemoryCategory category) const {
  return counters_->live_[static_cast<size_t>(category)].load(std::memory_order_relaxed);
}

int64_t MemoryLedger::live_total() const {
  return counters_->total_.load(std::memory_order_relaxed);
}

int64_t MemoryLedger::peak(MemoryCategory category) const {
  return counters_->peak_[static_cast<size_t>(category)].load(std::memory_order_relaxed);
}

int64_t MemoryLedger::peak_total() const {
  return counters_->peak_total_.load(std::memory_order_relaxed);
}

std::array<int64_t, kNumMemoryCategories> MemoryLedger::at_peak() const {
  std::array<int64_t, kNumMemoryCategories> bytes{};
  for (size_t i = 0; i < kNumMemoryCategories; ++i) {
    bytes[i] = counters_->at_peak_[i].load(std::memory_order_relaxed);
  }
  return bytes;
}

void MemoryLedger::reset_peaks() {
  for (size_t i = 0; i < kNumMemoryCategories; ++i) {
    const int64_t live = counters_->live_[i].load(std::memory_order_relaxed);
    counters_->peak_[i].store(live, std::memory_order_relaxed);
    counters_->at_peak_[i].store(live, std::memory_order_relaxed);
  }
  counters_->peak_total_.store(live_total(), std::memory_order_relaxed);
  counters_->moment_at_peak_.set(counters_->moment());
}

MemoryScope::MemoryScope(MemoryLedger* ledger, MemoryCategory category)
    : counters_before_(booking.counters), category_before_(booking.category) {
  booking = {ledger ? ledger->counters() : nullptr, category};
}

MemoryScope::MemoryScope(MemoryCategory category)
    : counters_before_(booking.counters), category_before_(booking.category) {
  booking.category = category;
}

MemoryScope::~MemoryScope() {
  booking = {counters_before_, category_before_};
}

MemoryCounters* MemoryScope::current_counters() {
  return booking.counters;
}
MemoryCategory MemoryScope::current_category() {
  return booking.category;
}

MomentScope::MomentScope(const char* work, int64_t microbatch) : counters_(booking.counters) {
  if (counters_ == nullptr) return;
  before_ = counters_->moment();
  counters_->enter({.work = work, .microbatch = microbatch});
}

MomentScope::MomentScope(int64_t layer) : counters_(booking.counters) {
  if (counters_ == nullptr) return;
  before_ = counters_->moment();
  counters_->enter({.work = before_.work, .microbatch = before_.microbatch, .layer = layer});
}

MomentScope::~MomentScope() {
  if (counters_ != nullptr) counters_->enter(before_);
}

TrafficEntry& TrafficLedger::entry(const std::string& group, std::string_view operation) {
  return entries_[{group, std::string(operation)}];
}

void TrafficLedger::record(const std::string& group, std::string_view operation,
                           int64_t bytes_sent) {
  TrafficEntry& found = entry(group, operation);
  ++found.operations;
  found.bytes_sent += bytes_sent;
}

void TrafficLedger::record_time(const std::string& group, std::string_view operation,
                                double in_flight, double blocked) {
  TrafficEntry& found = entry(group, operation);
  found.seconds_in_flight += in_flight;
  found.seconds_blocked += blocked;
  if (timeline_ != nullptr) timeline_->add_collective(group, operation, in_flight, blocked);
}

TrafficEntry TrafficLedger::total() const {
  TrafficEntry sum;
  for (const auto& [key, each] : entries_) add_entry(sum, each);
  return sum;
}

TrafficEntry TrafficLedger::of_group(const std::string& group) const {
  TrafficEntry sum;
  for (const auto& [key, each] : entries_) {
    if (key.first == group) add_entry(sum, each);
  }
  return sum;
}

}  // namespace sevenfold
