#include "sevenfold/core/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

namespace fs = std::filesystem;

// 0, or the errno of the first step that failed; so the functions below.
int close_after(int file, int error) {
  if (::close(file) != 0 && error == 0) error = errno;
  return error;
}

int write_and_sync(const fs::path& path, std::string_view text) {
  const int file = ::open(path.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return errno;
  int error = 0;
  while (error == 0 && !text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (errno != EINTR) {
      error = errno;
    }
  }
  if (error == 0 && ::fsync(file) != 0) error = errno;
  return close_after(file, error);
}

// Makes the new name last. File systems that keep names in another way answer EINVAL.
int sync_folder(const fs::path& folder) {
  const int file =
      ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return errno;
  return close_after(file, ::fsync(file) != 0 && errno != EINVAL ? errno : 0);
}

}  // namespace

void write_file_atomically(const fs::path& path, std::string_view text, std::string_view module) {
  fs::path partial = path;
  partial += ".partial";
  int error = write_and_sync(partial, text);
  if (error == 0 && std::rename(partial.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) ::unlink(partial.c_str());
  if (error == 0) error = sync_folder(path.parent_path());
  if (error == 0) return;
  raise<Error>("{}{}cannot write {}: {}", module, module.empty() ? "" : ": ", path.string(),
               std::generic_category().message(error));
}

}  // namespace sevenfold
