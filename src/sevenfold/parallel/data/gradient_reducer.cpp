#include "sevenfold/parallel/data/gradient_reducer.h"

#include <ATen/ATen.h>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

// The gradients of one bucket are summed over one group, the axes that the ShardSpecs name; sums
// inside the tensor-parallel group come before.
void check_sum_axes(const Bucket& bucket) {
  const std::vector<Axis> expected = {Axis::kCp, Axis::kDp};
  for (const Parameter* parameter : bucket.parameters) {
    std::vector<Axis> axes = gradient_sum_axes(parameter->spec());
    std::erase(axes, Axis::kTp);
    SEVENFOLD_CHECK(axes == expected, "{} is not summed over dp and cp", parameter->name());
  }
}

bool is_left_out(const TensorSum& sum, FaultSet faults) {
  return faults.has(sum.group == "tp" ? Fault::kReplicatedGradientsNotSummed
                                      : Fault::kCopiesNotSummed);
}

}  // namespace

GradientReducer::GradientReducer(std::vector<Bucket>& buckets, RankContext& rank)
    : buckets_(buckets), rank_(rank), group_(rank.group("dp-cp")) {
  for (const Bucket& bucket : buckets_) check_sum_axes(bucket);
}

void GradientReducer::layer_complete(int64_t layer) {
  for (Bucket& bucket : buckets_)
    if (bucket.last_layer == layer) start(bucket);
}

// Norms, biases, learned positions, copies of keys and values: small beside the bucket, and the
// ranks of the group are in the same layer, so that it is waited for.
void GradientReducer::sum_inside_tensor_group(Bucket& bucket) {
  for (const TensorSum& sum : bucket.tensor_sums)
    if (!is_left_out(sum, rank_.faults))
      rank_.group(sum.group)
          .all_reduce(bucket.gradients.narrow(0, sum.offset, sum.elements))
          .wait();
}

void GradientReducer::start(Bucket& bucket) {
  sum_inside_tensor_group(bucket);
  if (rank_.faults.has(Fault::kDataParallelSumMissing)) return;
  pending_.push_back(group_.all_reduce(bucket.gradients));
  // Waited for, so that the fault does the same whenever the ranks get here.
  if (rank_.faults.has(Fault::kReduceBeforeLastMicrobatch)) pending_.back().wait();
}

void GradientReducer::finish() {
  for (Work& work : pending_) work.wait();
  pending_.clear();
  if (rank_.faults.has(Fault::kDataParallelSumTwice))
    for (Bucket& bucket : buckets_) group_.all_reduce(bucket.gradients).wait();
  if (rank_.faults.has(Fault::kDivisorTwice))
    for (Bucket& bucket : buckets_) bucket.gradients.div_(group_.size());
}

}  // namespace sevenfold
