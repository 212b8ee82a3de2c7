#pragma once

#include <ATen/ATen.h>

#include <memory>

#include "sevenfold/dist/rank_context.h"
#include "sevenfold/parallel/tensor/placement.h"
#include "sevenfold/param/parameter.h"

namespace sevenfold::testing {

// This rank's part of a weight that the test knows whole.
inline at::Tensor part_of(const at::Tensor& whole, const ShardSpec& spec, const RankContext& rank) {
  const Slice slice = local_slice(spec, *rank.mesh, rank.coordinates);
  at::Tensor part = whole;
  for (size_t dim = 0; dim < slice.sizes.size(); ++dim)
    part = part.narrow(static_cast<int64_t>(dim), slice.offsets[dim], slice.sizes[dim]);
  return part.contiguous().clone();
}

// The columns of outputs [N, F] that a rank with this part of the weight [F, ..] computes.
inline at::Tensor columns_of(const at::Tensor& y, const ShardSpec& spec, const RankContext& rank) {
  const Slice slice = local_slice(spec, *rank.mesh, rank.coordinates);
  return y.narrow(1, slice.offsets[0], slice.sizes[0]).contiguous().clone();
}

inline std::unique_ptr<Parameter> cut_parameter(const at::Tensor& whole, const ShardSpec& spec,
                                                const RankContext& rank) {
  auto parameter = std::make_unique<Parameter>("weight", ParameterKind::kMatrix, spec);
  const at::Tensor weight = part_of(whole, spec, rank);
  parameter->bind(weight, at::zeros_like(weight));
  return parameter;
}

inline at::Tensor random_matrix(std::vector<int64_t> shape) {
  return at::randn(shape, at::TensorOptions(at::kDouble));
}

inline bool near(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && at::allclose(a, b, 1e-12, 1e-12);
}

}  // namespace sevenfold::testing
