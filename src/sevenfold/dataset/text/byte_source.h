#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace sevenfold {

// The bytes of a file in order; of a name that ends in .gz, what is compressed in it.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Fills `bytes` from the front; returns how many, fewer only at the end. Throws ConfigError when
  // the file cannot be read, DataError when compressed data is damaged.
  virtual size_t read(std::span<char> bytes) = 0;
  // How much of the file on disk was read.
  virtual int64_t num_bytes_done() const = 0;
};

std::unique_ptr<ByteSource> open_byte_source(const std::string& path);

}  // namespace sevenfold
