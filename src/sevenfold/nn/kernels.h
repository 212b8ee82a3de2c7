#pragma once

#include <cstdint>

namespace sevenfold::kernels {

// Fused loops over contiguous rows, T = float or double. Sums run over eight interleaved partial
// sums in a fixed order, so a row's bits do not depend on where it stands.

// y = x * rstd * gain with rstd = 1 / sqrt(mean(x^2) + eps). x, y [rows, dim]; gain [dim]; rstd
// [rows].
template <typename T>
void rms_norm_forward(const T* x, const T* gain, T* y, T* rstd, int64_t rows, int64_t dim,
                      double eps);

// dx [rows, dim] is overwritten, d_gain [dim] is added to.
template <typename T>
void rms_norm_backward(const T* dy, const T* x, const T* gain, const T* rstd, T* dx, T* d_gain,
                       int64_t rows, int64_t dim);

// Rotates the pairs (i, i + rotary/2) of the first `rotary` components of each head by the angle of
// the row's position; `direction` -1 rotates back (the backward pass). x, y [batch, length, heads,
// size]; cos, sin [length, rotary/2].
template <typename T>
void rotate(const T* x, const T* cos, const T* sin, T* y, int64_t batch, int64_t length,
            int64_t heads, int64_t size, int64_t rotary, T direction);

}  // namespace sevenfold::kernels
