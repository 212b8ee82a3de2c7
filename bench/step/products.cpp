#include "bench/step/products.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "sevenfold/nn/attention.h"
#include "sevenfold/nn/internal/gemm.h"

namespace sevenfold::bench {
namespace {

using internal::gemm;
using internal::Matrix;
using internal::Store;

// Not zero, so that no product is of denormal or trivial numbers.
at::Tensor matrix(int64_t rows, int64_t columns) {
  return at::full({rows, columns}, 1.0 / 64.0, at::TensorOptions().dtype(at::kFloat));
}

float* data(const at::Tensor& x) {
  return x.data_ptr<float>();
}

// y = x W^T with gradients of all three.
struct Linear {
  Linear(int64_t tokens, int64_t in, int64_t out)
      : x(matrix(tokens, in)),
        y(matrix(tokens, out)),
        weight(matrix(out, in)),
        d_x(matrix(tokens, in)),
        d_y(matrix(tokens, out)),
        d_weight(matrix(out, in)) {}

  void forward() const {
    const int64_t tokens = x.size(0), in = x.size(1), out = y.size(1);
    gemm({tokens, out, in}, Matrix<const float>{data(x), in},
         Matrix<const float>{data(weight), in, true}, Matrix<float>{data(y), out},
         Store::kOverwrite);
  }
  void backward() const {
    const int64_t tokens = x.size(0), in = x.size(1), out = y.size(1);
    gemm({tokens, in, out}, Matrix<const float>{data(d_y), out},
         Matrix<const float>{data(weight), in}, Matrix<float>{data(d_x), in}, Store::kOverwrite);
    gemm({out, in, tokens}, Matrix<const float>{data(d_y), out, true},
         Matrix<const float>{data(x), in}, Matrix<float>{data(d_weight), in}, Store::kAdd);
  }

  at::Tensor x, y, weight, d_x, d_y, d_weight;
};

// One head of one sample, block by block as attention_head.cpp computes it: two products forward,
// five backward.
struct Head {
  Head(int64_t length, int64_t size)
      : rows(matrix(length, size)),
        sums(matrix(length, size)),
        scores(matrix(kAttentionBlock, length)) {}

  template <typename Products>
  void for_each_block(const Products& products) const {
    const int64_t length = rows.size(0);
    for (int64_t first = 0; first < length; first += kAttentionBlock) {
      const int64_t end = std::min(first + kAttentionBlock, length);
      products(end - first, end);
    }
  }
  void scores_of(int64_t block, int64_t keys) const {
    const int64_t size = rows.size(1);
    gemm({block, keys, size}, Matrix<const float>{data(rows), size},
         Matrix<const float>{data(rows), size, true}, Matrix<float>{data(scores), keys},
         Store::kOverwrite);
  }
  void mix(int64_t block, int64_t keys) const {
    const int64_t size = rows.size(1);
    gemm({block, size, keys}, Matrix<const float>{data(scores), keys},
         Matrix<const float>{data(rows), size}, Matrix<float>{data(sums), size}, Store::kOverwrite);
  }
  void add_for_keys(int64_t block, int64_t keys) const {
    const int64_t size = rows.size(1);
    gemm({keys, size, block}, Matrix<const float>{data(scores), keys, true},
         Matrix<const float>{data(rows), size}, Matrix<float>{data(sums), size}, Store::kAdd);
  }
  void forward() const {
    for_each_block([this](int64_t block, int64_t keys) {
      scores_of(block, keys);
      mix(block, keys);
    });
  }
  void backward() const {
    for_each_block([this](int64_t block, int64_t keys) {
      scores_of(block, keys);
      scores_of(block, keys);
      add_for_keys(block, keys);
      mix(block, keys);
      add_for_keys(block, keys);
    });
  }

  at::Tensor rows, sums, scores;
};

std::vector<Linear> linears_of(const ModelConfig& m, int64_t tokens) {
  const int64_t heads = m.num_attention_heads * m.kv_channels;
  const int64_t groups = m.num_query_groups * m.kv_channels;
  std::vector<Linear> linears;
  for (int64_t layer = 0; layer < m.num_layers; ++layer) {
    for (const int64_t out : {heads, groups, groups})
      linears.emplace_back(tokens, m.hidden_size, out);
    linears.emplace_back(tokens, heads, m.hidden_size);
    for (int half = 0; half < 2; ++half)
      linears.emplace_back(tokens, m.hidden_size, m.ffn_hidden_size);
    linears.emplace_back(tokens, m.ffn_hidden_size, m.hidden_size);
  }
  linears.emplace_back(tokens, m.hidden_size, m.vocab_size);
  return linears;
}

}  // namespace

double seconds_of_products(const Config& config) {
  const ModelConfig& m = config.model;
  const int64_t samples = config.batch.global_batch_size;
  static const std::vector<Linear> linears = linears_of(m, samples * m.seq_length);
  static const Head head(m.seq_length, m.kv_channels);
  const int64_t num_heads = m.num_layers * samples * m.num_attention_heads;
  const auto begin = std::chrono::steady_clock::now();
  for (const Linear& linear : linears) linear.forward();
  for (int64_t i = 0; i < num_heads; ++i) head.forward();
  std::for_each(linears.rbegin(), linears.rend(), [](const Linear& linear) { linear.backward(); });
  for (int64_t i = 0; i < num_heads; ++i) head.backward();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace sevenfold::bench
