#include "sevenfold/nn/rotary.h"

#include <ATen/ATen.h>

#include <cmath>
#include <numbers>

#include "sevenfold/core/error.h"
#include "sevenfold/nn/autograd.h"
#include "sevenfold/nn/internal/elements.h"
#include "sevenfold/nn/kernels.h"

namespace sevenfold {
namespace {

using internal::AutogradContext;
using internal::elements;
using internal::variable_list;

// x [rows, length, heads, size] by rows of cos and sin [length, rotary/2], pairs (i, i + rotary/2).
at::Tensor rotate_halves(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin,
                         int64_t rotary, int direction) {
  const at::Tensor y = at::empty_like(x);
  internal::with_element_type(x.scalar_type(), [&]<typename T>(T) {
    kernels::rotate<T>(elements<T>(x), elements<Wide<T>>(cos), elements<Wide<T>>(sin),
                       elements<T>(y), x.size(0), x.size(1), x.size(2), x.size(3), rotary,
                       static_cast<Wide<T>>(direction));
  });
  return y;
}

// Moves components between pairs (2i, 2i+1) and pairs (i, i + rotary/2) of each head.
at::Tensor regroup_pairs(const at::Tensor& x, int64_t rotary, bool to_halves) {
  const int64_t half = rotary / 2;
  const at::Tensor rotated = x.narrow(-1, 0, rotary);
  std::vector<int64_t> shape = x.sizes().vec();
  shape.back() = to_halves ? half : 2;
  shape.push_back(to_halves ? 2 : half);
  const at::Tensor regrouped = rotated.reshape(shape).transpose(-1, -2).reshape(rotated.sizes());
  return at::cat({regrouped, x.narrow(-1, rotary, x.size(-1) - rotary)}, -1);
}

at::Tensor rotated(const at::Tensor& x, const RotaryTable& table, const at::Tensor& positions,
                   int direction) {
  SEVENFOLD_CHECK(x.dim() == 4 && x.size(1) <= table.cos.size(0));
  at::Tensor in = table.interleaved ? regroup_pairs(x, table.rotary, /*to_halves=*/true) : x;
  at::Tensor cos = table.cos, sin = table.sin;
  if (positions.defined()) {  // one long row whose angles are looked up
    cos = cos.index_select(0, positions.reshape(-1));
    sin = sin.index_select(0, positions.reshape(-1));
    in = in.view({1, x.size(0) * x.size(1), x.size(2), x.size(3)});
  }
  const at::Tensor out = rotate_halves(in, cos, sin, table.rotary, direction).view(x.sizes());
  return table.interleaved ? regroup_pairs(out, table.rotary, /*to_halves=*/false) : out;
}

struct RotateFunction : torch::autograd::Function<RotateFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const RotaryTable* table,
                            const at::Tensor* positions) {
    internal::save_pointer(context, "table", *table);
    context->save_for_backward({*positions});
    return rotated(x.contiguous(), *table, *positions, 1);
  }

  static variable_list backward(AutogradContext* context, variable_list d_outputs) {
    const auto& table = internal::saved_pointer<const RotaryTable>(context, "table");
    const at::Tensor positions = context->get_saved_variables()[0];
    return {rotated(d_outputs[0].contiguous(), table, positions, -1), at::Tensor(), at::Tensor()};
  }
};

// A wavelength longer than original / low is slow, one shorter than original / high is fast.
double scaled_frequency(double frequency, const RopeScaling& scaling) {
  const double wavelength = 2.0 * std::numbers::pi / frequency;
  const auto original = static_cast<double>(scaling.original_max_position_embeddings);
  const double low = scaling.low_frequency_factor, high = scaling.high_frequency_factor;
  if (wavelength > original / low) return frequency / scaling.factor;
  if (wavelength < original / high) return frequency;
  const double smooth = (original / wavelength - low) / (high - low);
  return (1.0 - smooth) * frequency / scaling.factor + smooth * frequency;
}

}  // namespace

std::vector<double> rotary_frequencies(int64_t rotary, double base,
                                       const std::optional<RopeScaling>& scaling) {
  std::vector<double> frequencies;
  for (int64_t i = 0; i < rotary / 2; ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(rotary);
    const double frequency = std::pow(base, exponent);
    frequencies.push_back(scaling ? scaled_frequency(frequency, *scaling) : frequency);
  }
  return frequencies;
}

RotaryTable rotary_table(const RotaryOptions& options, at::ScalarType dtype) {
  RotaryTable table;
  table.interleaved = options.interleaved;
  table.rotary = static_cast<int64_t>(static_cast<double>(options.head_size) * options.percent);
  SEVENFOLD_CHECK(table.rotary % 2 == 0, "{} components of a head cannot be paired", table.rotary);
  const std::vector<double> frequencies =
      rotary_frequencies(table.rotary, options.base, options.scaling);
  const at::Tensor angles =
      at::empty({options.length, table.rotary / 2}, at::TensorOptions().dtype(at::kDouble));
  auto* angle = angles.data_ptr<double>();
  for (int64_t position = 0; position < options.length; ++position)
    for (const double frequency : frequencies)
      *angle++ = static_cast<double>(position) * frequency / options.interpolation;
  table.cos = angles.cos().to(internal::wide_type(dtype));
  table.sin = angles.sin().to(internal::wide_type(dtype));
  return table;
}

at::Tensor rotate(const at::Tensor& x, const RotaryTable& table, const at::Tensor& positions) {
  return RotateFunction::apply(x, &table, &positions);
}

}  // namespace sevenfold
