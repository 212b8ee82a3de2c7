#include "sevenfold/train/output/event_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <system_error>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

constexpr std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1u) != 0 ? (crc >> 1) ^ 0x82F63B78u : crc >> 1;
    table[byte] = crc;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kCrcTable = crc_table();

// TFRecord stores checksums rotated and shifted, so that a checksum of checksums stays one.
uint32_t masked_crc32c(std::string_view data) {
  return std::rotr(crc32c(data), 15) + 0xA282EAD8u;
}

template <typename T>
std::string little_endian(T value) {
  std::string bytes;
  for (size_t i = 0; i < sizeof(T); ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFFu);
  return bytes;
}

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80u; value >>= 7) bytes += static_cast<char>(value | 0x80u);
  return bytes + static_cast<char>(value);
}

// Fields of protocol buffers: key = number * 8 + wire type (0 varint, 1 eight bytes, 2 length and
// bytes, 5 four bytes).
std::string field(uint64_t number, double value) {
  return varint(number * 8 + 1) + little_endian(std::bit_cast<uint64_t>(value));
}
std::string field(uint64_t number, float value) {
  return varint(number * 8 + 5) + little_endian(std::bit_cast<uint32_t>(value));
}
std::string field(uint64_t number, int64_t value) {
  return varint(number * 8) + varint(static_cast<uint64_t>(value));
}
std::string field(uint64_t number, std::string_view bytes) {
  return varint(number * 8 + 2) + varint(bytes.size()) + std::string(bytes);
}

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// The number at the end tells files of one second and process apart.
std::filesystem::path file_in(const std::filesystem::path& directory) {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  const std::string name =
      fmt::format("events.out.tfevents.{:010d}.{}.{}", static_cast<int64_t>(seconds_since_1970()),
                  host.data(), getpid());
  std::error_code ignored;  // what stands against the file shows when it is opened
  for (int64_t number = 0;; ++number) {
    const std::filesystem::path path = directory / fmt::format("{}.{}", name, number);
    if (!std::filesystem::exists(path, ignored)) return path;
  }
}

[[noreturn]] void raise_system_error(const char* what, const std::filesystem::path& path) {
  raise<Error>("train: cannot {} {}: {}", what, path.string(),
               std::generic_category().message(errno));
}

}  // namespace

uint32_t crc32c(std::string_view data) {
  uint32_t crc = 0xFFFFFFFFu;
  for (const char byte : data)
    crc = (crc >> 8) ^ kCrcTable[(crc ^ static_cast<unsigned char>(byte)) & 0xFFu];
  return ~crc;
}

EventFile::EventFile(const std::filesystem::path& directory, int64_t continues_after)
    : path_(file_in(directory)) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) raise<Error>("train: cannot make {}: {}", directory.string(), error.message());
  file_.reset(std::fopen(path_.c_str(), "wb"));
  if (!file_) raise_system_error("open", path_);
  // Event {wall_time = 1, step = 2, file_version = 3, summary = 5, session_log = 7}
  write_record(field(1, seconds_since_1970()) + field(3, std::string_view("brain.Event:2")));
  // SessionLog {status = 1}; its START (1) makes readers drop the points from that step on.
  if (continues_after > 0)
    write_record(field(1, seconds_since_1970()) + field(2, continues_after + 1) +
                 field(7, field(1, int64_t{1})));
  flush();
}

void EventFile::add_scalar(std::string_view tag, int64_t step, double value) {
  // Summary {value = 1: Value {tag = 1, simple_value = 2}}
  const std::string scalar = field(1, tag) + field(2, static_cast<float>(value));
  write_record(field(1, seconds_since_1970()) + field(2, step) + field(5, field(1, scalar)));
}

void EventFile::write_record(const std::string& data) {
  const std::string length = little_endian(static_cast<uint64_t>(data.size()));
  const std::string record =
      length + little_endian(masked_crc32c(length)) + data + little_endian(masked_crc32c(data));
  if (std::fwrite(record.data(), 1, record.size(), file_.get()) != record.size())
    raise_system_error("write", path_);
}

void EventFile::flush() {
  if (std::fflush(file_.get()) != 0) raise_system_error("write", path_);
}

}  // namespace sevenfold
