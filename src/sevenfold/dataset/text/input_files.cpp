#include "sevenfold/dataset/text/input_files.h"

#include <fnmatch.h>
#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <set>
#include <utility>

#include "sevenfold/core/error.h"
#include "sevenfold/dataset/text/byte_source.h"

namespace sevenfold {
namespace {

constexpr size_t kProbeBytes = 8192;

struct Matches {
  std::vector<std::string> paths;
  bool by_wildcard = false;
};

Matches expand(const std::string& pattern) {
  // A name that is there is meant as it stands, brackets and all.
  if (struct stat status{}; ::lstat(pattern.c_str(), &status) == 0) return {{pattern}, false};
  glob_t matches{};
  const int result =
      ::glob(pattern.c_str(), GLOB_ERR | GLOB_NOSORT | GLOB_TILDE, nullptr, &matches);
  std::vector<std::string> paths(matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
  ::globfree(&matches);
  if (result == GLOB_NOMATCH || (result == 0 && paths.empty()))
    raise<ConfigError>("dataset: no file matches input \"{}\"; check the path, and quote wildcards",
                       pattern);
  if (result != 0)
    raise<ConfigError>("dataset: cannot list files for input \"{}\": {}", pattern,
                       result == GLOB_ABORTED ? std::strerror(errno) : "out of memory");
  std::sort(paths.begin(), paths.end());  // byte order: glob's own depends on the locale
  return {std::move(paths), true};
}

bool is_excluded(const std::string& path, const std::vector<std::string>& exclusions) {
  const std::string name = path.substr(path.rfind('/') + 1);  // npos + 1 = 0: the whole path
  return std::any_of(exclusions.begin(), exclusions.end(), [&](const std::string& pattern) {
    const bool by_name = pattern.find('/') == std::string::npos;
    return ::fnmatch(pattern.c_str(), by_name ? name.c_str() : path.c_str(), 0) == 0;
  });
}

bool is_binary(const std::string& path) {
  std::array<char, kProbeBytes> head{};
  const size_t count = open_byte_source(path)->read(head);
  return std::memchr(head.data(), 0, count) != nullptr;
}

// Why a path that is no text file cannot be used; empty: it can.
std::string reason_to_skip(const std::string& path, const struct stat& status) {
  if (S_ISDIR(status.st_mode)) return "directory";
  if (!S_ISREG(status.st_mode)) return "no regular file";
  return is_binary(path) ? "binary" : "";
}

}  // namespace

int64_t InputFiles::num_bytes() const {
  int64_t sum = 0;
  for (const InputFile& file : files) sum += file.num_bytes;
  return sum;
}

InputFiles find_input_files(const std::vector<std::string>& globs) {
  std::vector<std::string> patterns;
  std::vector<std::string> exclusions;
  for (const std::string& entry : globs)
    entry.starts_with('!') ? exclusions.push_back(entry.substr(1)) : patterns.push_back(entry);
  if (patterns.empty())
    raise<ConfigError>("dataset: no input files are named; give at least one path or glob");

  InputFiles found;
  std::set<std::pair<dev_t, ino_t>> seen;
  for (const std::string& pattern : patterns) {
    const Matches matches = expand(pattern);
    for (const std::string& path : matches.paths) {
      if (is_excluded(path, exclusions)) continue;
      struct stat status {};
      if (::stat(path.c_str(), &status) != 0)
        raise<ConfigError>("dataset: cannot read input {}: {}", path, std::strerror(errno));
      if (!seen.emplace(status.st_dev, status.st_ino).second) continue;
      const std::string reason = reason_to_skip(path, status);
      if (reason.empty()) {
        found.files.push_back({path, static_cast<int64_t>(status.st_size)});
      } else if (matches.by_wildcard) {
        found.skipped.push_back(fmt::format("{} ({})", path, reason));
      } else {
        raise<ConfigError>("dataset: input {} is no text file: {}; name text files or a glob", path,
                           reason);
      }
    }
  }
  if (found.files.empty())
    raise<ConfigError>(
        "dataset: the inputs name no text file ({} skipped: directories and files with "
        "zero bytes are not text)",
        found.skipped.size());
  return found;
}

}  // namespace sevenfold
