#pragma once

#include "sevenfold/config/config.h"

namespace sevenfold::bench {

// Operations per second of matrix products on this thread, now: the best of several shapes of the
// step, into memory that is there already.
struct ProductPeak {
  double blas = 0.0;    // LibTorch's: OpenBLAS for fp32, oneDNN for bf16
  double engine = 0.0;  // the engine's own: oneDNN
};
ProductPeak product_peak(Precision precision);

}  // namespace sevenfold::bench
