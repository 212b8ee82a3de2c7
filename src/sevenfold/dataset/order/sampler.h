#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "sevenfold/config/config.h"

namespace sevenfold {

// Place of a microbatch in the endless stream of consumed samples. A step that starts after
// `consumed` samples reads places consumed .. consumed + global batch - 1, in both loaders; which
// sample stands at a place is the Sampler's answer.
struct MicrobatchPlace {
  int64_t consumed = 0;  // samples before this step, of all ranks
  int64_t microbatch = 0;
  int64_t dp_rank = 0;
  int64_t dp_size = 1;
  int64_t micro_batch_size = 1;

  // Of the microbatch's first row: consumed + (m*DP + r)*MB; row j stands j further.
  int64_t first() const { return consumed + (microbatch * dp_size + dp_rank) * micro_batch_size; }
};

struct SamplerOptions {
  LoaderKind kind = LoaderKind::kSingle;
  bool data_sharding = true;  // cyclic: each rank draws from a part of its own
  int64_t num_samples = 0;
  // Cyclic order is cut by these two: the global batch of another layout holds other samples.
  int64_t micro_batch_size = 1;
  int64_t dp_size = 1;
};

// Which sample stands at each place of the stream (Megatron's data loaders; rules: docs/data.md). A
// function of the place alone, so a resumed run, and one rank that follows the order of many, read
// what an uninterrupted run reads. Any thread may ask. Cyclic keeps the permutations of two epochs,
// 8 bytes a sample each.
class Sampler {
 public:
  // Throws ConfigError when cyclic data has fewer samples than one microbatch of all ranks.
  explicit Sampler(const SamplerOptions& options);

  // `single` starts over at the end of the data. Cyclic: groups of MB * DP places begin at
  // multiples of MB * DP, wherever a run starts (Megatron refuses to start between them).
  int64_t sample_at(int64_t place) const;
  // Samples at `count` places from `first` on.
  std::vector<int64_t> samples(int64_t first, int64_t count) const;

 private:
  using Permutation = std::shared_ptr<const std::vector<int64_t>>;
  struct Epoch {
    int64_t number = -1;
    Permutation permutation;
  };

  int64_t cyclic_sample(int64_t batch, int64_t rank, int64_t row) const;
  int64_t sharded_sample(int64_t batch, int64_t rank, int64_t row) const;
  int64_t unsharded_sample(int64_t batch, int64_t rank, int64_t row) const;
  Permutation permutation(int64_t epoch, int64_t size) const;

  SamplerOptions options_;
  int64_t batches_per_epoch_ = 0;  // cyclic: whole groups of MB * DP samples
  mutable std::mutex mutex_;
  mutable std::array<Epoch, 2> epochs_;  // last used first
};

}  // namespace sevenfold
