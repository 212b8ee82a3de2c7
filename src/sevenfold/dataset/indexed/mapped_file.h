#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace sevenfold {

// A whole file mapped read-only. Immutable, so any thread may read it; the bytes live as long as
// the object.
class MappedFile {
 public:
  // Throws DataError: missing, not a regular file, unreadable.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace sevenfold
