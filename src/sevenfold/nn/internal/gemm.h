#pragma once

#include <cstdint>

#include "sevenfold/core/narrow_floats.h"

namespace sevenfold::internal {

// A row-major matrix in memory, or the transpose of one.
template <typename A>
struct Matrix {
  A* data = nullptr;
  int64_t stride = 0;  // elements from one stored row to the next
  bool transposed = false;
};

struct ProductShape {
  int64_t rows = 0;     // of a and c
  int64_t columns = 0;  // of b and c
  int64_t depth = 0;    // columns of a, rows of b
};

enum class Store : uint8_t { kOverwrite, kAdd };

// c = a * b, or c += a * b; c is not transposed and overlaps neither. Runs on the calling thread's
// LibTorch threads; in a parallel region, on the calling one alone.
// fp32 goes to oneDNN, which generates code for the processor that it finds: twice as fast as
// OpenBLAS's AVX2 kernels where there is AVX-512, and five times the kernels that OpenBLAS takes
// for a processor newer than itself.
void gemm(const ProductShape& shape, Matrix<const float> a, Matrix<const float> b, Matrix<float> c,
          Store store);
void gemm(const ProductShape& shape, Matrix<const double> a, Matrix<const double> b,
          Matrix<double> c, Store store);
// bf16 by oneDNN too (AMX or AVX-512 where the processor has them), summed in fp32; with an fp32 c
// nothing is rounded to bf16.
void gemm(const ProductShape& shape, Matrix<const BFloat16> a, Matrix<const BFloat16> b,
          Matrix<float> c, Store store);
void gemm(const ProductShape& shape, Matrix<const BFloat16> a, Matrix<const BFloat16> b,
          Matrix<BFloat16> c);

}  // namespace sevenfold::internal
