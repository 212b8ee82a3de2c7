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
  await_all_layers();
}

void GradientReducer::begin_step() {
  for (Bucket& bucket : buckets_)
    reduces_every_microbatch() ? bucket.owned_gradients.zero_() : bucket.gradients.zero_();
  await_all_layers();
}

void GradientReducer::await_all_layers() {
  num_incomplete_.clear();
  for (const Bucket& bucket : buckets_) num_incomplete_.push_back(bucket.completing_layers.size());
}

bool GradientReducer::is_read_by(const Bucket& bucket, const LayerRange& chunk) const {
  return std::any_of(bucket.completing_layers.begin(), bucket.completing_layers.end(),
                     [&](int64_t layer) { return layer >= chunk.begin && layer < chunk.end; });
}

// A table that two chunks share is lent with the first layers: which one comes first varies.
void GradientReducer::begin_backward(const LayerRange& chunk, bool is_reduced) {
  if (!reduces_every_microbatch()) return;
  lowest_layer_ = chunk.begin;
  int64_t top = chunk.begin;
  for (Bucket& bucket : buckets_) {
    if (!is_read_by(bucket, chunk)) continue;
    const bool is_shared = bucket.completing_layers.size() > 1;
    if (!is_shared) top = std::max(top, bucket.first_layer);
    if ((is_shared || !is_reduced) && !bucket.gradients.defined()) lend_gradients(bucket);
  }
  lend_to(top);
}

void GradientReducer::lend_to(int64_t layer) {
  for (Bucket& bucket : buckets_)
    if (bucket.first_layer == layer && !bucket.gradients.defined()) lend_gradients(bucket);
}

void GradientReducer::layer_complete(int64_t layer) {
  for (size_t b = 0; b < buckets_.size(); ++b) {
    const std::vector<int64_t>& layers = buckets_[b].completing_layers;
    if (std::find(layers.begin(), layers.end(), layer) == layers.end()) continue;
    if (reduces_every_microbatch() || --num_incomplete_[b] == 0) start(buckets_[b]);
  }
  if (reduces_every_microbatch() && layer > lowest_layer_) lend_to(layer - 1);
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

// Owners list what they share in the same order, that of the model.
void GradientReducer::sum_over_owners() {
  if (rank_.faults.has(Fault::kOwnersNotSummed)) return;
  std::vector<Work> sums;
  for (const Bucket& bucket : buckets_)
    if (!bucket.owner_group.empty())
      sums.push_back(rank_.group(bucket.owner_group).all_reduce(bucket.owned_gradients));
  for (Work& sum : sums) sum.wait();
}

void GradientReducer::finish() {
  for (Work& work : pending_) work.wait();
  pending_.clear();
  sum_over_owners();
  for (Bucket& bucket : buckets_) {
    if (rank_.faults.has(Fault::kDataParallelSumTwice)) bucket.owned_gradients.mul_(group_.size());
    if (rank_.faults.has(Fault::kDivisorTwice)) bucket.owned_gradients.div_(group_.size());
  }
}

}  // namespace sevenfold
