#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>

namespace sevenfold {

enum class Resume : uint8_t {
  kAuto,  // from the newest whole checkpoint; without one the run starts anew and replaces its
          // metrics
  kNone,  // the directory must be empty
  kPath   // from a checkpoint that is named; the directory may hold what was done before
};

// The folder that a run writes to: metrics.jsonl, config.resolved.yaml, checkpoints. One
// process of a run opens it, before anything costly is built.
class RunDirectory {
 public:
  // Makes the folder and its parents and proves that files can be made in it. Throws ConfigError
  // when it cannot be used; then at most empty folders are left.
  // Locked while it exists: a second run in the same folder is refused. Leaves no file.
  static RunDirectory open(const std::filesystem::path& path, Resume resume);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path metrics() const { return path_ / "metrics.jsonl"; }
  std::filesystem::path memory() const { return path_ / "memory.json"; }
  std::filesystem::path resolved_config() const { return path_ / "config.resolved.yaml"; }

  void write_resolved_config(std::string_view yaml) const;
  // A run that starts anew replaces what an earlier one left: trace, memory report and event
  // files go, as the metrics do when they are opened.
  void remove_earlier_results() const;

 private:
  RunDirectory(std::filesystem::path path, std::shared_ptr<const int> lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}
  std::filesystem::path path_;
  std::shared_ptr<const int> lock_;  // descriptor of the folder; closing it gives the lock up
};

}  // namespace sevenfold
