#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sevenfold {

// The merges of a BPE model: which two neighbouring tokens become one, and which pair goes first.
class MergeTable {
 public:
  struct Merge {
    int32_t rank = kNone;  // lower goes first
    int32_t id = kNone;    // of the merged token
  };
  static constexpr int32_t kNone = -1;

  explicit MergeTable(size_t num_merges);
  // A pair that is there already gets the new merge.
  void set(int32_t left, int32_t right, Merge merge);
  // rank kNone: the pair does not merge.
  Merge find(int32_t left, int32_t right) const {
    const uint64_t key = key_of(left, right);
    for (size_t at = place_of(key);; at = (at + 1) & mask_) {
      if (keys_[at] == key) return merges_[at];
      if (keys_[at] == kEmpty) return {};
    }
  }

 private:
  static constexpr uint64_t kEmpty = ~uint64_t{0};  // ids are not negative, so no key is this

  static uint64_t key_of(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32U | static_cast<uint32_t>(right);
  }
  size_t place_of(uint64_t key) const {
    return static_cast<size_t>((key * 0x9e3779b97f4a7c15ULL) >> 20U) & mask_;
  }

  std::vector<uint64_t> keys_;  // open addressing, at most half full
  std::vector<Merge> merges_;
  size_t mask_;
};

// Merges the tokens of one piece of text as far as the table goes: the pair of the lowest rank
// first, the leftmost of equals. n log n in the tokens of the piece, which may be a megabyte long.
class PieceMerger {
 public:
  // Replaces `ids` by what is left after merging.
  void merge(const MergeTable& table, std::vector<int32_t>& ids);

 private:
  struct Symbol {
    int32_t id;
    int32_t previous;
    int32_t next;
    MergeTable::Merge with_next;
  };

  void look_up(const MergeTable& table, int32_t position);
  void merge_with_next(const MergeTable& table, int32_t position);

  std::vector<Symbol> symbols_;  // a linked list; id kNone: merged away
  std::vector<uint64_t> heap_;   // rank and position; stale where the symbol says another rank
};

}  // namespace sevenfold
