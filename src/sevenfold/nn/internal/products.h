#pragma once

#include <ATen/core/Tensor.h>

namespace sevenfold::internal {

// a * b, matrices of one type, in that type; sums are formed in fp32 or wider.
at::Tensor product(const at::Tensor& a, const at::Tensor& b);

// sum += a * b; a and b of one type, sum of that type or fp32.
void add_product(at::Tensor sum, const at::Tensor& a, const at::Tensor& b);

}  // namespace sevenfold::internal
