#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "sevenfold/param/shard_spec.h"

namespace sevenfold {

// Families of start values (proof.md): standard deviation and hot-start scale follow from the kind.
enum class ParameterKind : uint8_t { kMatrix, kOutputMatrix, kTable, kGain, kBias };

// Elements begin .. end-1 of a flat sequence.
struct ElementRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const ElementRange&) const = default;
};

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

  // Local part, contiguous, never requires grad. Throws InternalError while this rank may not read
  // it: with ZeRO where it is not gathered, or not from the last step.
  const at::Tensor& weight() const;
  bool is_readable() const { return weight_.defined(); }
  // Of the local part, whether it is readable or not.
  const std::vector<int64_t>& sizes() const { return sizes_; }
  int64_t num_elements() const { return num_elements_; }
  at::ScalarType weight_type() const { return weight_type_; }
  // Same shape; fp32, or fp64 in fp64 runs. Zeroed at step start; contributions are summed into it.
  // With ZeRO only the owned elements of it hold the sum of all ranks in the end (stage 1), or it
  // is defined during backward passes only (stage 2).
  const at::Tensor& gradient() const { return gradient_; }

  // What this rank steps on and keeps optimizer states of: all elements of the local part, in
  // row-major order, or with ZeRO those in the rank's shard of the bucket, maybe none.
  ElementRange owned() const { return owned_; }
  at::Tensor owned_weight() const;    // [owned().size()], what steps are taken on
  at::Tensor owned_gradient() const;  // same size: the sum over all ranks once it is reduced
  bool is_bound() const;

  // Views into flat storage, set when the buckets are built; all elements are owned.
  void bind(at::Tensor weight, at::Tensor gradient);
  // Makes the rank own these elements only: their weights are in `weight`, their summed gradient is
  // in `gradient`.
  void own(ElementRange range, at::Tensor weight, at::Tensor gradient);
  // What is read from now on; undefined: nothing, until it is lent again.
  void lend_weight(at::Tensor weight) { weight_ = std::move(weight); }
  // What backward sums into from now on; undefined: nothing, until it is lent again.
  void lend_gradient(at::Tensor gradient) { gradient_ = std::move(gradient); }

 private:
  std::string name_;
  ParameterKind kind_;
  ShardSpec spec_;
  at::Tensor weight_;
  at::Tensor gradient_;
  std::vector<int64_t> sizes_;
  int64_t num_elements_ = 0;
  at::ScalarType weight_type_ = at::kFloat;
  ElementRange owned_;
  at::Tensor owned_weight_;    // undefined: the owned elements of weight_
  at::Tensor owned_gradient_;  // undefined: the owned elements of gradient_
};

}  // namespace sevenfold
