#include "sevenfold/dataset/text/bpe/merge_table.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace sevenfold {
namespace {

constexpr int32_t kEnd = -1;  // before the first symbol and behind the last one

}  // namespace

MergeTable::MergeTable(size_t num_merges)
    : keys_(std::bit_ceil(2 * num_merges + 2), kEmpty),
      merges_(keys_.size()),
      mask_(keys_.size() - 1) {}

void MergeTable::set(int32_t left, int32_t right, Merge merge) {
  const uint64_t key = key_of(left, right);
  size_t at = place_of(key);
  while (keys_[at] != kEmpty && keys_[at] != key) at = (at + 1) & mask_;
  keys_[at] = key;
  merges_[at] = merge;
}

void PieceMerger::look_up(const MergeTable& table, int32_t position) {
  Symbol& symbol = symbols_[static_cast<size_t>(position)];
  symbol.with_next = symbol.next == kEnd
                         ? MergeTable::Merge{}
                         : table.find(symbol.id, symbols_[static_cast<size_t>(symbol.next)].id);
  if (symbol.with_next.rank == MergeTable::kNone) return;
  heap_.push_back(static_cast<uint64_t>(symbol.with_next.rank) << 32U |
                  static_cast<uint32_t>(position));
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
}

void PieceMerger::merge_with_next(const MergeTable& table, int32_t position) {
  Symbol& symbol = symbols_[static_cast<size_t>(position)];
  Symbol& next = symbols_[static_cast<size_t>(symbol.next)];
  symbol.id = symbol.with_next.id;
  symbol.next = next.next;
  next.id = MergeTable::kNone;
  next.with_next = {};
  if (symbol.next != kEnd) symbols_[static_cast<size_t>(symbol.next)].previous = position;
  look_up(table, position);
  if (symbol.previous != kEnd) look_up(table, symbol.previous);
}

void PieceMerger::merge(const MergeTable& table, std::vector<int32_t>& ids) {
  const auto count = static_cast<int32_t>(ids.size());
  symbols_.clear();
  heap_.clear();
  for (int32_t i = 0; i < count; ++i)
    symbols_.push_back({ids[static_cast<size_t>(i)], i - 1, i + 1 < count ? i + 1 : kEnd, {}});
  for (int32_t i = 0; i < count; ++i) look_up(table, i);
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    const uint64_t top = heap_.back();
    heap_.pop_back();
    const auto position = static_cast<int32_t>(top & 0xffffffffU);
    const auto rank = static_cast<int32_t>(top >> 32U);
    if (symbols_[static_cast<size_t>(position)].with_next.rank == rank)
      merge_with_next(table, position);
  }
  ids.clear();
  for (int32_t at = count > 0 ? 0 : kEnd; at != kEnd; at = symbols_[static_cast<size_t>(at)].next)
    ids.push_back(symbols_[static_cast<size_t>(at)].id);
}

}  // namespace sevenfold
