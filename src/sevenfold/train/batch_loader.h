#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "sevenfold/config/config.h"
#include "sevenfold/core/faults.h"
#include "sevenfold/dataset/order/sample_stream.h"
#include "sevenfold/dist/rank_context.h"
#include "sevenfold/nn/layer.h"

namespace sevenfold {

// Where a rank stands in the global batch.
struct BatchPlace {
  int64_t dp_rank = 0;
  int64_t dp_size = 1;
};
BatchPlace batch_place(const RankContext& rank);

// Reads the micro batches of one rank as tensors. Labels, masks and positions are made on uncut
// sequences. Every rank of one dp coordinate reads the same samples.
class BatchLoader {
 public:
  // stream and config outlive the loader. dtype: of the masks, that of the gradients.
  BatchLoader(const Config& config, const SampleStream& stream, BatchPlace place,
              at::ScalarType dtype, FaultSet faults = {});

  // The micro batches of the step that starts after `consumed` samples, in the order of the
  // experiment's loader.
  std::vector<Microbatch> step(int64_t consumed, int64_t num_microbatches) const;
  // One micro batch, not for training, of the places first .. end-1 (at least one) of the stream.
  Microbatch range(int64_t first, int64_t end) const;

 private:
  MicrobatchPlace microbatch_place(int64_t consumed, int64_t microbatch) const;
  Microbatch read(const std::vector<int64_t>& samples, int64_t index) const;

  const Config& config_;
  const SampleStream& stream_;
  BatchPlace place_;
  at::ScalarType dtype_;
  FaultSet faults_;
};

}  // namespace sevenfold
