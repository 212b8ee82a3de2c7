#include "sevenfold/optim/clipping.h"

#include <ATen/ATen.h>

#include <cmath>

#include "sevenfold/core/error.h"
#include "sevenfold/dist/ledger.h"
#include "sevenfold/optim/update_kernels.h"
#include "sevenfold/param/shard_spec.h"

namespace sevenfold {
namespace {

double sum_of_squares(const Parameter& parameter) {
  const at::Tensor& gradient = parameter.gradient();
  SEVENFOLD_CHECK(gradient.defined() && gradient.is_cpu() && gradient.is_contiguous(),
                  "gradient of {} is not contiguous CPU memory", parameter.name());
  if (gradient.scalar_type() == at::kDouble) {
    return sevenfold::sum_of_squares(gradient.data_ptr<double>(), gradient.numel());
  }
  return sevenfold::sum_of_squares(gradient.data_ptr<float>(), gradient.numel());
}

double sum_over_group(double value, Communicator& group) {
  const MemoryScope scope(MemoryCategory::kCommunication);
  const at::Tensor sum = at::full({1}, value, at::TensorOptions().dtype(at::kDouble));
  group.all_reduce(sum).wait();
  return *sum.data_ptr<double>();
}

}  // namespace

double gradient_norm(const std::vector<Parameter*>& parameters, RankContext& context) {
  double total = 0.0;
  for (const Parameter* parameter : parameters) {
    if (counts_in_norm(parameter->spec(), *context.mesh, context.coordinates)) {
      total += sum_of_squares(*parameter);
    }
  }
  return std::sqrt(sum_over_group(total, context.group("tp-pp")));
}

double clip_factor(double norm, double clip) {
  // Megatron's constant: keeps the factor finite for a zero gradient.
  constexpr double kNormFloor = 1e-6;
  if (clip <= 0.0) return 1.0;
  const double factor = clip / (norm + kNormFloor);
  return factor >= 1.0 ? 1.0 : factor;
}

}  // namespace sevenfold
