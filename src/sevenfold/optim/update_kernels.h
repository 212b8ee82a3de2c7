#pragma once

#include <cstdint>

#include "sevenfold/core/narrow_floats.h"

namespace sevenfold {

// Loops of the optimizers over contiguous CPU memory, for float and double. Torch-free. Arrays of
// one call do not overlap. Elements are independent, so a range may be cut at will: the bits stay
// the same, and so they do whatever vector instructions the processor has. Each array is read or
// written once: memory traffic is what a step costs.

// The 16-bit weights that the model computes with, written from the master weights in the pass that
// updates these: bit patterns, rounded to nearest, ties to even.
enum class RoundedFormat : uint8_t { kNone, kBf16, kFp16 };
struct RoundedWeights {
  RoundedFormat format = RoundedFormat::kNone;
  uint16_t* bits = nullptr;
};

// Factors of one AdamW step, made in fp64 from the settings and the step's number.
struct AdamWFactors {
  double lr = 0.0;
  double beta1 = 0.0;
  double beta2 = 0.0;
  double eps = 0.0;
  double weight_decay = 0.0;
  double gradient_scale = 1.0;  // of the gradient before anything else: clipping, loss scale
  double correction1 = 1.0;     // 1 - beta1^step
  double correction2 = 1.0;     // 1 - beta2^step
};

// A running mean of AdamW: in the type of the arithmetic, or in bf16 or fp16, rounded to nearest
// when it is stored. The other pointers are null. fp16 has too few exponents for the squares of
// gradients: a mean is what is stored times a unit, a power of two that all share. A step reads
// with one unit and stores with the next.
template <typename T>
struct MomentArray {
  T* full = nullptr;
  BFloat16* bf16 = nullptr;
  Float16* fp16 = nullptr;
  float unit = 1.0F;
  float next_unit = 1.0F;
};

// g = scale gradient;  m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2;  w -= lr ((m/c1) / (sqrt(v/c2)
// + eps) + wd w).  w takes m and v as computed, before they are rounded.
template <typename T>
struct AdamWArrays {
  T* weight;
  const T* gradient;
  MomentArray<T> exp_avg;
  MomentArray<T> exp_avg_sq;
  RoundedWeights rounded = {};
};
void adamw_update(const AdamWArrays<float>& arrays, int64_t num_elements,
                  const AdamWFactors& factors);
void adamw_update(const AdamWArrays<double>& arrays, int64_t num_elements,
                  const AdamWFactors& factors);

// The largest magnitudes that the means will have after the step: what next units are chosen by.
struct MomentMaxima {
  float exp_avg = 0.0F;
  float exp_avg_sq = 0.0F;
};
MomentMaxima adamw_maxima(const AdamWArrays<float>& arrays, int64_t num_elements,
                          const AdamWFactors& factors);
// The unit in which fp16 holds `maximum` as 2^14 to 2^15, so that rounding cannot overflow and
// every mean of at least 2^-28 of the maximum keeps all its bits. 1 for 0 and for what is not
// finite.
float fp16_unit(float maximum);

struct SgdFactors {
  double lr = 0.0;
  double momentum = 0.0;
  double weight_decay = 0.0;
  double gradient_scale = 1.0;
};

// g = scale gradient;  buffer = mu buffer + (g + wd w);  w -= lr buffer.  A null buffer stands for
// momentum 0.
template <typename T>
struct SgdArrays {
  T* weight;
  const T* gradient;
  T* buffer;
  RoundedWeights rounded = {};
};
void sgd_update(const SgdArrays<float>& arrays, int64_t num_elements, const SgdFactors& factors);
void sgd_update(const SgdArrays<double>& arrays, int64_t num_elements, const SgdFactors& factors);

// Sum of squares in fp64, summed in an order that depends on num_elements only.
double sum_of_squares(const float* values, int64_t num_elements);
double sum_of_squares(const double* values, int64_t num_elements);

}  // namespace sevenfold
