#include "bench/step/peak.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "sevenfold/nn/internal/gemm.h"

namespace sevenfold::bench {
namespace {

struct Shape {
  int64_t rows, columns, depth;
};
constexpr Shape kShapes[] = {
    {1024, 512, 512}, {1024, 1408, 512}, {1024, 512, 1408}, {512, 1408, 1024}};

double seconds_of(const std::function<void()>& product) {
  double best = 1e9;
  for (int repeat = 0; repeat < 3; ++repeat) {
    const auto begin = std::chrono::steady_clock::now();
    product();
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    best = std::min(best, passed.count());
  }
  return best;
}

}  // namespace

ProductPeak product_peak(Precision precision) {
  const at::NoGradGuard no_graph;
  const at::ScalarType type = precision == Precision::kFp32 ? at::kFloat : at::kBFloat16;
  ProductPeak peak;
  for (const Shape& shape : kShapes) {
    const at::TensorOptions options = at::TensorOptions().dtype(type);
    const at::Tensor a = at::ones({shape.rows, shape.depth}, options);
    const at::Tensor b = at::ones({shape.depth, shape.columns}, options);
    at::Tensor c = at::ones({shape.rows, shape.columns}, options);
    const double flops = 2.0 * static_cast<double>(shape.rows * shape.columns * shape.depth);
    peak.blas = std::max(peak.blas, flops / seconds_of([&] { at::mm_out(c, a, b); }));
    if (type != at::kFloat) continue;
    const double seconds = seconds_of([&] {
      internal::gemm({shape.rows, shape.columns, shape.depth}, {a.data_ptr<float>(), shape.depth},
                     {b.data_ptr<float>(), shape.columns},
                     internal::Matrix<float>{c.data_ptr<float>(), shape.columns},
                     internal::Store::kOverwrite);
    });
    peak.engine = std::max(peak.engine, flops / seconds);
  }
  return peak;
}

}  // namespace sevenfold::bench
