#include "sevenfold/parallel/tensor/placement.h"

namespace sevenfold {
namespace {

ShardSpec placed(std::vector<int64_t> shape, const TensorParallel& tensor,
                 const AxisPlacement& placement) {
  ShardSpec spec = replicated_spec(std::move(shape));
  if (tensor.is_split()) spec.placements.push_back(placement);
  return spec;
}

}  // namespace

ShardSpec column_parallel_spec(std::vector<int64_t> shape, const TensorParallel& tensor,
                               int64_t copies) {
  return placed(std::move(shape), tensor,
                {.axis = Axis::kTp, .dim = 0, .copies = copies, .partial_gradient = copies > 1});
}

ShardSpec row_parallel_spec(std::vector<int64_t> shape, const TensorParallel& tensor) {
  return placed(std::move(shape), tensor, {.axis = Axis::kTp, .dim = 1});
}

ShardSpec vocabulary_parallel_spec(std::vector<int64_t> shape, const TensorParallel& tensor) {
  return placed(std::move(shape), tensor, {.axis = Axis::kTp, .dim = 0, .is_uneven = true});
}

ShardSpec replicated_spec(std::vector<int64_t> shape, const TensorParallel& tensor,
                          bool has_partial_gradient) {
  return placed(std::move(shape), tensor,
                {.axis = Axis::kTp, .partial_gradient = has_partial_gradient});
}

int64_t first_vocabulary_row(int64_t vocab_size, const TensorParallel& tensor) {
  return vocab_size * tensor.rank() / tensor.size();
}

}  // namespace sevenfold
