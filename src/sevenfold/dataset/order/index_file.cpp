#include "sevenfold/dataset/order/index_file.h"

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "sevenfold/core/durable.h"
#include "sevenfold/core/error.h"
#include "sevenfold/dataset/indexed/mapped_file.h"

namespace sevenfold {
namespace {

constexpr std::array<char, 8> kMagic = {'7', 'F', 'O', 'R', 'D', 'E', 'R', '1'};

// Followed by the key, padded with zero bytes to a multiple of 8, and the three arrays.
struct Header {
  std::array<char, 8> magic = kMagic;
  int64_t key_bytes = 0;  // without padding
  int64_t num_epochs = 0;
  int64_t tokens_per_epoch = 0;
  int64_t separate_final_epoch = 0;
  int64_t num_documents = 0;
  int64_t num_starts = 0;
  int64_t num_shuffled = 0;
  uint64_t body_hash = 0;    // XXH3-64 of everything behind the header
  uint64_t header_hash = 0;  // of the fields above
};
static_assert(sizeof(Header) == 80 && sizeof(SampleStart) == 16);

uint64_t hash_fields(const Header& header) {
  return XXH3_64bits(&header, offsetof(Header, header_hash));
}

std::string padded(std::string key) {
  key.resize((key.size() + 7) / 8 * 8);
  return key;
}

template <typename T>
std::span<const std::byte> bytes_of(std::span<const T> values) {
  return std::as_bytes(values);
}

// The parts of a file behind its header, in order.
std::array<std::span<const std::byte>, 4> body_of(const std::string& padded_key,
                                                  const SampleIndex& index) {
  return {std::as_bytes(std::span<const char>(padded_key)), bytes_of(index.document_index),
          bytes_of(index.starts), bytes_of(index.shuffle_index)};
}

uint64_t hash_parts(const std::array<std::span<const std::byte>, 4>& parts) {
  XXH3_state_t* state = XXH3_createState();
  XXH3_64bits_reset(state);
  for (const auto part : parts) XXH3_64bits_update(state, part.data(), part.size());
  const uint64_t hash = XXH3_64bits_digest(state);
  XXH3_freeState(state);
  return hash;
}

// A file under a name of its own, removed unless it was moved.
class PartialFile {
 public:
  explicit PartialFile(const std::string& path) : path_(path) {
    static std::atomic<int64_t> number{0};  // threads of one process write apart, too
    constexpr int kMaxTries = 1000;         // a killed run with this process id may have left some
    for (int tries = 0; tries < kMaxTries && descriptor_ < 0; ++tries) {
      partial_ = fmt::format("{}.partial-{}-{}", path, ::getpid(), number++);
      descriptor_ = ::open(partial_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (descriptor_ < 0 && errno != EEXIST) break;
    }
    if (descriptor_ < 0) fail();
  }
  ~PartialFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!moved_) ::unlink(partial_.c_str());
  }
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  void write(std::span<const std::byte> bytes) {
    if (!write_all(descriptor_, bytes)) fail();
  }
  void move_in_place() {
    if (::fsync(descriptor_) != 0) fail();
    if (::rename(partial_.c_str(), path_.c_str()) != 0) fail();
    moved_ = true;
  }

 private:
  [[noreturn]] void fail() const {
    raise<DataError>("dataset: cannot write {}: {}", path_, std::strerror(errno));
  }

  std::string path_;
  std::string partial_;
  int descriptor_ = -1;
  bool moved_ = false;
};

void remove_leftovers(const std::filesystem::path& directory) {
  namespace fs = std::filesystem;
  std::error_code error;
  const auto oldest = fs::file_time_type::clock::now() - std::chrono::hours(24);
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (at->path().filename().string().find(".order.partial-") == std::string::npos) continue;
    if (at->last_write_time(ignored) < oldest && !ignored) fs::remove(at->path(), ignored);
  }
}

// Whether the sizes say what a file of `num_bytes` can hold. Compared one by one: sizes of a
// damaged header must not overflow.
bool fits(const Header& header, int64_t num_bytes) {
  int64_t left = num_bytes - static_cast<int64_t>(sizeof(Header));
  const auto take = [&](int64_t count, int64_t width) {
    if (left < 0 || count < 0 || count > left / width) return false;
    left -= count * width;
    return true;
  };
  return take((header.key_bytes + 7) / 8, 8) && take(header.num_documents, 8) &&
         take(header.num_starts, 16) && take(header.num_shuffled, 8) && left == 0;
}

// Consecutive arrays of a mapped file.
template <typename T>
std::span<const T> take_array(std::span<const std::byte>& bytes, int64_t count) {
  const auto size = static_cast<size_t>(count);
  const std::span<const T> array(reinterpret_cast<const T*>(bytes.data()), size);
  bytes = bytes.subspan(size * sizeof(T));
  return array;
}

std::optional<SampleIndex> parse(std::shared_ptr<const MappedFile> file, const std::string& key) {
  std::span<const std::byte> bytes = file->bytes();
  Header header;
  if (bytes.size() < sizeof(Header)) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof(Header));
  if (header.magic != kMagic || header.header_hash != hash_fields(header)) return std::nullopt;
  if (!fits(header, static_cast<int64_t>(bytes.size()))) return std::nullopt;
  bytes = bytes.subspan(sizeof(Header));
  if (XXH3_64bits(bytes.data(), bytes.size()) != header.body_hash) return std::nullopt;
  const std::string padded_key = padded(key);
  if (header.key_bytes != static_cast<int64_t>(key.size()) ||
      std::memcmp(bytes.data(), padded_key.data(), padded_key.size()) != 0)
    return std::nullopt;
  bytes = bytes.subspan(padded_key.size());
  SampleIndex index;
  index.num_epochs = header.num_epochs;
  index.tokens_per_epoch = header.tokens_per_epoch;
  index.separate_final_epoch = header.separate_final_epoch != 0;
  index.document_index = take_array<int64_t>(bytes, header.num_documents);
  index.starts = take_array<SampleStart>(bytes, header.num_starts);
  index.shuffle_index = take_array<int64_t>(bytes, header.num_shuffled);
  index.storage = std::move(file);
  return index;
}

}  // namespace

std::optional<SampleIndex> read_index_file(const std::string& path, const std::string& key) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;
  try {
    return parse(std::make_shared<const MappedFile>(path), key);
  } catch (const DataError&) {
    return std::nullopt;  // not readable: as good as missing
  }
}

void write_index_file(const std::string& path, const std::string& key, const SampleIndex& index) {
  const std::string padded_key = padded(key);
  const auto parts = body_of(padded_key, index);
  Header header;
  header.key_bytes = static_cast<int64_t>(key.size());
  header.num_epochs = index.num_epochs;
  header.tokens_per_epoch = index.tokens_per_epoch;
  header.separate_final_epoch = index.separate_final_epoch ? 1 : 0;
  header.num_documents = static_cast<int64_t>(index.document_index.size());
  header.num_starts = static_cast<int64_t>(index.starts.size());
  header.num_shuffled = static_cast<int64_t>(index.shuffle_index.size());
  header.body_hash = hash_parts(parts);
  header.header_hash = hash_fields(header);
  remove_leftovers(std::filesystem::path(path).parent_path());
  PartialFile file(path);
  file.write(std::as_bytes(std::span<const Header>(&header, 1)));
  for (const auto part : parts) file.write(part);
  file.move_in_place();
}

}  // namespace sevenfold
