#include "sevenfold/parallel/data/layer_weights.h"

#include <ATen/ATen.h>

#include "sevenfold/core/error.h"

namespace sevenfold {

LayerWeights::LayerWeights(std::vector<Bucket>& buckets, RankContext& rank,
                           const LayerWeightsOptions& options)
    : buckets_(buckets),
      rank_(rank),
      group_(rank.group(options.stage == ZeroStage::kNone ? "dp-cp"
                                                          : shard_group(rank.mesh->shape()))),
      options_(options),
      whole_(buckets.size()) {}

void LayerWeights::acquire(size_t layer, std::optional<size_t> next) {
  if (options_.stage == ZeroStage::kNone) return;
  for_buckets_of(layer, [this](size_t bucket) { make_readable(bucket); });
  if (next && frees()) for_buckets_of(*next, [this](size_t bucket) { start_gather(bucket); });
}

void LayerWeights::release(size_t layer, LayerPass pass) {
  if (!frees()) return;
  const bool keeps_whole = (pass == LayerPass::kForward && !options_.reshard_after_forward) ||
                           rank_.faults.has(Fault::kStaleWeights);
  for_buckets_of(layer, [&](size_t at) {
    const Bucket& bucket = buckets_[at];
    const int64_t last_reader =
        pass == LayerPass::kBackward ? bucket.last_layer : bucket.first_layer;
    if (last_reader != static_cast<int64_t>(layer)) return;
    keeps_whole ? take_back_weights(buckets_[at]) : free(at);
  });
}

void LayerWeights::finish() {
  for (Whole& whole : whole_) whole.gather.wait();
}

void LayerWeights::stepped() {
  if (options_.stage == ZeroStage::kNone) return;
  for (Whole& whole : whole_) ++whole.steps;
  if (rank_.faults.has(Fault::kStaleWeights)) return;
  // The last buckets are the first that forward reads.
  for (size_t at = buckets_.size(); at-- > 0;) {
    whole_[at].gather.wait();
    if (frees()) {
      free(at);
    } else {
      take_back_weights(buckets_[at]);
      start_gather(at);
    }
  }
  if (frees() || options_.overlap) return;
  for (size_t at = buckets_.size(); at-- > 0;) make_readable(at);
}

void LayerWeights::free_all() {
  if (!frees()) return;
  for (size_t at = 0; at < buckets_.size(); ++at) free(at);
}

void LayerWeights::visit(const std::function<void(const Bucket&)>& look) {
  for (size_t at = 0; at < buckets_.size(); ++at) {
    if (options_.stage != ZeroStage::kNone) make_readable(at);
    look(buckets_[at]);
    if (frees()) free(at);
  }
}

void LayerWeights::start_gather(size_t at) {
  Bucket& bucket = buckets_[at];
  Whole& whole = whole_[at];
  const bool is_there = bucket.weights.defined();
  if (is_there && (whole.gathered == whole.steps || rank_.faults.has(Fault::kStaleWeights))) return;
  if (!is_there) {
    const MemoryScope scope(MemoryCategory::kCommunication);
    bucket.weights = at::empty({bucket.elements}, bucket.owned_weights.options());
    if (rank_.faults.has(Fault::kWeightsReadEarly)) bucket.weights.zero_();  // as fresh memory is
  }
  whole.gathered = whole.steps;
  if (rank_.faults.has(Fault::kWeightsNotGathered)) return;
  whole.gather = group_.all_gather(bucket.weights, bucket.owned_weights, bucket.shard_sizes);
}

void LayerWeights::make_readable(size_t at) {
  Bucket& bucket = buckets_[at];
  Whole& whole = whole_[at];
  if (!bucket.weights.defined()) start_gather(at);
  if (rank_.faults.has(Fault::kWeightsReadEarly)) whole.gather = Work();
  whole.gather.wait();
  SEVENFOLD_CHECK(whole.gathered == whole.steps,
                  "{} and its neighbours are read as they were after {} steps; {} are taken",
                  bucket.parameters.front()->name(), whole.gathered, whole.steps);
  if (!bucket.parameters.front()->is_readable()) lend_weights(bucket);
}

void LayerWeights::free(size_t at) {
  Bucket& bucket = buckets_[at];
  if (!bucket.weights.defined()) return;
  whole_[at].gather.wait();
  take_back_weights(bucket);
  SEVENFOLD_CHECK(bucket.weights.storage().use_count() == 1,
                  "somebody keeps the gathered weights of {} and its neighbours",
                  bucket.parameters.front()->name());
  bucket.weights = at::Tensor();
}

// A tied table counts as read by the layers between its two as well.
template <typename Act>
void LayerWeights::for_buckets_of(size_t layer, const Act& act) {
  const auto index = static_cast<int64_t>(layer);
  for (size_t at = buckets_.size(); at-- > 0;)
    if (buckets_[at].last_layer <= index && index <= buckets_[at].first_layer) act(at);
}

}  // namespace sevenfold
