#include "sevenfold/train/output/event_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "sevenfold/core/error.h"
#include "support/fixtures.h"

namespace sevenfold {
namespace {

using testing::TemporaryDirectory;

TEST(Crc32c, EqualsTheVectorsOfRfc3720) {
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
  std::string ascending;
  for (int i = 0; i < 32; ++i) ascending += static_cast<char>(i);
  EXPECT_EQ(crc32c(ascending), 0x46DD794Eu);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
}

// A reader of the format of its own: long division for the checksum, no tables.
uint32_t slow_crc32c(std::string_view data) {
  uint32_t crc = 0xFFFFFFFFu;
  for (const char byte : data)
    for (int bit = 0; bit < 8; ++bit) {
      const bool feeds_back = ((crc ^ (static_cast<unsigned char>(byte) >> bit)) & 1u) != 0;
      crc = (crc >> 1) ^ (feeds_back ? 0x82F63B78u : 0u);
    }
  return ~crc;
}

template <typename T>
T take(std::string_view& data) {
  T value;
  EXPECT_GE(data.size(), sizeof(T));
  std::memcpy(&value, data.data(), sizeof(T));
  data.remove_prefix(sizeof(T));
  return value;
}

void expect_checksum(std::string_view of, uint32_t stored) {
  const uint32_t crc = slow_crc32c(of);
  EXPECT_EQ(stored, ((crc >> 15) | (crc << 17)) + 0xA282EAD8u);
}

std::vector<std::string> records_of(std::string_view file) {
  std::vector<std::string> records;
  while (!file.empty()) {
    const std::string_view length_bytes = file.substr(0, 8);
    const auto length = take<uint64_t>(file);
    expect_checksum(length_bytes, take<uint32_t>(file));
    const std::string_view data = file.substr(0, length);
    file.remove_prefix(length);
    expect_checksum(data, take<uint32_t>(file));
    records.emplace_back(data);
  }
  return records;
}

uint64_t take_varint(std::string_view& data) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = take<uint8_t>(data);
    value |= static_cast<uint64_t>(byte & 0x7Fu) << shift;
    if ((byte & 0x80u) == 0) return value;
  }
}

struct Event {
  double wall_time = 0.0;
  int64_t step = 0;
  std::string version, tag;
  float value = NAN;
  uint64_t session_status = 0;
};

std::string_view take_bytes(std::string_view& data) {
  const uint64_t size = take_varint(data);
  const std::string_view bytes = data.substr(0, size);
  data.remove_prefix(size);
  return bytes;
}

// Event {double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5;
// SessionLog session_log = 7}, SessionLog {SessionStatus status = 1}, Summary {Value value = 1},
// Value {string tag = 1; float simple_value = 2}.
Event event_of(std::string_view data) {
  Event event;
  while (!data.empty()) {
    switch (take_varint(data)) {
      case 1 << 3 | 1:
        event.wall_time = take<double>(data);
        break;
      case 2 << 3 | 0:
        event.step = static_cast<int64_t>(take_varint(data));
        break;
      case 3 << 3 | 2:
        event.version = take_bytes(data);
        break;
      case 5 << 3 | 2: {
        std::string_view summary = take_bytes(data);
        EXPECT_EQ(take_varint(summary), 1u << 3 | 2);
        std::string_view value = take_bytes(summary);
        EXPECT_TRUE(summary.empty());
        EXPECT_EQ(take_varint(value), 1u << 3 | 2);
        event.tag = take_bytes(value);
        EXPECT_EQ(take_varint(value), 2u << 3 | 5);
        event.value = take<float>(value);
        EXPECT_TRUE(value.empty());
        break;
      }
      case 7 << 3 | 2: {
        std::string_view session = take_bytes(data);
        EXPECT_EQ(take_varint(session), 1u << 3 | 0);
        event.session_status = take_varint(session);
        EXPECT_TRUE(session.empty());
        break;
      }
      default:
        ADD_FAILURE() << "a field that an Event does not have here";
        return event;
    }
  }
  return event;
}

TEST(EventFile, ReadsBackWithItsChecksums) {
  const TemporaryDirectory directory;
  EventFile file(directory.path() / "tensorboard");
  file.add_scalar("lm loss", 1, 5.25);
  file.add_scalar("learning-rate", 300, 1e-5);
  file.add_scalar("grad-norm", 1'000'000'000'000, std::nan(""));
  file.flush();
  const std::vector<std::string> records = records_of(testing::read_text(file.path()));
  ASSERT_EQ(records.size(), 4U);
  const Event first = event_of(records[0]);
  EXPECT_EQ(first.version, "brain.Event:2");
  EXPECT_GT(first.wall_time, 1.7e9);
  const Event loss = event_of(records[1]);
  EXPECT_EQ(loss.tag, "lm loss");
  EXPECT_EQ(loss.step, 1);
  EXPECT_EQ(loss.value, 5.25f);
  EXPECT_GE(loss.wall_time, first.wall_time);
  const Event rate = event_of(records[2]);
  EXPECT_EQ(rate.step, 300);
  EXPECT_EQ(rate.value, 1e-5f);
  const Event norm = event_of(records[3]);
  EXPECT_EQ(norm.step, 1'000'000'000'000);
  EXPECT_TRUE(std::isnan(norm.value));
}

TEST(EventFile, HasANameThatTensorBoardLooksFor) {
  const TemporaryDirectory directory;
  const EventFile file(directory.path());
  EXPECT_EQ(file.path().filename().string().rfind("events.out.tfevents.", 0), 0U);
}

// A run that is resumed within the second, by the same process, writes beside its earlier part.
TEST(EventFile, OfAResumedRunStandsBesideTheEarlierOneAndRestartsAtItsStep) {
  constexpr uint64_t kStart = 1;  // SessionLog.SessionStatus
  const TemporaryDirectory directory;
  EventFile first(directory.path());
  first.add_scalar("lm loss", 8, 5.0);
  first.flush();
  const std::string before = testing::read_text(first.path());
  EventFile second(directory.path(), 7);
  second.add_scalar("lm loss", 8, 5.0);
  second.flush();
  EXPECT_NE(first.path(), second.path());
  EXPECT_EQ(testing::read_text(first.path()), before);
  const std::vector<std::string> records = records_of(testing::read_text(second.path()));
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(event_of(records[0]).version, "brain.Event:2");
  EXPECT_EQ(event_of(records[1]).session_status, kStart);
  EXPECT_EQ(event_of(records[1]).step, 8);
  EXPECT_EQ(event_of(records[2]).tag, "lm loss");
}

TEST(EventFile, SaysWhyItCannotBeMade) {
  const TemporaryDirectory directory;
  testing::write_text(directory / "taken", "a file");
  EXPECT_THROW(EventFile(directory.path() / "taken"), Error);
}

}  // namespace
}  // namespace sevenfold
