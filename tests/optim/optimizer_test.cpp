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
    const bool decays = config.decay_all || shape.size() > 1;
    const double decay = decays ? config.weight_decay : 0.0;
    const at::Tensor start = parameter->weight().to(at::kDouble);
    std::vector<SlowState> slow(static_cast<size_t>(start.numel()));
    for (size_t i = 0; i < slow.size(); ++i) slow[i].weight = start.data_ptr<double>()[i];
    for (int step = 1; step <= 5; ++step) {
      const double lr = 0.01 * (step - 1);  // the first rate of a warm-up is 0
      const at::Tensor gradient = parameter->gradient().to(at::kDouble).contiguous();
      optimizer->step({.lr = lr, .weight_decay = config.weight_decay});
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

// Vectors too: TorchTitan's optimizer makes no difference between parameters.
TEST(Optimizer, FollowsThePlainLoopThatDecaysAll) {
  for (OptimizerConfig config : {adamw_config(), sgd_config(0.9)}) {
    config.decay_all = true;
    expect_follows_slow_loop(config, at::kDouble, 1e-15);
    expect_follows_slow_loop(config, at::kFloat, 1e-6);
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
    make_optimizer(config, {matrix.get(), gain.get()})
        ->step({.lr = 0.5, .weight_decay = config.weight_decay});
    EXPECT_TRUE(at::allclose(matrix->weight(), matrix_start * (1 - 0.5 * 0.1), 1e-15, 0.0));
    EXPECT_TRUE(at::equal(gain->weight(), gain_start));
  }
}

TEST(Optimizer, KeepsAStateOfEachElementAndNoMore) {
  const auto parameter = make_parameter("w", {kRows, kColumns}, at::kFloat);
  const auto names_of = [&](const OptimizerConfig& config) {
    std::vector<std::string> names;
    const auto optimizer = make_optimizer(config, {parameter.get()});
    for (const OptimizerState& state : optimizer->states(*parameter)) {
      EXPECT_EQ(state.range, (ElementRange{0, kRows * kColumns}));
      EXPECT_EQ(state.tensor.sizes(), (std::vector<int64_t>{kRows * kColumns}));
      EXPECT_EQ(state.tensor.scalar_type(), at::kFloat);
      names.emplace_back(state.name);
    }
    EXPECT_EQ(static_cast<int64_t>(names.size()), num_optimizer_states(config, Precision::kFp32));
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
        const int64_t bytes = num_optimizer_states(config, Precision::kFp64) *
                              (kRows * kColumns + kColumns) * element_bytes;
        EXPECT_EQ(context.memory.live(MemoryCategory::kOptimizer), bytes);
        optimizer->step({.lr = 0.1});
        EXPECT_EQ(context.memory.peak(MemoryCategory::kOptimizer), bytes);
      });
    }
  }
}

// The running means of AdamW in 16 bits, each or both: fp32 arithmetic, rounded when stored.
struct Moments {
  MomentType exp_avg, exp_avg_sq;
};

class MomentTypes : public ::testing::TestWithParam<Moments> {
 protected:
  static OptimizerConfig config() {
    OptimizerConfig config = adamw_config();
    config.exp_avg_type = GetParam().exp_avg;
    config.exp_avg_sq_type = GetParam().exp_avg_sq;
    return config;
  }
};

// The power of two that makes the largest of the means 2^14 to 2^15.
float slow_unit(const std::vector<float>& means) {
  float largest = 0.0F, unit = 1.0F;
  for (const float mean : means) largest = std::max(largest, std::abs(mean));
  while (largest / unit >= 32768.0F) unit *= 2.0F;
  while (largest / unit < 16384.0F) unit /= 2.0F;
  return unit;
}

void round_stored(std::vector<float>& means, MomentType type) {
  const float unit = type == MomentType::kFp16 ? slow_unit(means) : 1.0F;
  for (float& mean : means) {
    if (type == MomentType::kBf16) mean = static_cast<float>(at::BFloat16(mean));
    if (type == MomentType::kFp16) mean = static_cast<float>(at::Half(mean / unit)) * unit;
  }
}

TEST_P(MomentTypes, FollowThePlainLoopBitForBit) {
  const OptimizerConfig c = config();
  const auto parameter = make_parameter("w", {kRows, kColumns}, at::kFloat);
  const auto optimizer = make_optimizer(c, {parameter.get()});
  const at::Tensor weight = parameter->weight().clone();
  std::vector<float> m(kRows * kColumns, 0.0F), v(m);
  const auto beta1 = static_cast<float>(c.adam_beta1), beta2 = static_cast<float>(c.adam_beta2);
  const auto share1 = static_cast<float>(1.0 - c.adam_beta1);
  const auto share2 = static_cast<float>(1.0 - c.adam_beta2);
  for (int step = 1; step <= 4; ++step) {
    const auto scale1 = static_cast<float>(1.0 / (1.0 - std::pow(c.adam_beta1, step)));
    const auto scale2 = static_cast<float>(1.0 / (1.0 - std::pow(c.adam_beta2, step)));
    for (size_t i = 0; i < m.size(); ++i) {
      const float g = parameter->gradient().data_ptr<float>()[i];
      float& w = weight.data_ptr<float>()[i];
      const float new_m = beta1 * m[i] + share1 * g, new_v = beta2 * v[i] + share2 * (g * g);
      w -= 0.01F * (new_m * scale1 / (std::sqrt(new_v * scale2) + 1e-8F) + 0.1F * w);
      m[i] = new_m;
      v[i] = new_v;
    }
    round_stored(m, c.exp_avg_type);
    round_stored(v, c.exp_avg_sq_type);
    optimizer->step({.lr = 0.01, .weight_decay = 0.1});
    EXPECT_TRUE(at::equal(parameter->weight(), weight)) << "step " << step;
    parameter->gradient().mul_(-0.7);
  }
  const auto states = optimizer->states(*parameter);
  const std::vector<float>* expected[] = {&m, &v};
  for (size_t s = 0; s < 2; ++s) {
    const float unit = states[s].unit != nullptr ? *states[s].unit : 1.0F;
    for (size_t i = 0; i < m.size(); ++i)
      ASSERT_EQ(states[s].tensor[static_cast<int64_t>(i)].item<float>() * unit, (*expected[s])[i]);
  }
}

// 16-bit weights with a master copy: 12 bytes of states an element, or 10, or 8.
TEST_P(MomentTypes, AreBookedAtTheirSize) {
  run_ranks(Mesh(MeshShape{}), ClusterOptions{}, [&](RankContext& context) {
    const MemoryScope scope(&context.memory, MemoryCategory::kActivations);
    const auto parameter = std::make_unique<Parameter>("w", ParameterKind::kMatrix,
                                                       replicated_spec({kRows, kColumns}));
    parameter->bind(at::ones({kRows, kColumns}, at::kBFloat16), at::ones({kRows, kColumns}));
    const auto optimizer = make_optimizer(config(), {parameter.get()});
    const int64_t saved = (GetParam().exp_avg != MomentType::kFull ? 2 : 0) +
                          (GetParam().exp_avg_sq != MomentType::kFull ? 2 : 0);
    EXPECT_EQ(optimizer_state_bytes(config(), Precision::kBf16), 12 - saved);
    EXPECT_EQ(optimizer_state_bytes(config(), Precision::kFp32), 8 - saved);
    EXPECT_EQ(context.memory.live(MemoryCategory::kOptimizer), (12 - saved) * kRows * kColumns);
    optimizer->step({.lr = 0.1});
    EXPECT_EQ(context.memory.peak(MemoryCategory::kOptimizer), (12 - saved) * kRows * kColumns);
  });
}

// fp64 runs prove layouts: nothing is rounded in them.
TEST_P(MomentTypes, AreThoseOfTheArithmeticInFp64) {
  expect_follows_slow_loop(config(), at::kDouble, 1e-15);
  EXPECT_EQ(optimizer_state_bytes(config(), Precision::kFp64), 16);
}

INSTANTIATE_TEST_SUITE_P(Types, MomentTypes,
                         ::testing::Values(Moments{MomentType::kFull, MomentType::kFull},
                                           Moments{MomentType::kBf16, MomentType::kFull},
                                           Moments{MomentType::kFull, MomentType::kBf16},
                                           Moments{MomentType::kBf16, MomentType::kBf16},
                                           Moments{MomentType::kFp16, MomentType::kFull},
                                           Moments{MomentType::kFull, MomentType::kFp16},
                                           Moments{MomentType::kBf16, MomentType::kFp16},
                                           Moments{MomentType::kFp16, MomentType::kBf16},
                                           Moments{MomentType::kFp16, MomentType::kFp16}));

// Squares of gradients of 1e-6 are 0 in plain fp16, and steps would be divided by eps alone.
TEST(AdamW, KeepsTheSquaresOfSmallGradientsInFp16) {
  ASSERT_EQ(static_cast<float>(at::Half(1e-12F)), 0.0F);
  OptimizerConfig config = adamw_config();
  config.adam_eps = 1e-12;
  const auto full = make_parameter("w", {kRows, kColumns}, at::kFloat);
  const auto half = make_parameter("w", {kRows, kColumns}, at::kFloat);
  for (const auto* parameter : {&full, &half}) (*parameter)->gradient().mul_(1e-6);
  const at::Tensor start = full->weight().clone();
  const auto reference = make_optimizer(config, {full.get()});
  config.exp_avg_type = config.exp_avg_sq_type = MomentType::kFp16;
  const auto optimizer = make_optimizer(config, {half.get()});
  for (int step = 0; step < 20; ++step) {
    for (const auto* parameter : {&full, &half}) (*parameter)->gradient().mul_(-0.9);
    reference->step({.lr = 0.01});
    optimizer->step({.lr = 0.01});
  }
  const at::Tensor moved = (full->weight() - start).abs();
  EXPECT_GT(moved.min().item<double>(), 0.01) << "steps of about the rate, whatever the gradient";
  EXPECT_LT(((half->weight() - full->weight()).abs() / moved).max().item<double>(), 0.01);
}

TEST(Optimizer, UpdatesWeightsThatWereBoundAfterItWasMade) {
  const auto parameter = make_parameter("w", {kRows, kColumns}, at::kDouble);
  const auto optimizer = make_optimizer(sgd_config(0.0), {parameter.get()});
  const at::Tensor weight = at::ones({kRows, kColumns}, at::kDouble);
  parameter->bind(weight, at::ones({kRows, kColumns}, at::kDouble));
  optimizer->step({.lr = 0.5, .weight_decay = 0.1});
  EXPECT_TRUE(at::equal(weight, at::full({kRows, kColumns}, 1 - 0.5 * (1 + 0.1), at::kDouble)));
}

// 16-bit weights: the same steps as in fp32, on a master copy, and its values rounded.
class MasterWeights : public ::testing::TestWithParam<at::ScalarType> {};

at::Tensor flat(const at::Tensor& tensor) {
  return tensor.reshape({-1});
}

std::unique_ptr<Parameter> with_16_bit_weight(const at::Tensor& start, at::ScalarType type) {
  auto parameter =
      std::make_unique<Parameter>("w", ParameterKind::kMatrix, replicated_spec({kRows, kColumns}));
  parameter->bind(start.to(type), uniform_tensor("gradient", {kRows, kColumns}, at::kFloat));
  return parameter;
}

TEST_P(MasterWeights, TakeTheStepsOfFp32AndRoundOnce) {
  for (const OptimizerConfig& config : {adamw_config(), sgd_config(0.0), sgd_config(0.9)}) {
    const at::Tensor start = uniform_tensor("start", {kRows, kColumns}, at::kFloat);
    const auto reduced = with_16_bit_weight(start, GetParam());
    const auto optimizer = make_optimizer(config, {reduced.get()});
    const at::Tensor master = optimizer->full_weight(*reduced);
    EXPECT_EQ(optimizer->states(*reduced).back().name, "master_weight");
    EXPECT_TRUE(master.is_same(optimizer->states(*reduced).back().tensor));
    EXPECT_TRUE(at::equal(master, flat(reduced->weight()).to(at::kFloat)));
    master.copy_(flat(start));  // the unrounded start values

    const auto full = make_parameter("w", {kRows, kColumns}, at::kFloat);
    full->weight().copy_(start);
    full->gradient().copy_(reduced->gradient());
    const auto reference = make_optimizer(config, {full.get()});
    for (int step = 0; step < 3; ++step) {
      for (Optimizer* each : {optimizer.get(), reference.get()})
        each->step({.lr = 0.01, .weight_decay = 0.1, .gradient_scale = 0.5});
      EXPECT_TRUE(at::equal(master, flat(full->weight()))) << "other bits than fp32";
      EXPECT_TRUE(at::equal(flat(reduced->weight()), master.to(GetParam())));
    }
    EXPECT_FALSE(at::equal(master, flat(reduced->weight()).to(at::kFloat)))
        << "nothing was rounded";
  }
}

// Steps too small for a bf16 weight to move add up in its master.
TEST_P(MasterWeights, RememberStepsBelowTheRoundingOfTheWeight) {
  const auto parameter = with_16_bit_weight(at::ones({kRows, kColumns}), GetParam());
  parameter->gradient().fill_(1.0);
  const auto optimizer = make_optimizer(sgd_config(0.0), {parameter.get()});
  optimizer->step({.lr = 1e-4});
  EXPECT_TRUE(at::equal(parameter->weight(), at::ones({kRows, kColumns}).to(GetParam())));
  for (int step = 1; step < 100; ++step) optimizer->step({.lr = 1e-4});
  EXPECT_NEAR(parameter->weight()[0][0].item<double>(), 0.99, 0.004);
}

TEST_P(MasterWeights, AreBookedAsOneStateMore) {
  const Precision precision = GetParam() == at::kHalf ? Precision::kFp16 : Precision::kBf16;
  for (const OptimizerConfig& config : {adamw_config(), sgd_config(0.9), sgd_config(0.0)}) {
    EXPECT_EQ(num_optimizer_states(config, precision),
              1 + num_optimizer_states(config, Precision::kFp32));
    run_ranks(Mesh(MeshShape{}), ClusterOptions{}, [&](RankContext& context) {
      const MemoryScope scope(&context.memory, MemoryCategory::kActivations);
      const auto parameter = with_16_bit_weight(at::ones({kRows, kColumns}), GetParam());
      const auto optimizer = make_optimizer(config, {parameter.get()});
      const int64_t bytes = num_optimizer_states(config, precision) * kRows * kColumns * 4;
      EXPECT_EQ(context.memory.live(MemoryCategory::kOptimizer), bytes);
      optimizer->step({.lr = 0.1});
      EXPECT_EQ(context.memory.peak(MemoryCategory::kOptimizer), bytes);
    });
  }
}

// Three owners of a third each, cut inside a row, one more of nothing: together the bits of one
// owner of all; weights that a rank does not own stay as they are.
TEST_P(MasterWeights, OfShardsTakeTheStepsOfTheWhole) {
  constexpr int64_t kElements = kRows * kColumns;
  OptimizerConfig with_units = adamw_config();
  with_units.exp_avg_type = with_units.exp_avg_sq_type = MomentType::kFp16;
  for (const OptimizerConfig& config : {adamw_config(), with_units, sgd_config(0.9)}) {
    const at::Tensor start = uniform_tensor("start", {kRows, kColumns}, at::kFloat);
    const auto whole = with_16_bit_weight(start, GetParam());
    const auto reference = make_optimizer(config, {whole.get()});
    for (int step = 0; step < 3; ++step) reference->step({.lr = 0.01, .weight_decay = 0.1});
    for (const ElementRange range :
         std::vector<ElementRange>{{0, 44}, {44, 88}, {88, kElements}, {kElements, kElements}}) {
      const auto part = with_16_bit_weight(start, GetParam());
      const at::Tensor before = flat(part->weight()).clone();
      part->own(range, flat(part->weight()).narrow(0, range.begin, range.size()),
                flat(part->gradient()).narrow(0, range.begin, range.size()));
      const auto optimizer = make_optimizer(config, {part.get()});
      for (int step = 0; step < 3; ++step) optimizer->step({.lr = 0.01, .weight_decay = 0.1});
      const auto owned = [&](const at::Tensor& of) {
        return flat(of).narrow(0, range.begin, range.size());
      };
      EXPECT_TRUE(at::equal(part->owned_weight(), owned(whole->weight())));
      for (const OptimizerState& state : optimizer->states(*part)) {
        EXPECT_EQ(state.range, range);
        EXPECT_EQ(state.tensor.numel(), range.size());
      }
      EXPECT_TRUE(at::equal(optimizer->full_weight(*part), owned(reference->full_weight(*whole))));
      owned(part->weight()).copy_(owned(before));
      EXPECT_TRUE(at::equal(flat(part->weight()), before)) << "wrote what others own";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, MasterWeights, ::testing::Values(at::kBFloat16, at::kHalf),
                         [](const auto& instance) { return at::toString(instance.param); });

TEST(Optimizer, ScalesTheGradientButNotTheDecay) {
  for (const OptimizerConfig& config : {adamw_config(), sgd_config(0.9)}) {
    const auto scaled = make_parameter("w", {kRows, kColumns}, at::kDouble);
    const auto plain = make_parameter("w", {kRows, kColumns}, at::kDouble);
    plain->gradient().mul_(0.25);
    const at::Tensor before = scaled->gradient().clone();
    make_optimizer(config, {scaled.get()})
        ->step({.lr = 0.5, .weight_decay = 0.1, .gradient_scale = 0.25});
    make_optimizer(config, {plain.get()})->step({.lr = 0.5, .weight_decay = 0.1});
    EXPECT_TRUE(at::equal(scaled->weight(), plain->weight()));
    EXPECT_TRUE(at::equal(scaled->gradient(), before)) << "gradients are left alone";
  }
}

TEST(Optimizer, DecaysTheGainsOfQAndKNormsWhereAsked) {
  for (const bool asked : {false, true}) {
    OptimizerConfig config = adamw_config();
    config.decay_qk_norm = asked;
    const auto gain =
        make_parameter("model.layers.0.self_attn.q_norm.weight", {kColumns}, at::kDouble);
    const auto other =
        make_parameter("model.layers.0.input_layernorm.weight", {kColumns}, at::kDouble);
    for (const auto* parameter : {&gain, &other}) (*parameter)->gradient().zero_();
    const at::Tensor gain_start = gain->weight().clone(), other_start = other->weight().clone();
    make_optimizer(config, {gain.get(), other.get()})->step({.lr = 0.5, .weight_decay = 0.1});
    EXPECT_TRUE(
        at::allclose(gain->weight(), gain_start * (asked ? 1 - 0.5 * 0.1 : 1.0), 1e-15, 0.0));
    EXPECT_TRUE(at::equal(other->weight(), other_start));
  }
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
