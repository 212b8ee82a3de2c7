#include "sevenfold/dataset/order/index_cache.h"

#include <xxhash.h>

#include <filesystem>

#include "sevenfold/core/error.h"
#include "sevenfold/dataset/order/index_file.h"

namespace sevenfold {
namespace {

// Everything that the arrays follow from. The number is to be raised when they change for the same
// input.
std::string key_of(const std::string& identity, SequenceRange range,
                   const SampleIndexOptions& options) {
  return fmt::format(
      "format 1; {}; sequences {}..{}; samples {}; seq_length {}; seed {}; shuffle {}; drop_last "
      "{}; extra_token {}",
      identity, range.begin, range.end,
      options.num_samples ? std::to_string(*options.num_samples) : "of one epoch",
      options.seq_length, options.seed, options.shuffle, options.drop_last, options.extra_token);
}

void keep(const std::string& path, const std::string& key, const SampleIndex& index,
          const IndexCache& cache) {
  std::string reason;
  std::error_code error;
  std::filesystem::create_directories(cache.directory, error);
  if (error) {
    reason = fmt::format("dataset: cannot make {}: {}", cache.directory, error.message());
  } else {
    try {
      return write_index_file(path, key, index);
    } catch (const DataError& failure) {
      reason = failure.what();
    }
  }
  if (cache.notice)
    cache.notice(reason +
                 "; the sample order is kept in memory and built again by the next run (set "
                 "data_cache_path to a folder that can be written)");
}

}  // namespace

SampleIndex cached_sample_index(const SequenceSource& data, SequenceRange range,
                                const SampleIndexOptions& options, const IndexCache& cache) {
  const auto length = [&](int64_t sequence) { return data.sequence_length(sequence); };
  const SampleCounts counts = count_samples(data.name(), length, range, options);
  const bool is_small = counts.num_documents + counts.num_samples < cache.least_entries;
  const std::string identity = cache.directory.empty() || is_small ? "" : data.identity();
  if (identity.empty()) return build_sample_index(data.name(), length, range, options);

  const std::string key = key_of(identity, range, options);
  const auto path = std::filesystem::path(cache.directory) /
                    fmt::format("{:016x}.order", XXH3_64bits(key.data(), key.size()));
  if (auto kept = read_index_file(path.string(), key)) return *std::move(kept);
  SampleIndex index = build_sample_index(data.name(), length, range, options);
  keep(path.string(), key, index, cache);
  return index;
}

}  // namespace sevenfold
