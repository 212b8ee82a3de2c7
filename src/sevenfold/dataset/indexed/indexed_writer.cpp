#include "sevenfold/dataset/indexed/indexed_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>

#include "sevenfold/core/durable.h"
#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

constexpr size_t kFlushBytes = size_t{1} << 20;

template <typename T>
void put(std::vector<char>& to, T value) {
  const auto* bytes = reinterpret_cast<const char*>(&value);
  to.insert(to.end(), bytes, bytes + sizeof(T));
}

template <typename T>
void encode(std::vector<char>& to, std::span<const int64_t> tokens) {
  size_t end = to.size();
  to.resize(end + tokens.size() * sizeof(T));
  for (const int64_t token : tokens) {
    SEVENFOLD_CHECK(
        token >= std::numeric_limits<T>::min() && token <= std::numeric_limits<T>::max(),
        "token id {} in {} bytes", token, sizeof(T));
    const T value = static_cast<T>(token);
    std::memcpy(to.data() + end, &value, sizeof(T));
    end += sizeof(T);
  }
}

// Both names of a rename are durable only once their directory is.
void sync_directory(const std::filesystem::path& directory) {
  const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;  // some file systems refuse; the files themselves are durable
  ::fsync(descriptor);
  ::close(descriptor);
}

std::filesystem::path directory_of(const std::string& prefix) {
  const std::filesystem::path parent = std::filesystem::path(prefix).parent_path();
  return parent.empty() ? "." : parent;
}

void make_directory_of(const std::string& prefix) {
  std::error_code error;
  const std::filesystem::path directory = directory_of(prefix);
  std::filesystem::create_directories(directory, error);
  if (error)
    raise<ConfigError>(
        "dataset: cannot make the output directory {}: {}; choose another output prefix",
        directory.string(), error.message());
}

}  // namespace

// A file under a temporary name, removed unless it was moved to its real one.
class IndexedWriter::OutputFile {
 public:
  explicit OutputFile(std::string path)
      : path_(std::move(path)), partial_(fmt::format("{}.partial-{}", path_, ::getpid())) {
    descriptor_ = ::open(partial_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (descriptor_ < 0)
      raise<ConfigError>("dataset: cannot write {}: {}; choose another output prefix", path_,
                         std::strerror(errno));
  }
  ~OutputFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!moved_) ::unlink(partial_.c_str());
  }
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::span<const char> bytes) {
    if (!write_all(descriptor_, std::as_bytes(bytes))) fail();
  }
  void close() {
    if (::fsync(descriptor_) != 0) fail();
    const int result = ::close(descriptor_);
    descriptor_ = -1;
    if (result != 0) fail();
  }
  void move_in_place() {
    if (::rename(partial_.c_str(), path_.c_str()) != 0) fail();
    moved_ = true;
  }

 private:
  [[noreturn]] void fail() const {
    raise<DataError>("dataset: writing {} failed: {}; nothing was kept", path_,
                     std::strerror(errno));
  }

  std::string path_;
  std::string partial_;
  int descriptor_ = -1;
  bool moved_ = false;
};

ElementType element_type_for(int64_t vocab_size) {
  return vocab_size < 65500 ? ElementType::kU16 : ElementType::kI32;
}

IndexedWriter::IndexedWriter(const std::string& prefix, ElementType type)
    : prefix_(prefix), type_(type) {
  SEVENFOLD_CHECK(type == ElementType::kU16 || type == ElementType::kI32,
                  "only u16 and i32 are written");
  make_directory_of(prefix);
  bin_ = std::make_unique<OutputFile>(prefix + ".bin");
  idx_ = std::make_unique<OutputFile>(prefix + ".idx");
}

IndexedWriter::~IndexedWriter() = default;

void IndexedWriter::append(std::span<const int64_t> tokens) {
  if (type_ == ElementType::kU16) {
    encode<uint16_t>(encoded_, tokens);
  } else {
    encode<int32_t>(encoded_, tokens);
  }
  open_tokens_ += static_cast<int64_t>(tokens.size());
  if (encoded_.size() < kFlushBytes) return;
  bin_->write(encoded_);
  encoded_.clear();
}

void IndexedWriter::end_document() {
  if (open_tokens_ > std::numeric_limits<int32_t>::max())
    raise<DataError>(
        "dataset: document {} of {} has {} tokens, but the format allows {} in one; cut the "
        "text file in parts",
        num_documents(), prefix_, open_tokens_, std::numeric_limits<int32_t>::max());
  lengths_.push_back(static_cast<int32_t>(open_tokens_));
  num_tokens_ += open_tokens_;
  open_tokens_ = 0;
}

void IndexedWriter::write_index() {
  std::vector<char> index;
  const auto flush_when = [&](size_t limit) {
    if (index.size() < limit) return;
    idx_->write(index);
    index.clear();
  };
  constexpr std::string_view kMagic("MMIDIDX\0\0", 9);
  index.insert(index.end(), kMagic.begin(), kMagic.end());
  put(index, uint64_t{1});
  put(index, static_cast<uint8_t>(type_));
  put(index, static_cast<uint64_t>(lengths_.size()));
  put(index, static_cast<uint64_t>(lengths_.size() + 1));
  for (const int32_t length : lengths_) {
    put(index, length);
    flush_when(kFlushBytes);
  }
  int64_t position = 0;
  for (const int32_t length : lengths_) {
    put(index, position);
    position += length * element_bytes(type_);
    flush_when(kFlushBytes);
  }
  for (int64_t document = 0; document <= num_documents(); ++document) {
    put(index, document);
    flush_when(kFlushBytes);
  }
  flush_when(1);
}

void IndexedWriter::finish() {
  SEVENFOLD_CHECK(open_tokens_ == 0, "{} tokens belong to no document", open_tokens_);
  bin_->write(encoded_);
  encoded_.clear();
  bin_->close();
  write_index();
  idx_->close();
  // A .bin is the sign that a data set is there, so it goes last, and an older one goes first: no
  // moment shows a .bin beside an index that is not its own.
  ::unlink((prefix_ + ".bin").c_str());
  idx_->move_in_place();
  bin_->move_in_place();
  sync_directory(directory_of(prefix_));
}

}  // namespace sevenfold
