#include "sevenfold/checkpoint/safetensors.h"

#include <ATen/ATen.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "sevenfold/core/durable.h"
#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

static_assert(std::endian::native == std::endian::little, "the format is little endian");

constexpr std::string_view kMetadata = "__metadata__";
constexpr size_t kLengthBytes = 8;
constexpr size_t kMostBytes = size_t{1} << 60;  // of a tensor: products stay in range
constexpr size_t kAlignment = 8;                // of the first tensor

struct ElementType {
  at::ScalarType type;
  std::string_view name;
};
constexpr std::array<ElementType, 6> kElementTypes = {{{at::kDouble, "F64"},
                                                       {at::kFloat, "F32"},
                                                       {at::kBFloat16, "BF16"},
                                                       {at::kHalf, "F16"},
                                                       {at::kLong, "I64"},
                                                       {at::kInt, "I32"}}};

std::string header_text(const std::vector<SafeTensor>& tensors, const SafeMetadata& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header[std::string(kMetadata)] = metadata;
  size_t offset = 0;
  for (const SafeTensor& tensor : tensors) {
    header[tensor.name] = {{"dtype", safetensors_name(tensor.type)},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, offset + tensor.bytes.size()}}};
    offset += tensor.bytes.size();
  }
  std::string text = header.dump();
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  return text;
}

class NewFile {
 public:
  explicit NewFile(const fs::path& path)
      : path_(path),
        descriptor_(::open(path.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0644)) {
    if (descriptor_ < 0) fail();
  }
  ~NewFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void write(std::span<const std::byte> bytes) {
    if (!write_all(descriptor_, bytes)) fail();
  }
  void sync_and_close() {
    if (::fsync(descriptor_) != 0) fail();
    if (::close(std::exchange(descriptor_, -1)) != 0) fail();
  }

 private:
  [[noreturn]] void fail() const {
    raise<Error>("checkpoint: cannot write {}: {}", path_.string(),
                 std::generic_category().message(errno));
  }

  fs::path path_;
  int descriptor_;
};

[[noreturn]] void refuse(const fs::path& path, std::string_view reason) {
  raise<DataError>("checkpoint: {}: {}", path.string(), reason);
}

SafeTensor parse_tensor(const fs::path& path, const std::string& name, const Json& entry,
                        std::span<const std::byte> data) {
  const auto type_name = entry.at("dtype").get<std::string>();
  const auto type = safetensors_type(type_name);
  if (!type)
    refuse(path, fmt::format("tensor {} is of type {}, which is not known here", name, type_name));
  SafeTensor tensor{.name = name, .type = *type};
  tensor.shape = entry.at("shape").get<std::vector<int64_t>>();
  const auto offsets = entry.at("data_offsets").get<std::array<size_t, 2>>();
  size_t bytes = c10::elementSize(tensor.type);
  for (const int64_t size : tensor.shape) {
    if (size < 0 || (size > 0 && bytes > kMostBytes / static_cast<size_t>(size)))
      refuse(path, fmt::format("tensor {} has no possible shape", name));
    bytes *= static_cast<size_t>(size);
  }
  if (offsets[0] > offsets[1] || offsets[1] > data.size())
    refuse(path, fmt::format("the file ends inside tensor {}: it has {} bytes of tensors, the "
                             "tensor takes bytes {} to {}",
                             name, data.size(), offsets[0], offsets[1]));
  if (offsets[1] - offsets[0] != bytes)
    refuse(path, fmt::format("tensor {} has {} bytes and its shape needs {}", name,
                             offsets[1] - offsets[0], bytes));
  tensor.bytes = data.subspan(offsets[0], bytes);
  return tensor;
}

// The format allows no holes, so what is missing at the end shows.
void check_cover(const fs::path& path, const std::vector<SafeTensor>& tensors,
                 std::span<const std::byte> data) {
  const std::byte* end = data.data();
  for (const SafeTensor& tensor : tensors) {
    if (tensor.bytes.data() != end)
      refuse(path,
             fmt::format("tensor {} does not begin where the one before it ends", tensor.name));
    end += tensor.bytes.size();
  }
  const auto used = static_cast<size_t>(end - data.data());
  if (used != data.size())
    refuse(path, fmt::format("{} bytes are behind the last tensor", data.size() - used));
}

}  // namespace

std::string_view safetensors_name(at::ScalarType type) {
  for (const ElementType& known : kElementTypes)
    if (known.type == type) return known.name;
  raise<InternalError>("checkpoint: no name for element type {}", c10::toString(type));
}

std::optional<at::ScalarType> safetensors_type(std::string_view name) {
  for (const ElementType& known : kElementTypes)
    if (known.name == name) return known.type;
  return std::nullopt;
}

void write_safetensors(const fs::path& path, const std::vector<SafeTensor>& tensors,
                       const SafeMetadata& metadata) {
  const std::string header = header_text(tensors, metadata);
  const uint64_t length = header.size();
  NewFile file(path);
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(std::as_bytes(std::span<const char>(header)));
  for (const SafeTensor& tensor : tensors) file.write(tensor.bytes);
  file.sync_and_close();
}

SafetensorsFile::SafetensorsFile(const fs::path& path) : path_(path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) refuse(path, "there is no such file");
  file_ = std::make_unique<MappedFile>(path.string());
  const std::span<const std::byte> bytes = file_->bytes();
  uint64_t length = 0;
  if (bytes.size() < kLengthBytes) refuse(path, "the file is too short for a safetensors file");
  std::memcpy(&length, bytes.data(), kLengthBytes);
  if (length > bytes.size() - kLengthBytes)
    refuse(path, fmt::format("not a safetensors file, or cut short: its header would take {} of {} "
                             "bytes",
                             length, bytes.size()));
  const auto* text = reinterpret_cast<const char*>(bytes.data()) + kLengthBytes;
  const std::span<const std::byte> data = bytes.subspan(kLengthBytes + length);
  try {
    const Json header = Json::parse(text, text + length);
    for (const auto& [name, entry] : header.items()) {
      if (name == kMetadata) {
        metadata_ = entry.get<SafeMetadata>();
      } else {
        tensors_.push_back(parse_tensor(path, name, entry, data));
      }
    }
  } catch (const Json::exception& error) {
    refuse(path, fmt::format("the header is damaged ({})", error.what()));
  }
  std::stable_sort(tensors_.begin(), tensors_.end(), [](const auto& a, const auto& b) {
    return std::pair(a.bytes.data(), a.bytes.size()) < std::pair(b.bytes.data(), b.bytes.size());
  });
  check_cover(path, tensors_, data);
}

}  // namespace sevenfold
