#include "sevenfold/checkpoint/safetensors.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "sevenfold/core/error.h"
#include "support/fixtures.h"

namespace sevenfold {
namespace {

using ::testing::HasSubstr;
using testing::TemporaryDirectory;

// A file put together by hand from the format's description.
std::string file_of(const std::string& header, const std::string& data) {
  std::string text(8, '\0');
  const uint64_t length = header.size();
  std::memcpy(text.data(), &length, 8);
  return text + header + data;
}

std::string sentence_of(const std::string& path) {
  try {
    const SafetensorsFile file(path);
  } catch (const DataError& error) {
    return error.what();
  }
  return "opened";
}

TEST(Safetensors, ReadsWhatTheFormatSays) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a.safetensors";
  const float values[] = {1.5F, -2.0F, 0.25F};
  std::string data(sizeof(values), '\0');
  std::memcpy(data.data(), values, sizeof(values));
  testing::write_text(path, file_of(R"({"__metadata__":{"by":"hand"},)"
                                    R"("b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]},)"
                                    R"("a":{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]}})",
                                    data));
  const SafetensorsFile file(path);
  EXPECT_EQ(file.metadata().at("by"), "hand");
  ASSERT_EQ(file.tensors().size(), 2U);
  EXPECT_EQ(file.tensors()[0].name, "a");
  EXPECT_EQ(file.tensors()[0].shape, (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(file.tensors()[1].type, at::kFloat);
  EXPECT_EQ(std::memcmp(file.tensors()[1].bytes.data(), values + 1, 8), 0);
}

TEST(Safetensors, WritesWhatTheFormatSays) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a.safetensors";
  const at::Tensor x = at::arange(6, at::kDouble), y = at::arange(3, at::kBFloat16);
  const auto bytes = [](const at::Tensor& t) {
    return std::span(static_cast<const std::byte*>(t.data_ptr()), t.nbytes());
  };
  write_safetensors(path,
                    {{"x", at::kDouble, {2, 3}, bytes(x)}, {"y", at::kBFloat16, {3}, bytes(y)}},
                    {{"key", "text"}});
  const std::string text = testing::read_text(path);
  uint64_t length = 0;
  std::memcpy(&length, text.data(), 8);
  EXPECT_EQ(length % 8, 0U) << "tensors are aligned";
  const auto header = nlohmann::json::parse(text.substr(8, length));
  EXPECT_EQ(header,
            nlohmann::json::parse(R"({"__metadata__":{"key":"text"},)"
                                  R"("x":{"dtype":"F64","shape":[2,3],"data_offsets":[0,48]},)"
                                  R"("y":{"dtype":"BF16","shape":[3],"data_offsets":[48,54]}})"));
  ASSERT_EQ(text.size(), 8 + length + 54);
  EXPECT_EQ(std::memcmp(text.data() + 8 + length, x.data_ptr(), 48), 0);
  EXPECT_EQ(std::memcmp(text.data() + 8 + length + 48, y.data_ptr(), 6), 0);
}

TEST(Safetensors, RefusesDamagedFilesNamingThem) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a.safetensors";
  const std::string tensor = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  const auto sentence = [&](const std::string& text) {
    testing::write_text(path, text);
    return sentence_of(path);
  };
  EXPECT_EQ(sentence(file_of(tensor, std::string(8, 'x'))), "opened");
  EXPECT_THAT(sentence(file_of(tensor, std::string(7, 'x'))),
              HasSubstr(path + ": the file ends inside tensor a"));
  EXPECT_THAT(sentence(file_of(tensor, std::string(9, 'x'))), HasSubstr("1 bytes are behind"));
  EXPECT_THAT(sentence("short"), HasSubstr("too short"));
  EXPECT_THAT(sentence(file_of(tensor, "").substr(0, 20)), HasSubstr("cut short"));
  EXPECT_THAT(sentence(std::string(64, '\xff')), HasSubstr("not a safetensors file"));
  EXPECT_THAT(sentence(file_of("{\"a\":", "")), HasSubstr("the header is damaged"));
  const auto with = [&](const std::string& entry, size_t bytes) {
    return sentence(file_of("{\"a\":" + entry + "}", std::string(bytes, 'x')));
  };
  EXPECT_THAT(with(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})", 8),
              HasSubstr("tensor a has 8 bytes and its shape needs 12"));
  EXPECT_THAT(with(R"({"dtype":"Q7","shape":[2],"data_offsets":[0,8]})", 8),
              HasSubstr("tensor a is of type Q7"));
  EXPECT_THAT(with(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})", 8),
              HasSubstr("has no possible shape"));
  EXPECT_THAT(with(R"({"dtype":"F32","shape":[9223372036854775807,8],"data_offsets":[0,8]})", 8),
              HasSubstr("has no possible shape"));
  EXPECT_THAT(with(R"({"dtype":"F32","shape":[2],"data_offsets":[4,12]})", 12),
              HasSubstr("does not begin where"));
  EXPECT_THAT(with(R"({"dtype":"F32","data_offsets":[0,8]})", 8), HasSubstr("damaged"));
  EXPECT_THAT(sentence_of(directory / "missing.safetensors"), HasSubstr("missing.safetensors"));
}

TEST(Safetensors, SaysWhyItCannotWrite) {
  EXPECT_THROW(write_safetensors("/proc/none/a.safetensors", {}, {}), Error);
}

}  // namespace
}  // namespace sevenfold
