#include "sevenfold/train/output/run_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "sevenfold/core/atomic_file.h"
#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const fs::path& path, std::string_view reason) {
  raise<ConfigError>(
      "train: cannot write to the output directory {}: {}; choose another with --out DIR",
      path.string(), reason);
}

std::string system_message(int error) {
  return std::generic_category().message(error);
}

// Asking for permissions is not enough: root always has them, and file systems may be read-only or
// full.
void prove_writable(const fs::path& path) {
  const fs::path probe = path / ".sevenfold-write-test";
  const int file = ::open(probe.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) refuse(path, system_message(errno));
  const bool written = ::write(file, "\n", 1) == 1;
  const int error = errno;
  ::close(file);
  ::unlink(probe.c_str());
  if (!written) refuse(path, system_message(error));
}

void make_directory(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::exists(status) && !fs::is_directory(status)) refuse(path, "it is not a directory");
  fs::create_directories(path, error);
  if (error) refuse(path, error.message());
}

// Two runs in one folder would write into each other's metrics. The lock goes with the process, so
// a killed run leaves none behind.
std::shared_ptr<const int> lock_directory(const fs::path& path) {
  const int directory = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) refuse(path, system_message(errno));
  std::shared_ptr<const int> lock(new int(directory), [](const int* file) {
    ::close(*file);
    delete file;
  });
  if (::flock(directory, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    refuse(path, "another run is writing to it");
  return lock;
}

}  // namespace

RunDirectory RunDirectory::open(const fs::path& path, Resume resume) {
  if (path.empty()) raise<ConfigError>("train: the output directory has no name; give --out DIR");
  make_directory(path);
  std::error_code error;
  const bool is_empty = fs::is_empty(path, error);
  if (error) refuse(path, error.message());
  if (resume == Resume::kNone && !is_empty) {
    raise<ConfigError>(
        "train: {} is not empty and --resume none starts anew; choose another with --out DIR, "
        "empty it, "
        "or leave out --resume",
        path.string());
  }
  std::shared_ptr<const int> lock = lock_directory(path);
  prove_writable(path);
  return RunDirectory(path, std::move(lock));
}

void RunDirectory::write_resolved_config(std::string_view yaml) const {
  write_file_atomically(resolved_config(), yaml, "train");
}

void RunDirectory::remove_earlier_results() const {
  std::error_code ignored;  // what cannot go stays, and does no harm to this run
  fs::remove(path_ / "trace.json", ignored);
  fs::remove(memory(), ignored);
  for (const fs::directory_entry& entry : fs::directory_iterator(path_ / "tensorboard", ignored))
    if (entry.path().filename().string().starts_with("events.out.tfevents."))
      fs::remove(entry.path(), ignored);
}

}  // namespace sevenfold
