#include "sevenfold/dataset/indexed/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "sevenfold/core/error.h"

namespace sevenfold {

MappedFile::MappedFile(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) raise<DataError>("dataset: cannot open {}: {}", path, std::strerror(errno));
  struct stat status {};
  const bool is_file = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
  const size_t num_bytes = is_file ? static_cast<size_t>(status.st_size) : 0;
  // An empty file cannot be mapped; it stands as an empty span.
  void* start = nullptr;
  if (num_bytes > 0) start = ::mmap(nullptr, num_bytes, PROT_READ, MAP_SHARED, descriptor, 0);
  const int error = errno;
  ::close(descriptor);
  if (!is_file) raise<DataError>("dataset: {} is not a regular file", path);
  if (start == MAP_FAILED)
    raise<DataError>("dataset: cannot map {} ({} bytes): {}", path, num_bytes,
                     std::strerror(error));
  bytes_ = {static_cast<const std::byte*>(start), num_bytes};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace sevenfold
