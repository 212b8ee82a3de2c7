#include "sevenfold/optim/step_copies.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "sevenfold/dist/threads/cluster.h"

namespace sevenfold {
namespace {

struct Case {
  OptimizerConfig config;
  at::ScalarType type = at::kFloat;
  Precision precision = Precision::kFp32;
};

std::vector<Case> cases() {
  const OptimizerConfig adamw{.kind = OptimizerKind::kAdamW, .weight_decay = 0.1};
  OptimizerConfig rounded = adamw;
  rounded.exp_avg_sq_type = MomentType::kBf16;
  OptimizerConfig in_units = adamw;
  in_units.exp_avg_type = in_units.exp_avg_sq_type = MomentType::kFp16;
  const OptimizerConfig sgd{.kind = OptimizerKind::kSgd, .sgd_momentum = 0.9};
  return {{in_units, at::kBFloat16, Precision::kBf16}, {in_units, at::kFloat, Precision::kFp32},
          {adamw, at::kFloat, Precision::kFp32},       {adamw, at::kDouble, Precision::kFp64},
          {adamw, at::kBFloat16, Precision::kBf16},    {adamw, at::kHalf, Precision::kFp16},
          {rounded, at::kBFloat16, Precision::kBf16},  {sgd, at::kFloat, Precision::kFp32}};
}

// A parameter with an optimizer that has taken two steps, so that no state is zero.
struct Stepped {
  explicit Stepped(const Case& c)
      : parameter("w", ParameterKind::kMatrix, replicated_spec({5, 7})) {
    const at::Tensor values = at::arange(35, at::TensorOptions().dtype(at::kDouble)).view({5, 7});
    const at::ScalarType full = c.type == at::kDouble ? at::kDouble : at::kFloat;
    parameter.bind((values * 0.37 - 3.0).to(c.type), (values * 0.11 - 1.7).to(full));
    optimizer = make_optimizer(c.config, {&parameter});
    step();
    step();
  }
  void step() { optimizer->step({.lr = 0.01, .weight_decay = 0.1}); }
  std::vector<at::Tensor> bits() const {
    std::vector<at::Tensor> all = {parameter.weight().clone()};
    for (const OptimizerState& state : optimizer->states(parameter)) {
      all.push_back(state.tensor.clone());
      if (state.unit != nullptr) all.push_back(at::full({1}, *state.unit));
    }
    return all;
  }
  Parameter parameter;
  std::unique_ptr<Optimizer> optimizer;
};

bool equal(const std::vector<at::Tensor>& left, const std::vector<at::Tensor>& right) {
  for (size_t i = 0; i < left.size(); ++i)
    if (!at::equal(left[i], right[i])) return false;
  return true;
}

// The step after it gives the same bits too: bias correction counts steps.
TEST(StepCopies, TakeAStepBackToTheBit) {
  for (const Case& c : cases()) {
    Stepped stepped(c), other(c);
    StepCopies copies(*stepped.optimizer, {&stepped.parameter});
    const auto before = stepped.bits();
    copies.take();
    stepped.parameter.gradient().mul_(64.0);  // the units of fp16 states change
    stepped.step();
    stepped.parameter.gradient().div_(64.0);
    EXPECT_FALSE(equal(stepped.bits(), before));
    copies.restore();
    EXPECT_TRUE(equal(stepped.bits(), before)) << at::toString(c.type);
    EXPECT_EQ(stepped.optimizer->num_steps(), 2);
    stepped.step();
    other.step();
    EXPECT_TRUE(equal(stepped.bits(), other.bits())) << at::toString(c.type);
  }
}

#ifdef SEVENFOLD_FAULTS
TEST(StepCopies, WithTheFaultForgetAMoment) {
  Stepped stepped(cases()[2]);
  StepCopies copies(*stepped.optimizer, {&stepped.parameter},
                    FaultSet().enable(Fault::kRollBackForgetsMoment));
  const auto before = stepped.bits();
  copies.take();
  stepped.step();
  copies.restore();
  const auto after = stepped.bits();
  EXPECT_TRUE(equal({after[0], after[1]}, {before[0], before[1]}));
  EXPECT_FALSE(at::equal(after[2], before[2]));
}
#endif

TEST(StepCopies, AreBookedToTheLedger) {
  for (const Case& c : cases())
    run_ranks(Mesh(MeshShape{}), ClusterOptions{}, [&](RankContext& context) {
      const MemoryScope scope(&context.memory, MemoryCategory::kActivations);
      Stepped stepped(c);
      const int64_t before = context.memory.live(MemoryCategory::kOptimizer);
      StepCopies copies(*stepped.optimizer, {&stepped.parameter});
      const int64_t booked = context.memory.live(MemoryCategory::kOptimizer) - before;
      EXPECT_EQ(booked, 35 * step_copy_bytes(c.config, c.precision));
      copies.take();
      EXPECT_EQ(context.memory.peak(MemoryCategory::kOptimizer), before + booked);
    });
}

}  // namespace
}  // namespace sevenfold
