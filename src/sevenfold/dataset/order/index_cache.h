#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "sevenfold/dataset/order/sample_index.h"
#include "sevenfold/dataset/sequence_source.h"

namespace sevenfold {

// Where sample indices are kept between runs. Building one shuffles every document and sample of
// every epoch; reading it back maps a file.
struct IndexCache {
  std::string directory;  // empty: nothing is kept
  // Documents and samples of an index that is worth a file; smaller ones are built in well under a
  // second. Memory and file: 24 bytes a sample, 8 a document.
  int64_t least_entries = int64_t{1} << 22;
  // Says one sentence when an index cannot be kept.
  std::function<void(const std::string&)> notice;
};

// build_sample_index of `data`, from the cache where it has it, else built and kept there. A file's
// name and content name everything that the order follows from: all bytes of the .idx (by hash),
// the range, samples asked, sequence length, seed, the options and the version of the format. A
// file that is truncated, changed or of something else is built anew. Written under a temporary
// name, made durable and moved: a killed or a second writer does no harm. A folder that cannot be
// written costs one notice, nothing else. `data` without an identity is never kept.
SampleIndex cached_sample_index(const SequenceSource& data, SequenceRange range,
                                const SampleIndexOptions& options, const IndexCache& cache);

}  // namespace sevenfold
