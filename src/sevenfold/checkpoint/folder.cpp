#include "sevenfold/checkpoint/folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <iterator>
#include <system_error>

#include "sevenfold/core/atomic_file.h"
#include "sevenfold/core/durable.h"
#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kPartial = ".partial";  // being written
constexpr std::string_view kRemoved = ".removed";  // being deleted
constexpr const char* kLatest = "latest";

[[noreturn]] void fail(const fs::path& path, const std::error_code& error) {
  raise<Error>("checkpoint: cannot write {}: {}", path.string(), error.message());
}

void check(const fs::path& path, const std::error_code& error) {
  if (error) fail(path, error);
}

fs::path with_suffix(const fs::path& folder, int64_t step, std::string_view suffix) {
  return folder / (step_folder_name(step) + std::string(suffix));
}

// A rename is durable once the folder is.
void make_durable(const fs::path& folder) {
  if (!sync_folder(folder)) fail(folder, {errno, std::generic_category()});
}

bool is_leftover(const fs::path& path) {
  const std::string name = path.filename().string();
  if (!name.starts_with(kPrefix)) return false;
  return name.ends_with(kPartial) || name.ends_with(kRemoved);
}

void remove_leftovers(const fs::path& folder) {
  std::vector<fs::path> leftovers;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (is_leftover(at->path())) leftovers.push_back(at->path());
  check(folder, error);
  for (const fs::path& path : leftovers) {
    fs::remove_all(path, error);
    check(path, error);
  }
}

// Out of sight at once, so that nobody meets a half-deleted checkpoint.
void remove_checkpoint(const fs::path& folder, int64_t step) {
  const fs::path removed = with_suffix(folder, step, kRemoved);
  std::error_code error;
  fs::rename(folder / step_folder_name(step), removed, error);
  if (!error) fs::remove_all(removed, error);
  check(removed, error);
}

// "step-00000004/" as "step-00000004", whose name can be read.
fs::path without_last_slash(const fs::path& path) {
  const fs::path normal = path.lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

// Nothing of what is no file: reading a folder throws.
std::string text_of(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return {};
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace

std::string step_folder_name(int64_t step) {
  return fmt::format("{}{:08}", kPrefix, step);
}

std::optional<int64_t> step_of_folder(const fs::path& path) {
  const std::string name = path.filename().string();
  if (!name.starts_with(kPrefix)) return std::nullopt;
  int64_t step = 0;
  const char* end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + kPrefix.size(), end, step);
  const bool is_number = error == std::errc() && stop == end && step >= 0;
  return is_number && step_folder_name(step) == name ? std::optional(step) : std::nullopt;
}

std::vector<int64_t> steps_in(const fs::path& folder) {
  std::vector<int64_t> steps;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const auto step = step_of_folder(at->path());
    std::error_code ignored;
    if (step && at->is_directory(ignored)) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::optional<fs::path> newest_checkpoint(const fs::path& folder) {
  const std::vector<int64_t> steps = steps_in(folder);
  const fs::path latest = folder / kLatest;
  std::error_code ignored;
  if (fs::exists(latest, ignored)) {
    const std::string name = text_of(latest);
    const auto step = step_of_folder(name);
    if (!step || !std::binary_search(steps.begin(), steps.end(), *step))
      raise<DataError>("checkpoint: {}: it says \"{}\", which is no checkpoint there; {}",
                       latest.string(), name,
                       steps.empty() ? "delete the file to start anew"
                                     : fmt::format("delete the file to go on from {}, the newest",
                                                   step_folder_name(steps.back())));
  }
  if (steps.empty()) return std::nullopt;
  return folder / step_folder_name(steps.back());
}

std::optional<fs::path> checkpoint_at(const fs::path& asked, std::optional<int64_t> step) {
  const fs::path path = without_last_slash(asked);
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return std::nullopt;
  if (step_of_folder(path) || fs::exists(path / "index.json", ignored)) return path;
  if (!step) return newest_checkpoint(path);
  const fs::path folder = path / step_folder_name(*step);
  return fs::is_directory(folder, ignored) ? std::optional(folder) : std::nullopt;
}

std::vector<int64_t> steps_to_remove(const std::vector<int64_t>& steps,
                                     const Retention& retention) {
  std::vector<int64_t> removed;
  if (retention.keep_latest <= 0 && retention.retain_interval <= 0) return removed;
  const auto stay = static_cast<size_t>(std::max<int64_t>(1, retention.keep_latest));
  for (size_t i = 0; i + stay < steps.size(); ++i) {
    const bool is_retained =
        retention.retain_interval > 0 && steps[i] % retention.retain_interval == 0;
    if (!is_retained) removed.push_back(steps[i]);
  }
  return removed;
}

fs::path partial_folder(const fs::path& folder, int64_t step) {
  return with_suffix(folder, step, kPartial);
}

void begin_checkpoint(const fs::path& folder, int64_t step) {
  std::error_code error;
  const bool is_made = fs::create_directories(folder, error);
  check(folder, error);
  if (is_made) make_durable(folder.parent_path());
  remove_leftovers(folder);
  const fs::path partial = partial_folder(folder, step);
  fs::create_directory(partial, error);
  check(partial, error);
}

void publish_checkpoint(const fs::path& folder, int64_t step, const Retention& retention) {
  const fs::path partial = partial_folder(folder, step);
  const fs::path whole = folder / step_folder_name(step);
  make_durable(partial);
  std::error_code error;
  if (fs::exists(whole, error)) remove_checkpoint(folder, step);
  fs::rename(partial, whole, error);
  check(whole, error);
  make_durable(folder);
  write_file_atomically(folder / kLatest, step_folder_name(step) + '\n');
  for (const int64_t gone : steps_to_remove(steps_in(folder), retention))
    remove_checkpoint(folder, gone);
}

}  // namespace sevenfold
