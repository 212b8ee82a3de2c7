#include <ATen/ATen.h>

#include "sevenfold/core/instruction_set.h"
#include "sevenfold/nn/internal/elements.h"
#include "sevenfold/nn/internal/gemm.h"
#include "sevenfold/nn/internal/products.h"

namespace sevenfold::internal {
namespace {

// Row-major or its transpose, with a stride that a matrix of gemm.h can say.
bool is_plain(const at::Tensor& x) {
  return (x.stride(1) == 1 && x.stride(0) >= x.size(1)) ||
         (x.stride(0) == 1 && x.stride(1) >= x.size(0));
}

// Neither LibTorch 1.13 nor oneDNN multiplies fp16 matrices on the CPU, and bf16 needs AVX-512.
bool is_done_in_fp32(const at::Tensor& a) {
  if (!a.is_cpu()) return false;
  return a.scalar_type() == at::kHalf ||
         (a.scalar_type() == at::kBFloat16 && instruction_set() != InstructionSet::kAvx512);
}

// Products that go to oneDNN.
bool suits_gemm(const at::Tensor& a, const at::Tensor& b) {
  const at::ScalarType type = a.scalar_type();
  return a.is_cpu() && (type == at::kFloat || type == at::kBFloat16) && b.scalar_type() == type &&
         a.numel() > 0 && b.numel() > 0 && is_plain(a) && is_plain(b);
}

template <typename T>
Matrix<const T> matrix(const at::Tensor& x) {
  const bool transposed = x.stride(1) != 1 || x.stride(0) < x.size(1);
  return {static_cast<const T*>(x.data_ptr()), transposed ? x.stride(1) : x.stride(0), transposed};
}

template <typename T>
Matrix<T> sum_matrix(const at::Tensor& c) {
  return {elements<T>(c), c.size(1)};
}

ProductShape shape_of(const at::Tensor& a, const at::Tensor& b) {
  return {a.size(0), b.size(1), a.size(1)};
}

}  // namespace

at::Tensor product(const at::Tensor& a, const at::Tensor& b) {
  if (is_done_in_fp32(a)) return product(a.to(at::kFloat), b.to(at::kFloat)).to(a.scalar_type());
  if (!suits_gemm(a, b)) return at::mm(a, b);
  const at::Tensor c = at::empty({a.size(0), b.size(1)}, a.options());
  if (a.scalar_type() == at::kFloat) {
    gemm(shape_of(a, b), matrix<float>(a), matrix<float>(b), sum_matrix<float>(c),
         Store::kOverwrite);
  } else {
    gemm(shape_of(a, b), matrix<BFloat16>(a), matrix<BFloat16>(b), sum_matrix<BFloat16>(c));
  }
  return c;
}

void add_product(at::Tensor sum, const at::Tensor& a, const at::Tensor& b) {
  if (is_done_in_fp32(a)) return add_product(sum, a.to(at::kFloat), b.to(at::kFloat));
  if (!suits_gemm(a, b) || !sum.is_contiguous() || sum.scalar_type() != at::kFloat) {
    if (a.scalar_type() == sum.scalar_type()) {
      sum.addmm_(a, b);
    } else {
      sum.add_(at::mm(a, b));
    }
  } else if (a.scalar_type() == at::kFloat) {
    gemm(shape_of(a, b), matrix<float>(a), matrix<float>(b), sum_matrix<float>(sum), Store::kAdd);
  } else {
    gemm(shape_of(a, b), matrix<BFloat16>(a), matrix<BFloat16>(b), sum_matrix<float>(sum),
         Store::kAdd);
  }
}

}  // namespace sevenfold::internal
