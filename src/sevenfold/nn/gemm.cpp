#include <ATen/ATen.h>
#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl.hpp>

#include "sevenfold/core/error.h"
#include "sevenfold/nn/internal/gemm.h"

namespace sevenfold::internal {
namespace {

// The memory as a tensor of LibTorch, which only reads it where it is const.
template <typename A>
at::Tensor view(Matrix<A> x, int64_t rows, int64_t columns) {
  const std::vector<int64_t> strides =
      x.transposed ? std::vector<int64_t>{1, x.stride} : std::vector<int64_t>{x.stride, 1};
  return at::from_blob(const_cast<std::remove_const_t<A>*>(x.data), {rows, columns}, strides,
                       at::TensorOptions().dtype(at::kDouble));
}

using dnnl::memory;

const dnnl::engine& processor() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

template <typename A>
memory onednn_matrix(Matrix<A> x, int64_t rows, int64_t columns) {
  using Element = std::remove_const_t<A>;
  const auto type =
      std::is_same_v<Element, float> ? memory::data_type::f32 : memory::data_type::bf16;
  const memory::dims strides = x.transposed ? memory::dims{1, x.stride} : memory::dims{x.stride, 1};
  return memory(memory::desc({rows, columns}, type, strides), processor(),
                const_cast<Element*>(x.data));
}

// oneDNN keeps the code that it has made for a shape: asking for it again takes microseconds.
template <typename A, typename C>
void matmul(const ProductShape& shape, Matrix<const A> a, Matrix<const A> b, Matrix<C> c,
            Store store) {
  const memory left = onednn_matrix(a, shape.rows, shape.depth);
  const memory right = onednn_matrix(b, shape.depth, shape.columns);
  const memory result = onednn_matrix(c, shape.rows, shape.columns);
  dnnl::primitive_attr attributes;
  if (store == Store::kAdd) {
    dnnl::post_ops add;
    add.append_sum(1.0F);
    attributes.set_post_ops(add);
  }
  const dnnl::matmul::desc description(left.get_desc(), right.get_desc(), result.get_desc());
  const dnnl::matmul::primitive_desc chosen(description, attributes, processor());
  dnnl::stream stream(processor());
  dnnl::matmul(chosen).execute(
      stream, {{DNNL_ARG_SRC, left}, {DNNL_ARG_WEIGHTS, right}, {DNNL_ARG_DST, result}});
  stream.wait();
}

// oneDNN's sgemm reads a transposed a in place where b has few columns. With rows a multiple of
// 16 KiB apart, a column of it lies in a few sets of the caches, and the product takes up to twice
// the time that it takes by matmul, which copies blocks of a first.
bool has_columns_in_few_sets(const ProductShape& shape, Matrix<const float> a) {
  return a.transposed && a.stride % 4096 == 0 && shape.columns < 1024;
}

}  // namespace

void gemm(const ProductShape& shape, Matrix<const float> a, Matrix<const float> b, Matrix<float> c,
          Store store) {
  if (has_columns_in_few_sets(shape, a)) return matmul(shape, a, b, c, store);
  const dnnl_status_t status =
      dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', shape.rows, shape.columns,
                 shape.depth, 1.0F, a.data, a.stride, b.data, b.stride,
                 store == Store::kAdd ? 1.0F : 0.0F, c.data, c.stride);
  SEVENFOLD_CHECK(status == dnnl_success, "oneDNN status {} for a product {} x {} x {}",
                  static_cast<int>(status), shape.rows, shape.columns, shape.depth);
}

void gemm(const ProductShape& shape, Matrix<const double> a, Matrix<const double> b,
          Matrix<double> c, Store store) {
  const at::NoGradGuard no_graph;
  const at::Tensor left = view(a, shape.rows, shape.depth);
  const at::Tensor right = view(b, shape.depth, shape.columns);
  at::Tensor sum = view(c, shape.rows, shape.columns);
  if (store == Store::kAdd) {
    sum.addmm_(left, right);
  } else {
    at::mm_out(sum, left, right);
  }
}

void gemm(const ProductShape& shape, Matrix<const BFloat16> a, Matrix<const BFloat16> b,
          Matrix<float> c, Store store) {
  matmul(shape, a, b, c, store);
}

void gemm(const ProductShape& shape, Matrix<const BFloat16> a, Matrix<const BFloat16> b,
          Matrix<BFloat16> c) {
  matmul(shape, a, b, c, Store::kOverwrite);
}

}  // namespace sevenfold::internal
