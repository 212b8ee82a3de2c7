#include "sevenfold/dataset/text/byte_source.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

constexpr unsigned kInflateBytes = 256U << 10U;

[[noreturn]] void fail_to_read(const std::string& path) {
  raise<ConfigError>("dataset: cannot read input {}: {}", path, std::strerror(errno));
}

class PlainSource final : public ByteSource {
 public:
  explicit PlainSource(const std::string& path) : path_(path), file_(path, std::ios::binary) {
    if (!file_) fail_to_read(path_);
  }
  size_t read(std::span<char> bytes) override {
    file_.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (!file_ && !file_.eof()) fail_to_read(path_);
    num_bytes_done_ += file_.gcount();
    return static_cast<size_t>(file_.gcount());
  }
  int64_t num_bytes_done() const override { return num_bytes_done_; }

 private:
  std::string path_;
  std::ifstream file_;
  int64_t num_bytes_done_ = 0;
};

class GzipSource final : public ByteSource {
 public:
  explicit GzipSource(const std::string& path) : path_(path), file_(::gzopen(path.c_str(), "rb")) {
    if (file_ == nullptr) fail_to_read(path_);
    ::gzbuffer(file_, kInflateBytes);
  }
  ~GzipSource() override { ::gzclose(file_); }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;

  size_t read(std::span<char> bytes) override {
    size_t count = 0;
    while (count < bytes.size()) {
      const size_t wanted = std::min<size_t>(bytes.size() - count, std::numeric_limits<int>::max());
      const int got = ::gzread(file_, bytes.data() + count, static_cast<unsigned>(wanted));
      if (got <= 0) break;
      count += static_cast<size_t>(got);
    }
    // A file that was cut short shows only here: its last gzread looks like an end.
    int error = Z_OK;
    const char* message = ::gzerror(file_, &error);
    if (error == Z_ERRNO) fail_to_read(path_);
    if (error != Z_OK && error != Z_STREAM_END)
      raise<DataError>("dataset: input {} is damaged: {}; fetch the file again", path_, message);
    return count;
  }
  int64_t num_bytes_done() const override { return ::gzoffset(file_); }

 private:
  std::string path_;
  gzFile file_;
};

}  // namespace

std::unique_ptr<ByteSource> open_byte_source(const std::string& path) {
  if (path.ends_with(".gz")) return std::make_unique<GzipSource>(path);
  return std::make_unique<PlainSource>(path);
}

}  // namespace sevenfold
