#pragma once

#include <cstdint>
#include <vector>

#include "sevenfold/config/config.h"
#include "sevenfold/dataset/order/sampler.h"
#include "sevenfold/dataset/sample_source.h"

namespace sevenfold {

// The endless stream of samples that a run consumes: a source in the order of the experiment's
// loader. One for all ranks of a process, which read it at the same time: the permutations of
// cyclic order take 16 bytes a sample, however many ranks there are.
class SampleStream {
 public:
  // source outlives the stream. Throws ConfigError when the data is too small for the order
  // (cyclic).
  SampleStream(const Config& config, const SampleSource& source);

  const SampleSource& source() const { return source_; }
  // Numbers, in the source, of the samples at `count` places from `first` on.
  std::vector<int64_t> samples(int64_t first, int64_t count) const {
    return sampler_.samples(first, count);
  }

 private:
  const SampleSource& source_;
  Sampler sampler_;
};

}  // namespace sevenfold
