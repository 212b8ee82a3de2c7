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

// What of `a` is in `b`; where nothing is, an empty range within `a`.
ElementRange overlap(ElementRange a, ElementRange b) {
  return {std::clamp(b.begin, a.begin, a.end), std::clamp(b.end, a.begin, a.end)};
}

// Elements of the range in each rank's shard.
std::vector<int64_t> cut_of(const Bucket& bucket, ElementRange range) {
  std::vector<int64_t> sizes;
  int64_t begin = 0;
  for (const int64_t size : bucket.shard_sizes) {
    sizes.push_back(overlap({begin, begin + size}, range).size());
    begin += size;
  }
  return sizes;
}

// What a backward pass, or a part of it, adds to.
ElementRange range_of(const Bucket& bucket, BackwardPart part = BackwardPart::kFull) {
  switch (part) {
    case BackwardPart::kFull:
      break;
    case BackwardPart::kInputOnly:
      return bucket.with_inputs;
    case BackwardPart::kWeightOnly:
      return bucket.with_weights;
  }
  return {0, bucket.elements};
}

at::Tensor elements(const at::Tensor& flat, ElementRange range) {
  return flat.narrow(0, range.begin, range.size());
}

}  // namespace

GradientReducer::GradientReducer(std::vector<Bucket>& buckets, RankContext& rank, ZeroStage stage,
                                 bool sum_in_bf16)
    : buckets_(buckets),
      rank_(rank),
      group_(rank.group(stage == ZeroStage::kNone ? "dp-cp" : shard_group(rank.mesh->shape()))),
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

// A table that two chunks share is lent with the first layers: which one comes first varies. A
// chunk without layers begins where the next one does, and adds to nothing.
void GradientReducer::begin_backward(const LayerRange& chunk) {
  if (!reduces_every_microbatch() || chunk.begin == chunk.end) return;
  lowest_layer_ = chunk.begin;
  int64_t top = chunk.begin;
  for (Bucket& bucket : buckets_) {
    if (!is_read_by(bucket, chunk)) continue;
    const bool is_shared = bucket.completing_layers.size() > 1;
    if (!is_shared) top = std::max(top, bucket.first_layer);
    if (is_shared && !bucket.gradients.defined()) lend_gradients(bucket);
  }
  lend_to(top);
}

void GradientReducer::lend_to(int64_t layer) {
  for (Bucket& bucket : buckets_)
    if (bucket.first_layer == layer && !bucket.gradients.defined()) lend_gradients(bucket);
}

void GradientReducer::layer_complete(int64_t layer, BackwardPart part) {
  for (size_t b = 0; b < buckets_.size(); ++b) {
    const std::vector<int64_t>& layers = buckets_[b].completing_layers;
    if (std::find(layers.begin(), layers.end(), layer) == layers.end()) continue;
    if (reduces_every_microbatch()) {
      start(buckets_[b], range_of(buckets_[b], part));
    } else if (--num_incomplete_[b] == 0) {
      start(buckets_[b], range_of(buckets_[b]));
    }
  }
  if (reduces_every_microbatch() && layer > lowest_layer_) lend_to(layer - 1);
}

// Norms, biases, learned positions, copies of keys and values: small beside the bucket, and the
// ranks of the group are in the same layer, so that it is waited for.
void GradientReducer::sum_inside_tensor_group(Bucket& bucket, ElementRange range) {
  for (const TensorSum& sum : bucket.tensor_sums) {
    const ElementRange part = overlap({sum.offset, sum.offset + sum.elements}, range);
    if (part.size() == 0 || is_left_out(sum, rank_.faults)) continue;
    rank_.group(sum.group).all_reduce(elements(bucket.gradients, part)).wait();
  }
}

at::ScalarType GradientReducer::sum_type(const Bucket& bucket) const {
  return sums_in_bf16_ ? at::kBFloat16 : bucket.owned_gradients.scalar_type();
}

Work GradientReducer::reduce(Bucket& bucket, ElementRange range) {
  if (rank_.faults.has(Fault::kDataParallelSumMissing) || range.size() == 0) return {};
  const at::ScalarType type = sum_type(bucket);
  if (stage_ == ZeroStage::kNone) return all_reduce_as(type, group_, bucket.gradients);
  const at::Tensor own = elements(bucket.gradients, overlap(bucket.shard, range));
  return reduce_scatter_as(type, group_, own, elements(bucket.gradients, range),
                           cut_of(bucket, range));
}

void GradientReducer::start(Bucket& bucket, ElementRange range) {
  sum_inside_tensor_group(bucket, range);
  Work work = reduce(bucket, range);
  // Waited for, so that the fault does the same whenever the ranks get here.
  if (rank_.faults.has(Fault::kReduceBeforeLastMicrobatch)) work.wait();
  if (!reduces_every_microbatch()) {
    pending_.push_back(std::move(work));
    return;
  }
  work.wait();  // so that no two buckets' gradients are alive unless a layer adds to both
  add_to_shard(bucket, range);
}

void GradientReducer::add_to_shard(Bucket& bucket, ElementRange range) {
  const ElementRange own = overlap(bucket.shard, range);
  elements(bucket.owned_gradients, {own.begin - bucket.shard.begin, own.end - bucket.shard.begin})
      .add_(elements(bucket.gradients, own));
  take_back_gradients(bucket);
}

void GradientReducer::sum_over_replicas() {
  if (stage_ == ZeroStage::kNone || rank_.mesh->shape().dp_replicate == 1 ||
      rank_.faults.has(Fault::kReplicasNotSummed))
    return;
  std::vector<Work> sums;
  for (Bucket& bucket : buckets_)
    sums.push_back(
        all_reduce_as(sum_type(bucket), rank_.group("dp-replicate"), bucket.owned_gradients));
  for (Work& work : sums) work.wait();
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
  sum_over_replicas();
  sum_over_owners();
  const int64_t ranks = rank_.group("dp-cp").size();
  for (Bucket& bucket : buckets_) {
    if (rank_.faults.has(Fault::kDataParallelSumTwice)) bucket.owned_gradients.mul_(ranks);
    if (rank_.faults.has(Fault::kDivisorTwice)) bucket.owned_gradients.div_(ranks);
  }
}

}  // namespace sevenfold
