#include "sevenfold/optim/clipping.h"

#include <ATen/ATen.h>

#include <cmath>

#include "sevenfold/core/error.h"
#include "sevenfold/dist/ledger.h"
#include "sevenfold/optim/update_kernels.h"
#include "sevenfold/param/shard_spec.h"

namespace sevenfold {
namespace {

double sum_of_squares(const at::Tensor& values, const Parameter& parameter) {
  SEVENFOLD_CHECK(values.defined() && values.is_cpu() && values.is_contiguous(),
                  "{} is not contiguous CPU memory", parameter.name());
  if (values.scalar_type() == at::kDouble)
    return sevenfold::sum_of_squares(values.data_ptr<double>(), values.numel());
  return sevenfold::sum_of_squares(values.data_ptr<float>(), values.numel());
}

double sum_over_group(double value, Communicator& group) {
  const MemoryScope scope(MemoryCategory::kCommunication);
  const at::Tensor sum = at::full({1}, value, at::TensorOptions().dtype(at::kDouble));
  group.all_reduce(sum).wait();
  return *sum.data_ptr<double>();
}

// Each logical element once: adds `of(parameter)` over those that this rank counts.
template <typename Of>
double sum_over_rank(const std::vector<Parameter*>& parameters, const RankContext& context,
                     const Of& of) {
  double total = 0.0;
  for (const Parameter* parameter : parameters)
    if (counts_in_norm(parameter->spec(), *context.mesh, context.coordinates))
      total += of(*parameter);
  return total;
}

// Then over the ranks.
template <typename Of>
double sum_over_model(const std::vector<Parameter*>& parameters, RankContext& context,
                      const std::string& group, const Of& of) {
  return sum_over_group(sum_over_rank(parameters, context, of), context.group(group));
}

}  // namespace

double local_gradient_squares(const std::vector<Parameter*>& parameters,
                              const RankContext& context) {
  return sum_over_rank(parameters, context, [](const Parameter& parameter) {
    return sum_of_squares(parameter.owned_gradient(), parameter);
  });
}

double gradient_norm(const std::vector<Parameter*>& parameters, RankContext& context,
                     const std::string& group) {
  return std::sqrt(
      sum_over_group(local_gradient_squares(parameters, context), context.group(group)));
}

double weight_norm(const std::vector<Parameter*>& parameters, const Optimizer& optimizer,
                   RankContext& context, const std::string& group) {
  return std::sqrt(sum_over_model(parameters, context, group, [&](const Parameter& parameter) {
    return sum_of_squares(optimizer.full_weight(parameter), parameter);
  }));
}

int64_t zeros_in_gradient(const std::vector<Parameter*>& parameters, RankContext& context,
                          const std::string& group) {
  const double zeros = sum_over_model(parameters, context, group, [](const Parameter& parameter) {
    const at::Tensor gradient = parameter.owned_gradient();
    return static_cast<double>(gradient.numel() - gradient.count_nonzero().item<int64_t>());
  });
  return static_cast<int64_t>(zeros);
}

double clip_factor(double norm, double clip) {
  // Megatron's constant: keeps the factor finite for a zero gradient.
  constexpr double kNormFloor = 1e-6;
  if (clip <= 0.0) return 1.0;
  const double factor = clip / (norm + kNormFloor);
  return factor >= 1.0 ? 1.0 : factor;
}

}  // namespace sevenfold
