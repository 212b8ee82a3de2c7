#pragma once

#include <cstdint>

#include "sevenfold/config/config.h"
#include "sevenfold/param/parameter.h"

namespace sevenfold {

// Start weights are functions of (name, seed, row-major index in the global unpadded tensor): every
// layout begins with the same bits. Source: proof.md, "Hot start"; ordinary start as Megatron's
// init_method_std.
struct StartOptions {
  StartKind kind = StartKind::kInit;
  uint64_t seed = 1234;
  double init_method_std = 0.02;
  int64_t num_layers = 1;  // output projections: std / sqrt(2 * num_layers)
};

// Fills `values`, the local part of the parameter (its weight or a master copy; contiguous, of any
// floating type; 16-bit values are rounded from fp32 ones).
// Hot start:
//   matrices sqrt(3) * 1.7 / sqrt(fan_in) * u, tables sqrt(3) * 0.3 * u, gains 1 + 0.1 u, biases
//   0.1 u.
// Ordinary start: normal(0, std) for matrices and tables, gains 1, biases 0.
void fill_start_values(const at::Tensor& values, const Parameter& parameter,
                       const StartOptions& options, const Slice& slice);
// The same for its weight.
void fill_start_values(Parameter& parameter, const StartOptions& options, const Slice& slice);

}  // namespace sevenfold
