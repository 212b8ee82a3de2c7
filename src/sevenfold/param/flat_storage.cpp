#include "sevenfold/param/flat_storage.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

// Of the tensor-parallel rank that holds most: parts of uneven tensors differ, and where a bucket
// ends must not, or ranks would sum different buckets.
int64_t most_local_elements(const Parameter& parameter, const RankContext& rank) {
  Coordinates last = rank.coordinates;
  last[static_cast<size_t>(Axis::kTp)] = rank.mesh->shape().tp - 1;
  return local_slice(parameter.spec(), *rank.mesh, last).num_elements();
}

using ParametersOfLayers = std::vector<std::vector<Parameter*>>;

std::map<const Parameter*, int64_t> count_uses(const ParametersOfLayers& layers) {
  std::map<const Parameter*, int64_t> uses;
  for (const auto& layer : layers)
    for (const Parameter* parameter : layer) ++uses[parameter];
  return uses;
}

// Of the parameters of a chunk, those of a tied table aside: the table's are these and others.
std::vector<int64_t> owners_of(const ParametersOfLayers& layers, const LayerRange& chunk) {
  std::vector<int64_t> fewest;
  for (int64_t layer = chunk.begin; layer < chunk.end; ++layer)
    for (const Parameter* parameter : layers[static_cast<size_t>(layer)])
      if (fewest.empty() || parameter->spec().owners.size() < fewest.size())
        fewest = parameter->spec().owners;
  return fewest;
}

// Cuts the order of completion into buckets; storage comes afterwards.
class BucketCut {
 public:
  BucketCut(const ParametersOfLayers& layers, const RankContext& rank, int64_t bucket_elements)
      : layers_(layers),
        rank_(rank),
        bucket_elements_(bucket_elements),
        uses_(count_uses(layers)) {}

  void add(const LayerRange& chunk) {
    const std::vector<int64_t> owners = owners_of(layers_, chunk);
    for (int64_t layer = chunk.end; layer-- > chunk.begin;) {
      for (Parameter* parameter : layers_[static_cast<size_t>(layer)]) {
        if (uses_[parameter] > 1 || parameter->spec().owners != owners)
          add_alone(parameter, layer, chunk);
        else
          add_to_open(parameter, layer);
      }
      if (open_elements_ >= bucket_elements_) close();
    }
    if (!open_.parameters.empty()) close();
  }

  std::vector<Bucket> take() {
    for (Bucket& bucket : alone_) buckets_.push_back(std::move(bucket));
    return std::move(buckets_);
  }

 private:
  void add_alone(Parameter* parameter, int64_t layer, const LayerRange& chunk) {
    const auto [entry, is_new] = alone_at_.try_emplace(parameter, alone_.size());
    if (is_new) alone_.push_back({.parameters = {parameter}, .first_layer = layer});
    Bucket& bucket = alone_[entry->second];
    bucket.first_layer = std::max(bucket.first_layer, layer);
    bucket.last_layer = is_new ? layer : std::min(bucket.last_layer, layer);
    std::vector<int64_t>& completing = bucket.completing_layers;
    std::erase_if(completing,
                  [&](int64_t other) { return other >= chunk.begin && other < chunk.end; });
    completing.push_back(layer);
  }

  void add_to_open(Parameter* parameter, int64_t layer) {
    if (open_.parameters.empty()) open_.first_layer = layer;
    open_.parameters.push_back(parameter);
    open_.last_layer = layer;
    open_elements_ += most_local_elements(*parameter, rank_);
  }

  void close() {
    open_.completing_layers = {open_.last_layer};
    buckets_.push_back(std::move(open_));
    open_ = {};
    open_elements_ = 0;
  }

  const ParametersOfLayers& layers_;
  const RankContext& rank_;
  const int64_t bucket_elements_;
  std::map<const Parameter*, int64_t> uses_;
  std::vector<Bucket> buckets_;
  std::vector<Bucket> alone_;
  std::map<const Parameter*, size_t> alone_at_;
  Bucket open_;
  int64_t open_elements_ = 0;
};

at::Tensor allocate(MemoryCategory category, int64_t elements, at::ScalarType dtype) {
  const MemoryScope scope(category);
  return at::zeros({elements}, at::TensorOptions().dtype(dtype));
}

bool is_linear(const Parameter& parameter) {
  return parameter.kind() == ParameterKind::kMatrix ||
         parameter.kind() == ParameterKind::kOutputMatrix;
}

// Elements that follow those of the bucket's parameters before.
void add_tensor_sum(Bucket& bucket, const std::string& group, int64_t offset, int64_t elements) {
  if (group.empty()) return;
  if (bucket.tensor_sums.empty() || bucket.tensor_sums.back().group != group)
    bucket.tensor_sums.push_back({group, offset, 0});
  bucket.tensor_sums.back().elements += elements;
}

// What one collective serves lies side by side: linear layers behind the rest, and copies, which
// may be either, between them.
int place_of(const Parameter& parameter) {
  const std::string group = tensor_sum_group(parameter.spec());
  const int place = group.empty() ? 0 : group == "tp" ? 1 : 2;
  return is_linear(parameter) ? 5 - place : place;
}

void order_parameters(Bucket& bucket) {
  std::stable_sort(
      bucket.parameters.begin(), bucket.parameters.end(),
      [](const Parameter* a, const Parameter* b) { return place_of(*a) < place_of(*b); });
}

void divide_split_backward(Bucket& bucket) {
  int64_t others = 0;
  for (const Parameter* parameter : bucket.parameters)
    if (!is_linear(*parameter)) others += parameter->num_elements();
  bucket.with_inputs = {0, others};
  const bool is_shared = bucket.parameters.size() == 1 &&
                         (bucket.first_layer != bucket.last_layer || !bucket.owner_group.empty());
  bucket.with_weights = {is_shared ? 0 : others, bucket.elements};
}

// Binds the weights, in stage 3 for the time of building; gradients follow.
void bind_weights(Bucket& bucket, const RankContext& rank, at::ScalarType dtype, ZeroStage stage) {
  std::vector<Slice> slices;
  int64_t& elements = bucket.elements;
  for (const Parameter* parameter : bucket.parameters) {
    slices.push_back(local_slice(parameter->spec(), *rank.mesh, rank.coordinates));
    add_tensor_sum(bucket, tensor_sum_group(parameter->spec()), elements,
                   slices.back().num_elements());
    elements += slices.back().num_elements();
  }
  const bool is_gathered = stage == ZeroStage::kParameters;
  bucket.weights = allocate(
      is_gathered ? MemoryCategory::kCommunication : MemoryCategory::kParameters, elements, dtype);
  int64_t offset = 0;
  for (size_t i = 0; i < slices.size(); ++i) {
    const at::Tensor flat = bucket.weights.narrow(0, offset, slices[i].num_elements());
    bucket.parameters[i]->bind(flat.view(slices[i].sizes), {});
    offset += flat.numel();
  }
}

// Calls lend(parameter, its view of `whole`), or with an undefined tensor where that is.
template <typename Lend>
void lend_views(const Bucket& bucket, const at::Tensor& whole, const Lend& lend) {
  int64_t offset = 0;
  for (Parameter* parameter : bucket.parameters) {
    const int64_t elements = parameter->num_elements();
    lend(*parameter, whole.defined() ? whole.narrow(0, offset, elements).view(parameter->sizes())
                                     : at::Tensor());
    offset += elements;
  }
}

void bind_gradients(Bucket& bucket) {
  lend_views(bucket, bucket.gradients, [](Parameter& parameter, at::Tensor gradient) {
    parameter.lend_gradient(std::move(gradient));
  });
}

// The part of each parameter that lies in this rank's shard, maybe none.
void bind_owned(Bucket& bucket) {
  int64_t offset = 0;
  for (Parameter* parameter : bucket.parameters) {
    const int64_t end = offset + parameter->num_elements();
    const int64_t from = std::clamp(bucket.shard.begin, offset, end);
    const int64_t to = std::clamp(bucket.shard.end, offset, end);
    const int64_t in_shard = from == to ? 0 : from - bucket.shard.begin;
    parameter->own({from - offset, to - offset},
                   bucket.owned_weights.narrow(0, in_shard, to - from),
                   bucket.owned_gradients.narrow(0, in_shard, to - from));
    offset = end;
  }
}

void cut(Bucket& bucket, const RankContext& rank, ZeroStage stage) {
  bucket.shard = {0, bucket.elements};
  if (stage == ZeroStage::kNone) return;
  const Communicator& group = rank.group(shard_group(rank.mesh->shape()));
  bucket.shard_sizes = even_cut(bucket.elements, group.size());
  const auto own = bucket.shard_sizes.begin() + group.rank();
  bucket.shard.begin = std::accumulate(bucket.shard_sizes.begin(), own, int64_t{0});
  bucket.shard.end = bucket.shard.begin + *own;
}

void split_off_shard(Bucket& bucket, ZeroStage stage, at::ScalarType type) {
  bucket.owned_weights = stage == ZeroStage::kParameters
                             ? allocate(MemoryCategory::kParameters, bucket.shard.size(), type)
                             : bucket.weights.narrow(0, bucket.shard.begin, bucket.shard.size());
}

void allocate_gradients(Bucket& bucket, ZeroStage stage, at::ScalarType type) {
  const ElementRange& shard = bucket.shard;
  if (stage >= ZeroStage::kGradients) {
    bucket.owned_gradients = allocate(MemoryCategory::kGradients, shard.size(), type);
    return;
  }
  bucket.gradients = allocate(MemoryCategory::kGradients, bucket.elements, type);
  bucket.owned_gradients = bucket.gradients.narrow(0, shard.begin, shard.size());
  bind_gradients(bucket);
}

}  // namespace

at::ScalarType gradient_type(at::ScalarType weight_type) {
  return weight_type == at::kDouble ? at::kDouble : at::kFloat;
}

std::vector<int64_t> even_cut(int64_t elements, int64_t parts) {
  std::vector<int64_t> sizes;
  for (int64_t part = 0; part < parts; ++part)
    sizes.push_back(elements * (part + 1) / parts - elements * part / parts);
  return sizes;
}

std::vector<Bucket> build_buckets(const std::vector<std::vector<Parameter*>>& layers,
                                  const RankContext& rank, at::ScalarType dtype,
                                  int64_t bucket_elements, ZeroStage stage,
                                  std::vector<LayerRange> chunks) {
  SEVENFOLD_CHECK(bucket_elements > 0);
  if (chunks.empty()) chunks.push_back({0, static_cast<int64_t>(layers.size())});
  BucketCut buckets_of(layers, rank, bucket_elements);
  for (const LayerRange& chunk : chunks) buckets_of.add(chunk);
  std::vector<Bucket> buckets = buckets_of.take();
  for (Bucket& bucket : buckets) {
    bucket.owner_group = owner_group(bucket.parameters.front()->spec());
    order_parameters(bucket);
    bind_weights(bucket, rank, dtype, stage);
    divide_split_backward(bucket);
    cut(bucket, rank, stage);
    split_off_shard(bucket, stage, dtype);
    allocate_gradients(bucket, stage, gradient_type(dtype));
    bind_owned(bucket);
    if (stage != ZeroStage::kParameters) continue;
    take_back_weights(bucket);
    bucket.weights = at::Tensor();
  }
  return buckets;
}

void lend_gradients(Bucket& bucket) {
  bucket.gradients = allocate(MemoryCategory::kCommunication, bucket.elements,
                              bucket.owned_gradients.scalar_type());
  bind_gradients(bucket);
}

void take_back_gradients(Bucket& bucket) {
  bucket.gradients = at::Tensor();
  bind_gradients(bucket);
}

void lend_weights(Bucket& bucket) {
  lend_views(bucket, bucket.weights, [](Parameter& parameter, at::Tensor weight) {
    parameter.lend_weight(std::move(weight));
  });
}

void take_back_weights(Bucket& bucket) {
  for (Parameter* parameter : bucket.parameters) parameter->lend_weight({});
}

}  // namespace sevenfold
