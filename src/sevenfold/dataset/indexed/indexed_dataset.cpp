#include "sevenfold/dataset/indexed/indexed_dataset.h"

#include <xxhash.h>

#include <array>
#include <bit>
#include <cstring>
#include <filesystem>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

static_assert(std::endian::native == std::endian::little, "the files are little endian");

constexpr std::array<unsigned char, 9> kMagic = {'M', 'M', 'I', 'D', 'I', 'D', 'X', 0, 0};
constexpr int64_t kHeaderBytes = 34;

// Fields of .idx are not aligned, so every access is a copy.
template <typename T>
T load(std::span<const std::byte> bytes, int64_t byte) {
  T value;
  std::memcpy(&value, bytes.data() + byte, sizeof(T));
  return value;
}

template <typename T>
void widen(const std::byte* from, std::span<int64_t> tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    T value;
    std::memcpy(&value, from + i * sizeof(T), sizeof(T));
    tokens[i] = static_cast<int64_t>(value);
  }
}

ElementType parse_element_type(uint8_t code, const std::string& path) {
  switch (code) {
    case 1:
    case 2:
    case 3:
    case 4:
    case 5:
    case 8:
      return static_cast<ElementType>(code);
    case 6:
    case 7:
      raise<DataError>(
          "dataset: {}: dtype code {} means {} values, which are no token ids; "
          "tokenize again with an integer type",
          path, code, code == 6 ? "f64" : "f32");
    default:
      raise<DataError>(
          "dataset: {}: dtype code {} at byte 17 is none of 1 (u8), 2 (i8), 3 (i16), "
          "4 (i32), 5 (i64), 8 (u16); the index is corrupt",
          path, code);
  }
}

// The path that people try first is the one that the shell completes.
const std::string& checked_prefix(const std::string& prefix) {
  if (prefix.ends_with(".bin") || prefix.ends_with(".idx"))
    if (std::error_code ignored; !std::filesystem::exists(prefix + ".idx", ignored))
      raise<DataError>("dataset: {0}.idx does not exist; a data set is named by its prefix: {1}",
                       prefix, prefix.substr(0, prefix.size() - 4));
  return prefix;
}

}  // namespace

std::string_view element_type_name(ElementType type) {
  switch (type) {
    case ElementType::kU8:
      return "u8";
    case ElementType::kI8:
      return "i8";
    case ElementType::kI16:
      return "i16";
    case ElementType::kI32:
      return "i32";
    case ElementType::kI64:
      return "i64";
    case ElementType::kU16:
      return "u16";
  }
  return "?";
}

int64_t element_bytes(ElementType type) {
  switch (type) {
    case ElementType::kU8:
    case ElementType::kI8:
      return 1;
    case ElementType::kI16:
    case ElementType::kU16:
      return 2;
    case ElementType::kI32:
      return 4;
    case ElementType::kI64:
      return 8;
  }
  return 0;
}

IndexedDataset::IndexedDataset(const std::string& prefix)
    : prefix_(checked_prefix(prefix)), idx_(prefix + ".idx"), bin_(prefix + ".bin") {
  read_header();
  check_sequences();
  check_documents();
}

std::string IndexedDataset::identity() const {
  const auto idx = idx_.bytes();
  const XXH128_hash_t hash = XXH3_128bits(idx.data(), idx.size());
  return fmt::format("idx of {} bytes, xxh3 {:016x}{:016x}", idx.size(), hash.high64, hash.low64);
}

int64_t IndexedDataset::field_i64(int64_t byte) const {
  return load<int64_t>(idx_.bytes(), byte);
}

int64_t IndexedDataset::sequence_length(int64_t sequence) const {
  SEVENFOLD_CHECK(sequence >= 0 && sequence < num_sequences_, "sequence {} of {}", sequence,
                  num_sequences_);
  return load<int32_t>(idx_.bytes(), kHeaderBytes + 4 * sequence);
}

int64_t IndexedDataset::sequence_position(int64_t sequence) const {
  return field_i64(kHeaderBytes + 4 * num_sequences_ + 8 * sequence);
}

void IndexedDataset::read(int64_t sequence, int64_t offset, std::span<int64_t> tokens) const {
  const int64_t length = sequence_length(sequence);
  const auto count = static_cast<int64_t>(tokens.size());
  SEVENFOLD_CHECK(offset >= 0 && count <= length && offset <= length - count,
                  "tokens {}..{} of sequence {} with {} tokens", offset, offset + count, sequence,
                  length);
  const std::byte* from =
      bin_.bytes().data() + sequence_position(sequence) + offset * element_bytes(type_);
  switch (type_) {
    case ElementType::kU8:
      return widen<uint8_t>(from, tokens);
    case ElementType::kI8:
      return widen<int8_t>(from, tokens);
    case ElementType::kI16:
      return widen<int16_t>(from, tokens);
    case ElementType::kI32:
      return widen<int32_t>(from, tokens);
    case ElementType::kI64:
      return widen<int64_t>(from, tokens);
    case ElementType::kU16:
      return widen<uint16_t>(from, tokens);
  }
}

void IndexedDataset::read_header() {
  const auto idx = idx_.bytes();
  const std::string path = idx_path();
  if (idx.size() < static_cast<size_t>(kHeaderBytes))
    raise<DataError>("dataset: {} has {} bytes, fewer than the {} of a header; it is truncated",
                     path, idx.size(), kHeaderBytes);
  if (std::memcmp(idx.data(), kMagic.data(), kMagic.size()) != 0)
    raise<DataError>("dataset: {} does not start with MMIDIDX; it is no Megatron index", path);
  if (const auto version = load<uint64_t>(idx, 9); version != 1)
    raise<DataError>("dataset: {}: version {} at byte 9; only version 1 exists", path, version);
  type_ = parse_element_type(load<uint8_t>(idx, 17), path);

  const auto num_sequences = load<uint64_t>(idx, 18);
  const auto num_entries = load<uint64_t>(idx, 26);
  // Compared with the file's size before they are multiplied: corrupt counts must not overflow.
  const uint64_t body = idx.size() - static_cast<uint64_t>(kHeaderBytes);
  const bool countable = num_sequences <= body / 12 && num_entries <= body / 8 && num_entries >= 1;
  const uint64_t needed = countable ? 12 * num_sequences + 8 * num_entries : 0;
  // A multimodal file has one more byte (its mode) per sequence, which text training does not read.
  if (!countable || (body != needed && body != needed + num_sequences))
    raise<DataError>(
        "dataset: {} has {} bytes, which do not fit {} sequences and {} document entries "
        "(34 + 12 * sequences + 8 * entries); it is truncated or corrupt",
        path, idx.size(), num_sequences, num_entries);
  num_sequences_ = static_cast<int64_t>(num_sequences);
  num_documents_ = static_cast<int64_t>(num_entries) - 1;
}

void IndexedDataset::check_sequences() {
  const int64_t width = element_bytes(type_);
  int64_t position = 0;
  for (int64_t sequence = 0; sequence < num_sequences_; ++sequence) {
    const int64_t length = sequence_length(sequence);
    if (length < 0)
      raise<DataError>("dataset: {}: sequence {} has length {}; the index is corrupt", idx_path(),
                       sequence, length);
    if (const int64_t stated = sequence_position(sequence); stated != position)
      raise<DataError>(
          "dataset: {}: sequence {} starts at byte {}, but the lengths before it end at "
          "byte {}; the index is corrupt",
          idx_path(), sequence, stated, position);
    position +=
        length * width;  // at most 2^63 / 12 sequences of 2^34 bytes: checked against .bin next
    if (position > bin_bytes())
      raise<DataError>(
          "dataset: {}.bin has {} bytes, but sequence {} of its index ends at byte {}; it "
          "is truncated or belongs to another index",
          prefix_, bin_bytes(), sequence, position);
  }
  if (position != bin_bytes())
    raise<DataError>(
        "dataset: {}.bin has {} bytes, but its index accounts for {}; the two files do not "
        "belong together",
        prefix_, bin_bytes(), position);
  num_tokens_ = position / width;
}

void IndexedDataset::check_documents() const {
  const int64_t table = kHeaderBytes + 12 * num_sequences_;
  int64_t before = 0;
  for (int64_t entry = 0; entry <= num_documents_; ++entry) {
    const int64_t start = field_i64(table + 8 * entry);
    if (start < before || (entry == 0 && start != 0))
      raise<DataError>(
          "dataset: {}: document {} starts at sequence {}, after {}; starts must rise from "
          "0, the index is corrupt",
          idx_path(), entry, start, before);
    before = start;
  }
  if (before != num_sequences_)
    raise<DataError>(
        "dataset: {}: the document table ends at sequence {}, but there are {}; the index "
        "is corrupt",
        idx_path(), before, num_sequences_);
}

}  // namespace sevenfold
