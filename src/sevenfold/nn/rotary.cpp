#include "sevenfold/nn/rotary.h"

#include <ATen/ATen.h>
#include <ATen/Dispatch.h>

#include <cmath>

#include "sevenfold/core/error.h"
#include "sevenfold/nn/internal/autograd.h"
#include "sevenfold/nn/kernels.h"

namespace sevenfold {
namespace {

using internal::AutogradContext;
using internal::variable_list;

at::Tensor rotated(const at::Tensor& x, const RotaryTable& table, int direction) {
  SEVENFOLD_CHECK(x.dim() == 4 && x.size(1) <= table.cos.size(0));
  const at::Tensor y = at::empty_like(x);
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "rotate", [&] {
    kernels::rotate<scalar_t>(x.data_ptr<scalar_t>(), table.cos.data_ptr<scalar_t>(),
                              table.sin.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), x.size(0),
                              x.size(1), x.size(2), x.size(3), table.rotary,
                              static_cast<scalar_t>(direction));
  });
  return y;
}

struct RotateFunction : torch::autograd::Function<RotateFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const RotaryTable* table) {
    internal::save_pointer(context, "table", *table);
    return rotated(x.contiguous(), *table, 1);
  }

  static variable_list backward(AutogradContext* context, variable_list d_outputs) {
    const auto& table = internal::saved_pointer<const RotaryTable>(context, "table");
    return {rotated(d_outputs[0].contiguous(), table, -1), at::Tensor()};
  }
};

}  // namespace

RotaryTable rotary_table(int64_t length, int64_t head_size, double percent, double base,
                         at::ScalarType dtype) {
  RotaryTable table;
  table.rotary = static_cast<int64_t>(static_cast<double>(head_size) * percent);
  SEVENFOLD_CHECK(table.rotary % 2 == 0, "{} components of a head cannot be paired", table.rotary);
  const int64_t half = table.rotary / 2;
  const at::Tensor angles = at::empty({length, half}, at::TensorOptions().dtype(at::kDouble));
  double* values = angles.data_ptr<double>();
  for (int64_t position = 0; position < length; ++position)
    for (int64_t i = 0; i < half; ++i) {
      const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(table.rotary);
      values[position * half + i] = static_cast<double>(position) * std::pow(base, exponent);
    }
  table.cos = angles.cos().to(dtype);
  table.sin = angles.sin().to(dtype);
  return table;
}

at::Tensor rotate(const at::Tensor& x, const RotaryTable& table) {
  return RotateFunction::apply(x, &table);
}

}  // namespace sevenfold
