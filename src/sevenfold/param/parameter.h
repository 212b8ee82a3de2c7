#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "sevenfold/param/shard_spec.h"

namespace sevenfold {

// Families of start values (proof.md): standard deviation and hot-start scale follow from the kind.
enum class ParameterKind : uint8_t { kMatrix, kOutputMatrix, kTable, kGain, kBias };

// One logical parameter as this rank holds it. The operations that read it keep a pointer to the
// Parameter and look the weight up when backward runs, so weights may be gathered and freed in
// between. Not movable: graphs and buckets point to it.
class Parameter {
 public:
  Parameter(std::string name, ParameterKind kind, ShardSpec spec)
      : name_(std::move(name)), kind_(kind), spec_(std::move(spec)) {}
  Parameter(const Parameter&) = delete;
  Parameter& operator=(const Parameter&) = delete;

  const std::string& name() const { return name_; }
  ParameterKind kind() const { return kind_; }
  const ShardSpec& spec() const { return spec_; }
  int64_t num_dims() const { return static_cast<int64_t>(spec_.global_shape.size()); }

  // Local part, contiguous, never requires grad.
  const at::Tensor& weight() const { return weight_; }
  // Same shape; fp32, or fp64 in fp64 runs. Zeroed at step start; contributions are summed into it.
  const at::Tensor& gradient() const { return gradient_; }

  // Views into flat storage, set once when the buckets are built.
  void bind(at::Tensor weight, at::Tensor gradient) {
    weight_ = std::move(weight);
    gradient_ = std::move(gradient);
  }

 private:
  std::string name_;
  ParameterKind kind_;
  ShardSpec spec_;
  at::Tensor weight_;
  at::Tensor gradient_;
};

}  // namespace sevenfold
