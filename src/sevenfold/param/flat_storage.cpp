#include "sevenfold/param/flat_storage.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

int64_t local_elements(const Parameter& parameter, const RankContext& rank) {
  return local_slice(parameter.spec(), *rank.mesh, rank.coordinates).num_elements();
}

// Of the fullest rank: all ranks must cut the same buckets, also where their parts differ by a row.
int64_t largest_local_elements(const ShardSpec& spec, const Mesh& mesh) {
  int64_t elements = spec.num_elements();
  for (const AxisPlacement& placement : spec.placements) {
    if (placement.dim < 0) continue;
    const int64_t size = spec.global_shape[static_cast<size_t>(placement.dim)];
    const int64_t parts = mesh.shape().degree(placement.axis) / placement.copies;
    elements = elements / size * ((size + parts - 1) / parts);
  }
  return elements;
}

// Cuts the order of completion into buckets; storage comes afterwards.
std::vector<Bucket> assign_buckets(const std::vector<std::vector<Parameter*>>& layers,
                                   const RankContext& rank, int64_t bucket_elements) {
  std::map<const Parameter*, int64_t> uses;
  for (const auto& layer : layers)
    for (const Parameter* parameter : layer) ++uses[parameter];

  std::vector<Bucket> buckets, shared;
  std::map<const Parameter*, size_t> shared_at;
  Bucket open;
  int64_t open_elements = 0;
  for (auto layer = static_cast<int64_t>(layers.size()) - 1; layer >= 0; --layer) {
    for (Parameter* parameter : layers[static_cast<size_t>(layer)]) {
      if (uses[parameter] > 1) {
        const auto [entry, is_new] = shared_at.try_emplace(parameter, shared.size());
        if (is_new) shared.push_back({.parameters = {parameter}});
        shared[entry->second].last_layer = layer;
        continue;
      }
      open.parameters.push_back(parameter);
      open.last_layer = layer;
      open_elements += largest_local_elements(parameter->spec(), *rank.mesh);
    }
    if (open_elements >= bucket_elements) {
      buckets.push_back(std::move(open));
      open = {};
      open_elements = 0;
    }
  }
  if (!open.parameters.empty()) buckets.push_back(std::move(open));
  for (Bucket& bucket : shared) buckets.push_back(std::move(bucket));
  return buckets;
}

at::Tensor allocate(MemoryCategory category, int64_t elements, at::ScalarType dtype) {
  const MemoryScope scope(category);
  return at::zeros({elements}, at::TensorOptions().dtype(dtype));
}

void add_tensor_sum(Bucket& bucket, const std::string& group, int64_t offset, int64_t elements) {
  if (group.empty()) return;
  if (bucket.tensor_sums.empty() || bucket.tensor_sums.back().group != group)
    bucket.tensor_sums.push_back({group, offset, 0});
  bucket.tensor_sums.back().elements += elements;
}

void bind_views(Bucket& bucket, const RankContext& rank) {
  int64_t offset = 0;
  for (Parameter* parameter : bucket.parameters) {
    const Slice slice = local_slice(parameter->spec(), *rank.mesh, rank.coordinates);
    const int64_t elements = slice.num_elements();
    add_tensor_sum(bucket, tensor_sum_group(parameter->spec()), offset, elements);
    parameter->bind(bucket.weights.narrow(0, offset, elements).view(slice.sizes),
                    bucket.gradients.narrow(0, offset, elements).view(slice.sizes));
    offset += elements;
  }
}

}  // namespace

at::ScalarType gradient_type(at::ScalarType weight_type) {
  return weight_type == at::kDouble ? at::kDouble : at::kFloat;
}

std::vector<Bucket> build_buckets(const std::vector<std::vector<Parameter*>>& layers,
                                  const RankContext& rank, at::ScalarType dtype,
                                  int64_t bucket_elements) {
  SEVENFOLD_CHECK(bucket_elements > 0);
  std::vector<Bucket> buckets = assign_buckets(layers, rank, bucket_elements);
  for (Bucket& bucket : buckets) {
    std::stable_sort(bucket.parameters.begin(), bucket.parameters.end(),
                     [](const Parameter* a, const Parameter* b) {
                       return tensor_sum_group(a->spec()) < tensor_sum_group(b->spec());
                     });
    int64_t elements = 0;
    for (const Parameter* parameter : bucket.parameters)
      elements += local_elements(*parameter, rank);
    bucket.weights = allocate(MemoryCategory::kParameters, elements, dtype);
    bucket.gradients = allocate(MemoryCategory::kGradients, elements, gradient_type(dtype));
    bind_views(bucket, rank);
  }
  return buckets;
}

}  // namespace sevenfold
