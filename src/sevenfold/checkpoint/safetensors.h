#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sevenfold/dataset/indexed/mapped_file.h"

namespace sevenfold {

// Files of the safetensors format (huggingface/safetensors, README "Format"): 8 bytes of header
// length, little endian; the header, a JSON object {name: {dtype, shape, data_offsets}} with free
// text under "__metadata__"; then the tensors, row-major, without holes.

struct SafeTensor {
  std::string name;
  at::ScalarType type = at::kFloat;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;  // somebody else's
};

using SafeMetadata = std::map<std::string, std::string>;

// Makes the file and fsyncs it. Names are unique. Throws Error with path and reason.
void write_safetensors(const std::filesystem::path& path, const std::vector<SafeTensor>& tensors,
                       const SafeMetadata& metadata);

// An open file, mapped. Immutable: any thread may read it.
class SafetensorsFile {
 public:
  // Throws DataError, naming the file: missing, cut short, not of the format, or of an element type
  // that is not known here.
  explicit SafetensorsFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  const std::vector<SafeTensor>& tensors() const { return tensors_; }  // as they lie in the file
  const SafeMetadata& metadata() const { return metadata_; }

 private:
  std::filesystem::path path_;
  std::unique_ptr<MappedFile> file_;
  std::vector<SafeTensor> tensors_;
  SafeMetadata metadata_;
};

// "F32", ... Throws InternalError for types that no checkpoint holds.
std::string_view safetensors_name(at::ScalarType type);
// The type of a name, if it is known here.
std::optional<at::ScalarType> safetensors_type(std::string_view name);

}  // namespace sevenfold
