#include "sevenfold/optim/optimizer.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sevenfold/core/error.h"
#include "sevenfold/dist/ledger.h"
#include "sevenfold/optim/update_kernels.h"

namespace sevenfold {
namespace {

// Elements per piece of work: large enough that starting a thread does not show.
constexpr int64_t kGrain = 32768;

void check_bound(const Parameter& parameter) {
  const at::Tensor& weight = parameter.weight();
  const at::Tensor& gradient = parameter.gradient();
  SEVENFOLD_CHECK(weight.defined() && gradient.defined(), "{} is not bound", parameter.name());
  SEVENFOLD_CHECK_EQ(weight.numel(), gradient.numel());
  SEVENFOLD_CHECK(weight.scalar_type() == gradient.scalar_type() &&
                      (weight.scalar_type() == at::kFloat || weight.scalar_type() == at::kDouble),
                  "{}: weight {}, gradient {}; fp32 or fp64 for both", parameter.name(),
                  at::toString(weight.scalar_type()), at::toString(gradient.scalar_type()));
  SEVENFOLD_CHECK(weight.is_cpu() && weight.is_contiguous() && gradient.is_contiguous(),
                  "{}: not contiguous CPU memory", parameter.name());
}

std::vector<at::Tensor> zeroed_states(const std::vector<Parameter*>& parameters) {
  const MemoryScope scope(MemoryCategory::kOptimizer);
  std::vector<at::Tensor> states;
  states.reserve(parameters.size());
  for (const Parameter* parameter : parameters) {
    check_bound(*parameter);
    states.push_back(at::zeros(parameter->gradient().sizes(), parameter->gradient().options()));
  }
  return states;
}

double decay_of(const Parameter& parameter, double weight_decay) {
  return parameter.num_dims() > 1 ? weight_decay : 0.0;
}

size_t index_of(const std::vector<Parameter*>& parameters, const Parameter& parameter) {
  const auto found = std::find(parameters.begin(), parameters.end(), &parameter);
  SEVENFOLD_CHECK(found != parameters.end(), "{} is not a parameter of this optimizer",
                  parameter.name());
  return static_cast<size_t>(found - parameters.begin());
}

// Calls update(T{}, begin, end) over pieces of [0, num_elements), T = the parameter's element type.
template <typename Update>
void for_pieces(const Parameter& parameter, const Update& update) {
  const bool is_double = parameter.weight().scalar_type() == at::kDouble;
  at::parallel_for(0, parameter.weight().numel(), kGrain, [&](int64_t begin, int64_t end) {
    is_double ? update(double{}, begin, end) : update(float{}, begin, end);
  });
}

class AdamW final : public Optimizer {
 public:
  AdamW(const OptimizerConfig& config, std::vector<Parameter*> parameters)
      : config_(config),
        parameters_(std::move(parameters)),
        exp_avg_(zeroed_states(parameters_)),
        exp_avg_sq_(zeroed_states(parameters_)) {}

  void step(double lr) override {
    ++num_steps_;
    const auto i = static_cast<double>(num_steps_);
    AdamWFactors factors{.lr = lr,
                         .beta1 = config_.adam_beta1,
                         .beta2 = config_.adam_beta2,
                         .eps = config_.adam_eps,
                         .weight_decay = 0.0,
                         .correction1 = 1.0 - std::pow(config_.adam_beta1, i),
                         .correction2 = 1.0 - std::pow(config_.adam_beta2, i)};
    for (size_t p = 0; p < parameters_.size(); ++p) {
      factors.weight_decay = decay_of(*parameters_[p], config_.weight_decay);
      update(p, factors);
    }
  }

  std::vector<OptimizerState> states(const Parameter& parameter) const override {
    const size_t p = index_of(parameters_, parameter);
    return {{"exp_avg", exp_avg_[p]}, {"exp_avg_sq", exp_avg_sq_[p]}};
  }

  int64_t num_steps() const override { return num_steps_; }

 private:
  void update(size_t p, const AdamWFactors& factors) {
    check_bound(*parameters_[p]);
    for_pieces(*parameters_[p], [&]<typename T>(T, int64_t begin, int64_t end) {
      const AdamWArrays<T> arrays{
          .weight = parameters_[p]->weight().template data_ptr<T>() + begin,
          .gradient = parameters_[p]->gradient().template data_ptr<T>() + begin,
          .exp_avg = exp_avg_[p].template data_ptr<T>() + begin,
          .exp_avg_sq = exp_avg_sq_[p].template data_ptr<T>() + begin};
      adamw_update(arrays, end - begin, factors);
    });
  }

  OptimizerConfig config_;
  std::vector<Parameter*> parameters_;
  std::vector<at::Tensor> exp_avg_;     // per parameter: m
  std::vector<at::Tensor> exp_avg_sq_;  // per parameter: v
  int64_t num_steps_ = 0;
};

class Sgd final : public Optimizer {
 public:
  Sgd(const OptimizerConfig& config, std::vector<Parameter*> parameters)
      : config_(config), parameters_(std::move(parameters)) {
    if (config_.sgd_momentum != 0.0) buffers_ = zeroed_states(parameters_);
  }

  void step(double lr) override {
    ++num_steps_;
    for (size_t p = 0; p < parameters_.size(); ++p) {
      update(p, {.lr = lr,
                 .momentum = config_.sgd_momentum,
                 .weight_decay = decay_of(*parameters_[p], config_.weight_decay)});
    }
  }

  std::vector<OptimizerState> states(const Parameter& parameter) const override {
    const size_t p = index_of(parameters_, parameter);
    if (buffers_.empty()) return {};
    return {{"momentum_buffer", buffers_[p]}};
  }

  int64_t num_steps() const override { return num_steps_; }

 private:
  void update(size_t p, const SgdFactors& factors) {
    check_bound(*parameters_[p]);
    for_pieces(*parameters_[p], [&]<typename T>(T, int64_t begin, int64_t end) {
      const SgdArrays<T> arrays{
          .weight = parameters_[p]->weight().template data_ptr<T>() + begin,
          .gradient = parameters_[p]->gradient().template data_ptr<T>() + begin,
          .buffer = buffers_.empty() ? nullptr : buffers_[p].template data_ptr<T>() + begin};
      sgd_update(arrays, end - begin, factors);
    });
  }

  OptimizerConfig config_;
  std::vector<Parameter*> parameters_;
  std::vector<at::Tensor> buffers_;  // per parameter; empty when momentum is 0
  int64_t num_steps_ = 0;
};

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config,
                                          std::vector<Parameter*> parameters) {
  if (config.kind == OptimizerKind::kAdamW) {
    return std::make_unique<AdamW>(config, std::move(parameters));
  }
  return std::make_unique<Sgd>(config, std::move(parameters));
}

int64_t num_optimizer_states(const OptimizerConfig& config) {
  if (config.kind == OptimizerKind::kAdamW) return 2;
  return config.sgd_momentum != 0.0 ? 1 : 0;
}

}  // namespace sevenfold
