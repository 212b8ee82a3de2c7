#include "sevenfold/optim/optimizer.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sevenfold/core/error.h"
#include "sevenfold/core/random.h"
#include "sevenfold/dist/threads/cluster.h"

namespace sevenfold {
namespace {

// Odd on purpose: vector loops have a remainder.
constexpr int64_t kRows = 7, kColumns = 19;

at::Tensor uniform_tensor(std::string_view name, const std::vector<int64_t>& shape,
                          at::ScalarType type) {
  const ElementStream stream = ElementStream::hot(name);
  at::Tensor values = at::empty(shape, at::TensorOptions().dtype(at::kDouble));
  for (int64_t i = 0; i < values.numel(); ++i) {
    values.data_ptr<double>()[i] = stream.uniform(static_cast<uint64_t>(i));
  }
  return values.to(type);
}

std::unique_ptr<Parameter> make_parameter(const std::string& name,
                                          const std::vector<int64_t>& shape, at::ScalarType type) {
  const auto kind = shape.size() == 1 ? ParameterKind::kGain : ParameterKind::kMatrix;
  auto parameter = std::make_unique<Parameter>(name, kind, replicated_spec(shape));
  parameter->bind(uniform_tensor(name, shape, type),
                  uniform_tensor(name + ".gradient", shape, type));
  return parameter;
}

// The update rules as the definitions say, element by element in fp64.
struct SlowState {
  double weight = 0, m = 0, v = 0, buffer = 0;
};

void slow_adamw(SlowState& s, double g, double lr, double decay, const OptimizerConfig& c,
                int step) {
  s.m = c.adam_beta1 * s.m + (1 - c.adam_beta1) * g;
  s.v = c.adam_beta2 * s.v + (1 - c.adam_beta2) * g * g;
  const double m_hat = s.m / (1 - std::pow(c.adam_beta1, step));
  const double v_hat = s.v / (1 - std::pow(c.adam_beta2, step));
  s.weight -= lr * (m_hat / (std::sqrt(v_hat) + c.adam_eps) + decay * s.weight);
}

void slow_sgd(SlowState& s, double g, double lr, double decay, const OptimizerConfig& c) {
  s.buffer = c.sgd_momentum * s.buffer + (g + decay * s.weight);
  s.weight -= lr * s.buffer;
}

// Five steps with a rate and a gradient that change; compares each weight after each step.
void expect_follows_slow_loop(const OptimizerConfig& config, at::ScalarType type,
                              double tolerance) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{kRows, kColumns}, {kColumns}}) {
    const auto parameter = make_parameter("w", shape, type);
    const auto optimizer = make_optimizer(config, {parameter.get()});
    const double decay = shape.size() == 1 ? 0.0 : config.weight_decay;
    const at::Tensor start = parameter->weight().to(at::kDouble);
    std::vector<SlowState> slow(static_cast<size_t>(start.numel()));
    for (size_t i = 0; i < slow.size(); ++i) slow[i].weight = start.data_ptr<double>()[i];
    for (int step = 1; step <= 5; ++step) {
      const double lr = 0.01 * (step - 1);  // the first rate of a warm-up is 0
      const at::Tensor gradient = parameter->gradient().to(at::kDouble).contiguous();
      optimizer->step(lr);
      const at::Tensor weight = parameter->weight().to(at::kDouble).contiguous();
      for (size_t i = 0; i < slow.size(); ++i) {
        const double g = gradient.data_ptr<double>()[i];
        config.kind == OptimizerKind::kAdamW ? slow_adamw(slow[i], g, lr, decay, config, step)
                                             : slow_sgd(slow[i], g, lr, decay, config);
        ASSERT_NEAR(weight.data_ptr<double>()[i], slow[i].weight, tolerance)
            << "step " << step << " element " << i;
      }
      parameter->gradient().mul_(-0.7);
    }
    EXPECT_EQ(optimizer->num_steps(), 5);
  }
}

OptimizerConfig adamw_config() {
  return {.kind = OptimizerKind::kAdamW, .weight_decay = 0.1, .adam_beta2 = 0.95};
}
OptimizerConfig sgd_config(double momentum) {
  return {.kind = OptimizerKind::kSgd, .weight_decay = 0.1, .sgd_momentum = momentum};
}

TEST(AdamW, FollowsThePlainLoop) {
  expect_follows_slow_loop(adamw_config(), at::kDouble, 1e-15);
  expect_follows_slow_loop(adamw_config(), at::kFloat, 1e-6);
}

TEST(Sgd, FollowsThePlainLoopWithAndWithoutMomentum) {
  for (const double momentum : {0.0, 0.9}) {
    expect_follows_slow_loop(sgd_config(momentum), at::kDouble, 1e-15);
    expect_follows_slow_loop(sgd_config(momentum), at::kFloat, 1e-6);
  }
}

TEST(Optimizer, DecaysMatricesButNotVectors) {
  for (const OptimizerConfig& config : {adamw_config(), sgd_config(0.0)}) {
    const auto matrix = make_parameter("matrix", {kRows, kColumns}, at::kDouble);
    const auto gain = make_parameter("gain", {kColumns}, at::kDouble);
    matrix->gradient().zero_();
    gain->gradient().zero_();
    const at::Tensor matrix_start = matrix->weight().clone();
    const at::Tensor gain_start = gain->weight().clone();
    make_optimizer(config, {matrix.get(), gain.get()})->step(0.5);
    EXPECT_TRUE(at::allclose(matrix->weight(), matrix_start * (1 - 0.5 * 0.1), 1e-15, 0.0));
    EXPECT_TRUE(at::equal(gain->weight(), gain_start));
  }
}

TEST(Optimizer, KeepsStatesOfTheParametersShapeAndNoMore) {
  const auto parameter = make_parameter("w", {kRows, kColumns}, at::kFloat);
  const auto names_of = [&](const OptimizerConfig& config) {
    std::vector<std::string> names;
    const auto optimizer = make_optimizer(config, {parameter.get()});
    for (const OptimizerState& state : optimizer->states(*parameter)) {
      EXPECT_EQ(state.tensor.sizes(), parameter->weight().sizes());
      EXPECT_EQ(state.tensor.scalar_type(), at::kFloat);
      names.emplace_back(state.name);
    }
    EXPECT_EQ(static_cast<int64_t>(names.size()), num_optimizer_states(config));
    return names;
  };
  EXPECT_THAT(names_of(adamw_config()), testing::ElementsAre("exp_avg", "exp_avg_sq"));
  EXPECT_THAT(names_of(sgd_config(0.9)), testing::ElementsAre("momentum_buffer"));
  EXPECT_THAT(names_of(sgd_config(0.0)), testing::IsEmpty());
}

TEST(Optimizer, BooksExactlyItsStatesToTheLedger) {
  for (const OptimizerConfig& config : {adamw_config(), sgd_config(0.9), sgd_config(0.0)}) {
    for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
      run_ranks(Mesh(MeshShape{}), ClusterOptions{}, [&](RankContext& context) {
        const MemoryScope scope(&context.memory, MemoryCategory::kActivations);
        const auto matrix = make_parameter("matrix", {kRows, kColumns}, type);
        const auto gain = make_parameter("gain", {kColumns}, type);
        const auto optimizer = make_optimizer(config, {matrix.get(), gain.get()});
        const int64_t element_bytes = static_cast<int64_t>(at::elementSize(type));
        const int64_t bytes =
            num_optimizer_states(config) * (kRows * kColumns + kColumns) * element_bytes;
        EXPECT_EQ(context.memory.live(MemoryCategory::kOptimizer), bytes);
        optimizer->step(0.1);
        EXPECT_EQ(context.memory.peak(MemoryCategory::kOptimizer), bytes);
      });
    }
  }
}

TEST(Optimizer, UpdatesWeightsThatWereBoundAfterItWasMade) {
  const auto parameter = make_parameter("w", {kRows, kColumns}, at::kDouble);
  const auto optimizer = make_optimizer(sgd_config(0.0), {parameter.get()});
  const at::Tensor weight = at::ones({kRows, kColumns}, at::kDouble);
  parameter->bind(weight, at::ones({kRows, kColumns}, at::kDouble));
  optimizer->step(0.5);
  EXPECT_TRUE(at::equal(weight, at::full({kRows, kColumns}, 1 - 0.5 * (1 + 0.1), at::kDouble)));
}

TEST(Optimizer, RefusesParametersThatItCannotUpdate) {
  Parameter unbound("w", ParameterKind::kMatrix, replicated_spec({2, 2}));
  EXPECT_THROW(make_optimizer(adamw_config(), {&unbound}), InternalError);
  const auto mixed = make_parameter("w", {2, 2}, at::kDouble);
  mixed->bind(mixed->weight(), mixed->gradient().to(at::kFloat));
  EXPECT_THROW(make_optimizer(adamw_config(), {mixed.get()}), InternalError);
  const auto known = make_parameter("known", {2, 2}, at::kDouble);
  const auto stranger = make_parameter("stranger", {2, 2}, at::kDouble);
  EXPECT_THROW(make_optimizer(adamw_config(), {known.get()})->states(*stranger), InternalError);
}

}  // namespace
}  // namespace sevenfold
