#include "sevenfold/model/layer_dropout.h"

#include <numeric>

#include "sevenfold/parallel/sequence/sequence_shards.h"

namespace sevenfold {

LayerDropout::LayerDropout(double rate, RandomOperation operation, int64_t layer,
                           const ModelOptions& options)
    : tensor_(options.tensor),
      dropout_{.rate = rate,
               .site = {.seed = options.seed, .layer = layer, .operation = operation},
               .faults = options.faults} {}

bool LayerDropout::acts(const Microbatch& microbatch) const {
  return microbatch.is_training && dropout_.rate > 0.0;
}

at::Tensor LayerDropout::operator()(const at::Tensor& x, const Microbatch& microbatch) const {
  if (!acts(microbatch)) return x;
  const bool is_part =
      tensor_.splits_sequence() && !dropout_.faults.has(Fault::kSequenceOffsetDropped);
  return sevenfold::dropout(x, dropout_, sample_ids(microbatch),
                            {.position = is_part ? first_position(x.size(1), tensor_) : 0});
}

std::vector<int64_t> LayerDropout::sample_ids(const Microbatch& microbatch) const {
  std::vector<int64_t> ids = microbatch.sample_ids;
  if (dropout_.faults.has(Fault::kDropoutKeyedByRow)) std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

}  // namespace sevenfold
