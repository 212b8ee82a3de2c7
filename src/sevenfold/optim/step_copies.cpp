#include "sevenfold/optim/step_copies.h"

#include <ATen/ATen.h>

#include <utility>

#include "sevenfold/dist/ledger.h"

namespace sevenfold {

StepCopies::StepCopies(Optimizer& optimizer, std::vector<Parameter*> parameters, FaultSet faults)
    : optimizer_(optimizer), parameters_(std::move(parameters)), faults_(faults) {
  const MemoryScope scope(MemoryCategory::kOptimizer);
  for (const Written& one : written()) copies_.push_back(at::empty_like(one.tensor));
  units_.resize(copies_.size());
}

std::vector<StepCopies::Written> StepCopies::written() const {
  std::vector<Written> all;
  for (const Parameter* parameter : parameters_) {
    all.push_back({parameter->owned_weight()});
    for (const OptimizerState& state : optimizer_.states(*parameter)) {
      const bool is_forgotten =
          faults_.has(Fault::kRollBackForgetsMoment) && state.name == "exp_avg_sq";
      if (!is_forgotten) all.push_back({state.tensor, state.unit});
    }
  }
  return all;
}

void StepCopies::take() {
  const std::vector<Written> all = written();
  for (size_t i = 0; i < all.size(); ++i) {
    copies_[i].copy_(all[i].tensor);
    if (all[i].unit != nullptr) units_[i] = *all[i].unit;
  }
  num_steps_ = optimizer_.num_steps();
}

void StepCopies::restore() {
  const std::vector<Written> all = written();
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].tensor.copy_(copies_[i]);
    if (all[i].unit != nullptr) *all[i].unit = units_[i];
  }
  optimizer_.set_num_steps(num_steps_);
}

int64_t step_copy_bytes(const OptimizerConfig& config, Precision precision) {
  const int64_t weight = precision == Precision::kFp64 ? 8 : precision == Precision::kFp32 ? 4 : 2;
  return optimizer_state_bytes(config, precision) + weight;
}

}  // namespace sevenfold
