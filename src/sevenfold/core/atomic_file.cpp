#include "sevenfold/core/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <span>
#include <system_error>

#include "sevenfold/core/durable.h"
#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

namespace fs = std::filesystem;

// 0, or the errno of the first step that failed.
int write_and_sync(const fs::path& path, std::string_view text) {
  const int file = ::open(path.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return errno;
  int error = write_all(file, std::as_bytes(std::span(text))) ? 0 : errno;
  if (error == 0 && ::fsync(file) != 0) error = errno;
  if (::close(file) != 0 && error == 0) error = errno;
  return error;
}

}  // namespace

void write_file_atomically(const fs::path& path, std::string_view text, std::string_view module) {
  fs::path partial = path;
  partial += ".partial";
  int error = write_and_sync(partial, text);
  if (error == 0 && std::rename(partial.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) ::unlink(partial.c_str());
  if (error == 0 && !sync_folder(path.parent_path())) error = errno;
  if (error == 0) return;
  raise<Error>("{}{}cannot write {}: {}", module, module.empty() ? "" : ": ", path.string(),
               std::generic_category().message(error));
}

}  // namespace sevenfold
