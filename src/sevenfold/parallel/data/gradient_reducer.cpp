#include "sevenfold/parallel/data/gradient_reducer.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "sevenfold/core/error.h"
#include "sevenfold/parallel/data/rounded_sums.h"

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

GradientReducer::GradientReducer(std::vector<Bucket>& buckets, RankContext& rank, ZeroStage stage,
                                 bool sum_in_bf16)
    : buckets_(buckets),
      rank_(rank),
      group_(rank.group("dp-cp")),
      stage_(stage),
      sums_in_bf16_(sum_in_bf16) {
  for (const Bucket& bucket : buckets_) check_sum_axes(bucket);
}

void GradientReducer::begin_step() {
  for (Bucket& bucket : buckets_)
    reduces_every_microbatch() ? bucket.owned_gradients.zero_() : bucket.gradients.zero_();
}

void GradientReducer::begin_backward() {
  if (!reduces_every_microbatch()) return;
  int64_t top = 0;
  for (const Bucket& bucket : buckets_) top = std::max(top, bucket.first_layer);
  lend_to(top);
}

void GradientReducer::lend_to(int64_t layer) {
  for (Bucket& bucket : buckets_)
    if (bucket.first_layer == layer && !bucket.gradients.defined()) lend_gradients(bucket);
}

void GradientReducer::layer_complete(int64_t layer) {
  for (Bucket& bucket : buckets_)
    if (bucket.last_layer == layer) start(bucket);
  if (reduces_every_microbatch()) lend_to(layer - 1);
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

Work GradientReducer::reduce(Bucket& bucket) {
  if (rank_.faults.has(Fault::kDataParallelSumMissing)) return {};
  const at::ScalarType type = sums_in_bf16_ ? at::kBFloat16 : bucket.gradients.scalar_type();
  if (stage_ == ZeroStage::kNone) return all_reduce_as(type, group_, bucket.gradients);
  const at::Tensor own = bucket.gradients.narrow(0, bucket.shard.begin, bucket.shard.size());
  return reduce_scatter_as(type, group_, own, bucket.gradients, bucket.shard_sizes);
}

void GradientReducer::start(Bucket& bucket) {
  sum_inside_tensor_group(bucket);
  Work work = reduce(bucket);
  // Waited for, so that the fault does the same whenever the ranks get here.
  if (rank_.faults.has(Fault::kReduceBeforeLastMicrobatch)) work.wait();
  if (!reduces_every_microbatch()) {
    pending_.push_back(std::move(work));
    return;
  }
  work.wait();  // so that no two buckets' gradients are alive unless a layer adds to both
  add_to_shard(bucket);
}

void GradientReducer::add_to_shard(Bucket& bucket) {
  bucket.owned_gradients.add_(bucket.gradients.narrow(0, bucket.shard.begin, bucket.shard.size()));
  take_back_gradients(bucket);
}

void GradientReducer::finish() {
  for (Work& work : pending_) work.wait();
  pending_.clear();
  for (Bucket& bucket : buckets_) {
    if (rank_.faults.has(Fault::kDataParallelSumTwice)) bucket.owned_gradients.mul_(group_.size());
    if (rank_.faults.has(Fault::kDivisorTwice)) bucket.owned_gradients.div_(group_.size());
  }
}

}  // namespace sevenfold
