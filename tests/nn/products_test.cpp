#include "sevenfold/nn/internal/products.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace sevenfold::internal {
namespace {

at::Tensor stored(int64_t rows, int64_t columns, bool transposed) {
  return transposed ? at::randn({columns, rows}).t() : at::randn({rows, columns});
}

void expect_near_fp64(const at::Tensor& c, const at::Tensor& a, const at::Tensor& b,
                      const at::Tensor& before) {
  const at::Tensor expected = before.to(at::kDouble) + at::mm(a.to(at::kDouble), b.to(at::kDouble));
  EXPECT_LT((c.to(at::kDouble) - expected).abs().max().item<double>(), 1e-4);
}

// 4096 and 8192 rows: those that oneDNN's matmul takes over where `a` is transposed.
TEST(Products, OfEveryStorageOrderAreThoseOfFp64) {
  at::manual_seed(17);
  for (const int64_t rows : {37, 4096, 8192}) {
    for (const bool a_transposed : {false, true}) {
      for (const bool b_transposed : {false, true}) {
        SCOPED_TRACE(::testing::Message() << rows << " rows, " << a_transposed << b_transposed);
        const at::Tensor a = stored(rows, 29, a_transposed), b = stored(29, 21, b_transposed);
        expect_near_fp64(product(a, b), a, b, at::zeros({rows, 21}));
        const at::Tensor before = at::randn({rows, 21}), sum = before.clone();
        add_product(sum, a, b);
        expect_near_fp64(sum, a, b, before);
      }
    }
  }
}

}  // namespace
}  // namespace sevenfold::internal
