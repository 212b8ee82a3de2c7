#pragma once

#include <cstdint>

#include "sevenfold/core/narrow_floats.h"

namespace sevenfold::kernels {

// Fused loops over contiguous rows. T is the element type of weights and activations: float,
// double, BFloat16 or Float16; Wide<T> that of the arithmetic, of gradients of weights and of what
// is kept per row: fp64 for double, else fp32. Each result is rounded to T once. Sums run over
// interleaved partial sums in a fixed order (core/vector_math.h): a row's bits depend neither on
// where it stands nor on the processor.

// y = x * rstd * gain with rstd = 1 / sqrt(mean(x^2) + eps). x, y [rows, dim]; gain [dim]; rstd
// [rows].
template <typename T>
void rms_norm_forward(const T* x, const T* gain, T* y, Wide<T>* rstd, int64_t rows, int64_t dim,
                      double eps);

// dx [rows, dim] is overwritten, d_gain [dim] is added to.
template <typename T>
void rms_norm_backward(const T* dy, const T* x, const T* gain, const Wide<T>* rstd, T* dx,
                       Wide<T>* d_gain, int64_t rows, int64_t dim);

// y = (x - mean) * rstd * gain + bias with rstd = 1 / sqrt(variance + eps), the variance divided by
// dim. x, y [rows, dim]; gain, bias [dim]; mean, rstd [rows].
template <typename T>
void layer_norm_forward(const T* x, const T* gain, const T* bias, T* y, Wide<T>* mean,
                        Wide<T>* rstd, int64_t rows, int64_t dim, double eps);

// dx [rows, dim] is overwritten, d_gain and d_bias [dim] are added to.
template <typename T>
void layer_norm_backward(const T* dy, const T* x, const T* gain, const Wide<T>* mean,
                         const Wide<T>* rstd, T* dx, Wide<T>* d_gain, Wide<T>* d_bias, int64_t rows,
                         int64_t dim);

// Rotates the pairs (i, i + rotary/2) of the first `rotary` components of each head by the angle of
// the row's position; `direction` -1 rotates back (the backward pass). x, y [batch, length, heads,
// size]; cos, sin [length, rotary/2].
template <typename T>
void rotate(const T* x, const Wide<T>* cos, const Wide<T>* sin, T* y, int64_t batch, int64_t length,
            int64_t heads, int64_t size, int64_t rotary, Wide<T> direction);

// y = silu(gate) * up with silu(a) = a / (1 + e^-a), [count] each.
template <typename T>
void swiglu_forward(const T* gate, const T* up, T* y, int64_t count);
template <typename T>
void swiglu_backward(const T* dy, const T* gate, const T* up, T* d_gate, T* d_up, int64_t count);

// Cross entropy of each row of logits [rows, vocabulary] against its label:
// losses[row] = logsumexp - logits[label]. largest and inverse_sum [rows] give the softmax again:
// e^(x - largest) * inverse_sum.
template <typename T>
void cross_entropy_forward(const T* logits, const int64_t* labels, double* losses, Wide<T>* largest,
                           Wide<T>* inverse_sum, int64_t rows, int64_t vocabulary);
// The same where this rank has some columns of the vocabulary (none: 0), in two steps with a
// collective between and after them. largest [rows]: minus infinity without columns. sums
// [2, rows]: of e^(x - largest), and the label's logit or 0 where it is not among the columns.
template <typename T>
void row_maxima(const T* logits, Wide<T>* largest, int64_t rows, int64_t vocabulary);
template <typename T>
void exponential_sums(const T* logits, const int64_t* labels, const Wide<T>* largest, double* sums,
                      int64_t rows, int64_t vocabulary);
// d_logits = (softmax - one hot label) * scale[row]; may be the memory of logits. A row of scale 0
// is set to zero without being read. A label that is not among the columns is nobody's.
template <typename T>
void cross_entropy_backward(const T* logits, const int64_t* labels, const Wide<T>* largest,
                            const Wide<T>* inverse_sum, const Wide<T>* scale, T* d_logits,
                            int64_t rows, int64_t vocabulary);

// What table of `height` rows of `dim` elements is read by; an index beyond it reads zeros and adds
// nothing (rows of other ranks).
struct TableRows {
  const int64_t* index;
  int64_t count;
  int64_t height;
  int64_t dim;
};
// rows[i] = table[index[i]]. rows [count, dim], table [height, dim].
template <typename T>
void take_rows(const T* table, const TableRows& which, T* rows);
// table[index[i]] += rows[i], in the order of the rows.
template <typename T>
void add_rows(const T* rows, const TableRows& which, Wide<T>* table);

}  // namespace sevenfold::kernels
