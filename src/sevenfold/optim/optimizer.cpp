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

RoundedFormat rounded_format(at::ScalarType type) {
  if (type == at::kBFloat16) return RoundedFormat::kBf16;
  return type == at::kHalf ? RoundedFormat::kFp16 : RoundedFormat::kNone;
}

bool needs_master(const Parameter& parameter) {
  return rounded_format(parameter.weight_type()) != RoundedFormat::kNone;
}

void check_bound(const Parameter& parameter) {
  SEVENFOLD_CHECK(parameter.is_bound(), "{} is not bound", parameter.name());
  const at::Tensor weight = parameter.owned_weight();
  const at::Tensor gradient = parameter.owned_gradient();
  SEVENFOLD_CHECK_EQ(gradient.numel(), parameter.owned().size());
  const at::ScalarType full = needs_master(parameter) ? at::kFloat : weight.scalar_type();
  SEVENFOLD_CHECK(
      gradient.scalar_type() == full && (full == at::kFloat || full == at::kDouble),
      "{}: weight {}, gradient {}; fp64 or fp32 for both, or a 16-bit weight with an fp32 gradient",
      parameter.name(), at::toString(weight.scalar_type()), at::toString(gradient.scalar_type()));
  SEVENFOLD_CHECK(weight.is_cpu() && weight.is_contiguous() && gradient.is_contiguous(),
                  "{}: not contiguous CPU memory", parameter.name());
}

// fp64 runs prove layouts: nothing is rounded in them.
at::ScalarType state_type(MomentType type, at::ScalarType gradient) {
  if (type == MomentType::kFull || gradient == at::kDouble) return gradient;
  return type == MomentType::kBf16 ? at::kBFloat16 : at::kHalf;
}

std::vector<at::Tensor> zeroed_states(const std::vector<Parameter*>& parameters,
                                      MomentType type = MomentType::kFull) {
  const MemoryScope scope(MemoryCategory::kOptimizer);
  std::vector<at::Tensor> states;
  states.reserve(parameters.size());
  for (const Parameter* parameter : parameters) {
    check_bound(*parameter);
    const at::Tensor gradient = parameter->owned_gradient();
    states.push_back(at::zeros(gradient.sizes(),
                               gradient.options().dtype(state_type(type, gradient.scalar_type()))));
  }
  return states;
}

// One of AdamW's running means, of all parameters.
class RunningMean {
 public:
  RunningMean(std::string_view name, const std::vector<Parameter*>& parameters, MomentType type)
      : name_(name),
        values_(zeroed_states(parameters, type)),
        units_(parameters.size(), 1.0F),
        next_units_(units_) {}

  bool has_unit(size_t p) const { return values_[p].scalar_type() == at::kHalf; }
  void choose_unit(size_t p, float maximum) {
    if (has_unit(p)) next_units_[p] = fp16_unit(maximum);
  }
  void end_step(size_t p) { units_[p] = next_units_[p]; }

  template <typename T>
  MomentArray<T> array(size_t p, int64_t offset) const {
    void* data = values_[p].data_ptr();
    if (values_[p].scalar_type() == at::kBFloat16)
      return {.bf16 = static_cast<BFloat16*>(data) + offset};
    if (has_unit(p))
      return {.fp16 = static_cast<Float16*>(data) + offset,
              .unit = units_[p],
              .next_unit = next_units_[p]};
    return {.full = static_cast<T*>(data) + offset};
  }

  OptimizerState state(size_t p, ElementRange range) {
    return {name_, range, values_[p], has_unit(p) ? &units_[p] : nullptr};
  }

 private:
  std::string_view name_;
  std::vector<at::Tensor> values_;  // per parameter
  std::vector<float> units_;        // of the values, and those that the step under way stores with
  std::vector<float> next_units_;
};

MomentMaxima larger(const MomentMaxima& a, const MomentMaxima& b) {
  return {std::max(a.exp_avg, b.exp_avg), std::max(a.exp_avg_sq, b.exp_avg_sq)};
}

bool is_qk_norm(const Parameter& parameter) {
  const std::string& name = parameter.name();
  return name.find(".q_norm.") != std::string::npos || name.find(".k_norm.") != std::string::npos;
}

// The parameters of one rank with the weights that steps are taken on.
class SteppedWeights {
 public:
  explicit SteppedWeights(std::vector<Parameter*> parameters)
      : parameters_(std::move(parameters)), masters_(parameters_.size()) {
    const MemoryScope scope(MemoryCategory::kOptimizer);
    for (size_t p = 0; p < parameters_.size(); ++p) {
      check_bound(*parameters_[p]);
      if (needs_master(*parameters_[p]))
        masters_[p] = parameters_[p]->owned_weight().to(at::kFloat);
    }
  }

  const std::vector<Parameter*>& parameters() const { return parameters_; }
  size_t size() const { return parameters_.size(); }

  size_t index_of(const Parameter& parameter) const {
    const auto found = std::find(parameters_.begin(), parameters_.end(), &parameter);
    SEVENFOLD_CHECK(found != parameters_.end(), "{} is not a parameter of this optimizer",
                    parameter.name());
    return static_cast<size_t>(found - parameters_.begin());
  }

  at::Tensor full(size_t p) const {
    return masters_[p].defined() ? masters_[p] : parameters_[p]->owned_weight();
  }

  void append_master(size_t p, std::vector<OptimizerState>& states) const {
    if (masters_[p].defined())
      states.push_back({"master_weight", parameters_[p]->owned(), masters_[p]});
  }

  RoundedWeights rounded(size_t p, int64_t offset) const {
    if (!masters_[p].defined()) return {};
    const at::Tensor weight = parameters_[p]->owned_weight();
    return {rounded_format(weight.scalar_type()),
            static_cast<uint16_t*>(weight.data_ptr()) + offset};
  }

  // Calls update(T{}, begin, end) over pieces of the parameter's owned elements, T = their
  // gradient's type.
  template <typename Update>
  void for_pieces(size_t p, const Update& update) const {
    check_bound(*parameters_[p]);
    const at::Tensor gradient = parameters_[p]->owned_gradient();
    const bool is_double = gradient.scalar_type() == at::kDouble;
    at::parallel_for(0, gradient.numel(), kGrain, [&](int64_t begin, int64_t end) {
      is_double ? update(double{}, begin, end) : update(float{}, begin, end);
    });
  }

 private:
  std::vector<Parameter*> parameters_;
  std::vector<at::Tensor> masters_;  // per parameter; undefined where the weight itself is stepped
};

// What AdamW and SGD share: weights, their decay, and the count of steps.
class SteppingOptimizer : public Optimizer {
 public:
  SteppingOptimizer(const OptimizerConfig& config, std::vector<Parameter*> parameters)
      : config_(config), weights_(std::move(parameters)) {}

  at::Tensor full_weight(const Parameter& parameter) const final {
    return weights_.full(weights_.index_of(parameter));
  }
  int64_t num_steps() const final { return num_steps_; }
  void set_num_steps(int64_t steps) final { num_steps_ = steps; }

 protected:
  double decay_of(size_t p, double weight_decay) const {
    const Parameter& parameter = *weights_.parameters()[p];
    const bool decays = config_.decay_all || parameter.num_dims() > 1 ||
                        (config_.decay_qk_norm && is_qk_norm(parameter));
    return decays ? weight_decay : 0.0;
  }

  OptimizerConfig config_;
  SteppedWeights weights_;
  int64_t num_steps_ = 0;
};

class AdamW final : public SteppingOptimizer {
 public:
  AdamW(const OptimizerConfig& config, std::vector<Parameter*> parameters)
      : SteppingOptimizer(config, std::move(parameters)),
        exp_avg_("exp_avg", weights_.parameters(), config_.exp_avg_type),
        exp_avg_sq_("exp_avg_sq", weights_.parameters(), config_.exp_avg_sq_type) {}

  void step(const StepFactors& step) override {
    ++num_steps_;
    const auto i = static_cast<double>(num_steps_);
    AdamWFactors factors{.lr = step.lr,
                         .beta1 = config_.adam_beta1,
                         .beta2 = config_.adam_beta2,
                         .eps = config_.adam_eps,
                         .gradient_scale = step.gradient_scale,
                         .correction1 = 1.0 - std::pow(config_.adam_beta1, i),
                         .correction2 = 1.0 - std::pow(config_.adam_beta2, i)};
    for (size_t p = 0; p < weights_.size(); ++p) {
      factors.weight_decay = decay_of(p, step.weight_decay);
      update(p, factors);
    }
  }

  std::vector<OptimizerState> states(const Parameter& parameter) const override {
    const size_t p = weights_.index_of(parameter);
    std::vector<OptimizerState> states = {exp_avg_.state(p, parameter.owned()),
                                          exp_avg_sq_.state(p, parameter.owned())};
    weights_.append_master(p, states);
    return states;
  }

 private:
  template <typename T>
  AdamWArrays<T> arrays(size_t p, int64_t begin) const {
    return {.weight = weights_.full(p).template data_ptr<T>() + begin,
            .gradient = weights_.parameters()[p]->owned_gradient().template data_ptr<T>() + begin,
            .exp_avg = exp_avg_.array<T>(p, begin),
            .exp_avg_sq = exp_avg_sq_.array<T>(p, begin),
            .rounded = weights_.rounded(p, begin)};
  }

  void update(size_t p, const AdamWFactors& factors) {
    if (exp_avg_.has_unit(p) || exp_avg_sq_.has_unit(p)) choose_units(p, factors);
    weights_.for_pieces(p, [&]<typename T>(T, int64_t begin, int64_t end) {
      adamw_update(arrays<T>(p, begin), end - begin, factors);
    });
    exp_avg_.end_step(p);
    exp_avg_sq_.end_step(p);
  }

  // A pass more over the tensor, before anything of it changes.
  void choose_units(size_t p, const AdamWFactors& factors) {
    const MomentMaxima maxima = at::parallel_reduce(
        0, weights_.full(p).numel(), kGrain, MomentMaxima{},
        [&](int64_t begin, int64_t end, const MomentMaxima& before) {
          return larger(before, adamw_maxima(arrays<float>(p, begin), end - begin, factors));
        },
        larger);
    exp_avg_.choose_unit(p, maxima.exp_avg);
    exp_avg_sq_.choose_unit(p, maxima.exp_avg_sq);
  }

  mutable RunningMean exp_avg_;     // m; mutable: a state hands out its memory
  mutable RunningMean exp_avg_sq_;  // v
};

class Sgd final : public SteppingOptimizer {
 public:
  Sgd(const OptimizerConfig& config, std::vector<Parameter*> parameters)
      : SteppingOptimizer(config, std::move(parameters)) {
    if (config_.sgd_momentum != 0.0) buffers_ = zeroed_states(weights_.parameters());
  }

  void step(const StepFactors& step) override {
    ++num_steps_;
    for (size_t p = 0; p < weights_.size(); ++p) {
      update(p, {.lr = step.lr,
                 .momentum = config_.sgd_momentum,
                 .weight_decay = decay_of(p, step.weight_decay),
                 .gradient_scale = step.gradient_scale});
    }
  }

  std::vector<OptimizerState> states(const Parameter& parameter) const override {
    const size_t p = weights_.index_of(parameter);
    std::vector<OptimizerState> states;
    if (!buffers_.empty()) states.push_back({"momentum_buffer", parameter.owned(), buffers_[p]});
    weights_.append_master(p, states);
    return states;
  }

 private:
  void update(size_t p, const SgdFactors& factors) {
    const at::Tensor weight = weights_.full(p);
    const at::Tensor gradient = weights_.parameters()[p]->owned_gradient();
    weights_.for_pieces(p, [&]<typename T>(T, int64_t begin, int64_t end) {
      const SgdArrays<T> arrays{
          .weight = weight.template data_ptr<T>() + begin,
          .gradient = gradient.template data_ptr<T>() + begin,
          .buffer = buffers_.empty() ? nullptr : buffers_[p].template data_ptr<T>() + begin,
          .rounded = weights_.rounded(p, begin)};
      sgd_update(arrays, end - begin, factors);
    });
  }

  std::vector<at::Tensor> buffers_;  // per parameter; empty when momentum is 0
};

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config,
                                          std::vector<Parameter*> parameters) {
  if (config.kind == OptimizerKind::kAdamW) {
    return std::make_unique<AdamW>(config, std::move(parameters));
  }
  return std::make_unique<Sgd>(config, std::move(parameters));
}

int64_t num_optimizer_states(const OptimizerConfig& config, Precision precision) {
  const bool is_16_bit = precision == Precision::kBf16 || precision == Precision::kFp16;
  const int64_t masters = is_16_bit ? 1 : 0;
  if (config.kind == OptimizerKind::kAdamW) return 2 + masters;
  return (config.sgd_momentum != 0.0 ? 1 : 0) + masters;
}

int64_t optimizer_state_bytes(const OptimizerConfig& config, Precision precision) {
  const int64_t full = precision == Precision::kFp64 ? 8 : 4;
  int64_t bytes = num_optimizer_states(config, precision) * full;
  if (config.kind != OptimizerKind::kAdamW || precision == Precision::kFp64) return bytes;
  for (const MomentType type : {config.exp_avg_type, config.exp_avg_sq_type})
    if (type != MomentType::kFull) bytes -= 2;
  return bytes;
}

}  // namespace sevenfold
