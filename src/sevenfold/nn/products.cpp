#include <ATen/ATen.h>

#include "sevenfold/nn/internal/products.h"

namespace sevenfold::internal {

// LibTorch 1.13 has no product of fp16 matrices on the CPU: it is done in fp32 there.

at::Tensor product(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() != at::kHalf || !a.is_cpu()) return at::mm(a, b);
  return at::mm(a.to(at::kFloat), b.to(at::kFloat)).to(at::kHalf);
}

void add_product(at::Tensor sum, const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() == sum.scalar_type()) {
    sum.addmm_(a, b);
  } else if (a.scalar_type() == at::kHalf && a.is_cpu()) {
    sum.addmm_(a.to(at::kFloat), b.to(at::kFloat));
  } else {
    sum.add_(at::mm(a, b));
  }
}

}  // namespace sevenfold::internal
