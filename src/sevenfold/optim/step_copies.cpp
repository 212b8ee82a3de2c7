#include "sevenfold/optim/step_copies.h"

#include <ATen/ATen.h>

#include <utility>

#include "sevenfold/dist/ledger.h"

namespace sevenfold {

StepCopies::StepCopies(Optimizer& optimizer, std::vector<Parameter*> parameters, FaultSet faults)
    : optimizer_(optimizer), parameters_(std::move(parameters)), faults_(faults) {
  const MemoryScope scope(MemoryCategory::kOptimizer);
  for (const at::Tensor& tensor : written()) copies_.push_back(at::empty_like(tensor));
}

std::vector<at::Tensor> StepCopies::written() const {
  std::vector<at::Tensor> tensors;
  for (const Parameter* parameter : parameters_) {
    tensors.push_back(parameter->owned_weight());
    for (const OptimizerState& state : optimizer_.states(*parameter)) {
      const bool is_forgotten =
          faults_.has(Fault::kRollBackForgetsMoment) && state.name == "exp_avg_sq";
      if (!is_forgotten) tensors.push_back(state.tensor);
    }
  }
  return tensors;
}

void StepCopies::take() {
  const std::vector<at::Tensor> tensors = written();
  for (size_t i = 0; i < tensors.size(); ++i) copies_[i].copy_(tensors[i]);
  num_steps_ = optimizer_.num_steps();
}

void StepCopies::restore() {
  const std::vector<at::Tensor> tensors = written();
  for (size_t i = 0; i < tensors.size(); ++i) tensors[i].copy_(copies_[i]);
  optimizer_.set_num_steps(num_steps_);
}

int64_t step_copy_bytes(const OptimizerConfig& config, Precision precision) {
  const int64_t weight = precision == Precision::kFp64 ? 8 : precision == Precision::kFp32 ? 4 : 2;
  return optimizer_state_bytes(config, precision) + weight;
}

}  // namespace sevenfold
