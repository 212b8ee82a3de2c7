#pragma once

#include <ATen/core/Tensor.h>

#include "sevenfold/core/error.h"
#include "sevenfold/core/narrow_floats.h"

namespace sevenfold::internal {

template <typename T>
struct ElementScalarType;
template <>
struct ElementScalarType<float> {
  static constexpr at::ScalarType value = at::kFloat;
};
template <>
struct ElementScalarType<double> {
  static constexpr at::ScalarType value = at::kDouble;
};
template <>
struct ElementScalarType<BFloat16> {
  static constexpr at::ScalarType value = at::kBFloat16;
};
template <>
struct ElementScalarType<Float16> {
  static constexpr at::ScalarType value = at::kHalf;
};
template <>
struct ElementScalarType<int64_t> {
  static constexpr at::ScalarType value = at::kLong;
};

// Type of gradients of weights, and of what is kept per row, in a run whose weights have `type`.
inline at::ScalarType wide_type(at::ScalarType type) {
  return type == at::kDouble ? at::kDouble : at::kFloat;
}

// The tensor's memory for the loops of kernels.h, which need contiguous CPU tensors.
template <typename T>
T* elements(const at::Tensor& tensor) {
  SEVENFOLD_CHECK(tensor.scalar_type() == ElementScalarType<T>::value && tensor.is_cpu() &&
                      tensor.is_contiguous(),
                  "{} tensor of {} elements on {}", at::toString(tensor.scalar_type()),
                  tensor.numel(), tensor.device().str());
  return static_cast<T*>(tensor.data_ptr());
}

// Calls loop(T{}) with the element type of weights and activations of `type`.
template <typename Loop>
void with_element_type(at::ScalarType type, const Loop& loop) {
  switch (type) {
    case at::kFloat:
      return loop(float{});
    case at::kDouble:
      return loop(double{});
    case at::kBFloat16:
      return loop(BFloat16{});
    case at::kHalf:
      return loop(Float16{});
    default:
      raise<InternalError>("nn: no kernels for {}", at::toString(type));
  }
}

}  // namespace sevenfold::internal
