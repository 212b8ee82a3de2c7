#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace sevenfold {

// The ids of pieces of text met lately: words come back. A place for every hash, the latest piece
// in it; 4 MiB. Used by one thread at a time.
class PieceCache {
 public:
  static constexpr size_t kMaxBytes = 24;  // longer pieces are too rare to keep
  static constexpr size_t kMaxIds = 7;

  PieceCache() : slots_(kNumSlots) {}

  // Nothing kept: an empty span, which no piece has.
  std::span<const int32_t> find(std::string_view piece) const {
    if (piece.size() > kMaxBytes) return {};
    const Key key = key_of(piece);
    const Slot& slot = slots_[place_of(key)];
    return slot.key == key ? std::span(slot.ids.data(), slot.num_ids) : std::span<const int32_t>();
  }
  void keep(std::string_view piece, std::span<const int32_t> ids) {
    if (piece.size() > kMaxBytes || ids.size() > kMaxIds) return;
    const Key key = key_of(piece);
    Slot& slot = slots_[place_of(key)];
    slot.key = key;
    slot.num_ids = static_cast<uint32_t>(ids.size());
    std::copy(ids.begin(), ids.end(), slot.ids.begin());
  }

 private:
  static constexpr size_t kNumSlots = size_t{1} << 16;

  struct Key {
    std::array<uint64_t, kMaxBytes / 8> bytes{};  // padded with zeros
    uint32_t num_bytes = 0;
    bool operator==(const Key&) const = default;
  };
  struct Slot {
    Key key;
    uint32_t num_ids = 0;
    std::array<int32_t, kMaxIds> ids{};
  };

  static Key key_of(std::string_view piece) {
    Key key;
    std::memcpy(key.bytes.data(), piece.data(), piece.size());
    key.num_bytes = static_cast<uint32_t>(piece.size());
    return key;
  }
  static size_t place_of(const Key& key) {
    uint64_t hash = key.num_bytes;
    for (const uint64_t word : key.bytes)
      hash = (hash ^ word ^ hash >> 29U) * 0x9e3779b97f4a7c15ULL;
    return static_cast<size_t>(hash >> 40U) & (kNumSlots - 1);
  }

  std::vector<Slot> slots_;
};

}  // namespace sevenfold
