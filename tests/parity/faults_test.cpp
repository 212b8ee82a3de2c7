// Every planted fault must make `verify` fail, by the rule that it breaks: a parity test that
// cannot fail proves nothing.

#include <gtest/gtest.h>

#include <algorithm>

#include "parity/pipeline_cases.h"
#include "parity/tensor_cases.h"
#include "parity/zero_cases.h"
#include "sevenfold/core/error.h"
#include "sevenfold/dist/allocator.h"
#include "sevenfold/train/proof/verify.h"
#include "train/experiments.h"

namespace sevenfold {
namespace {

using testing::Sets;
using testing::TemporaryDirectory;

// Unequal numbers of trained tokens, accumulation, a tied table, and a step that leaves samples
// over; or biases, dropout and documents kept apart: every fault shows in one of the two.
VerifyReport verify_llama(FaultSet faults) {
  install_allocator();
  const TemporaryDirectory directory;
  const testing::Experiment experiment = testing::m0_experiment(
      directory, "D3", 2,
      {{"untie_embeddings_and_output_weights", false}, {"global_batch_size", 4}});
  return verify_layout(proof_config(experiment.config), *experiment.data,
                       {.steps = 2, .faults = faults});
}

VerifyReport verify_gpt(FaultSet faults) {
  install_allocator();
  const TemporaryDirectory directory;
  const testing::Experiment experiment = testing::g0_experiment(
      directory, "D1", 2, 0.1,
      {{"global_batch_size", 4}, {"reset_position_ids", true}, {"reset_attention_mask", true}});
  return verify_layout(proof_config(experiment.config), *experiment.data,
                       {.steps = 2, .faults = faults});
}

// Biases, norms of q and k, two ranks for each KV head, a vocabulary that does not divide.
VerifyReport verify_tensor(FaultSet faults, bool sequence) {
  install_allocator();
  const TemporaryDirectory directory;
  const testing::Experiment experiment = testing::tensor_experiment(
      directory, {.model = "biased", .groups = 2, .dropout = 0.1, .tp = 4, .sequence = sequence},
      {{"qk_layernorm", true}, {"make_vocab_size_divisible_by", 8}});
  return verify_layout(proof_config(experiment.config), *experiment.data,
                       {.steps = 2, .faults = faults});
}

// Three owners, whose shards of the tied table differ in size.
VerifyReport verify_zero(FaultSet faults, int64_t stage, int64_t replicate = 1) {
  install_allocator();
  const TemporaryDirectory directory;
  const testing::Experiment experiment =
      testing::zero_experiment(directory, {.stage = stage,
                                           .dp = 3 * replicate,
                                           .accumulation = 2,
                                           .tied = true,
                                           .replicate = replicate});
  return verify_layout(proof_config(experiment.config), *experiment.data,
                       {.steps = 2, .faults = faults});
}

VerifyReport verify_recomputed(FaultSet faults,
                               const nlohmann::json& keys = {{"recompute_granularity", "full"},
                                                             {"recompute_method", "uniform"},
                                                             {"recompute_num_layers", 1}}) {
  install_allocator();
  const TemporaryDirectory directory;
  const testing::Experiment experiment = testing::g0_experiment(directory, "D3", 2, 0.1, keys);
  return verify_layout(proof_config(experiment.config), *experiment.data,
                       {.steps = 2, .faults = faults});
}

// Three layers on two stages, a table at both ends, B and W apart.
VerifyReport verify_pipeline(FaultSet faults, const std::string& algorithm, int64_t dp = 1) {
  install_allocator();
  const TemporaryDirectory directory;
  const testing::Experiment experiment =
      testing::pipeline_experiment(directory, {.algorithm = algorithm,
                                               .pp = 2,
                                               .microbatches = 4,
                                               .tied = true,
                                               .cut = testing::StageCut::kUneven,
                                               .dp = dp});
  return verify_layout(proof_config(experiment.config), *experiment.data,
                       {.steps = 2, .faults = faults});
}

// Steps that are taken back: AdamW, and a clip that the first step's norm just reaches, so that the
// first stage alone does not.
VerifyReport verify_post_validation(FaultSet faults) {
  install_allocator();
  const TemporaryDirectory directory;
  const testing::Experiment experiment =
      testing::pipeline_experiment(directory, {.algorithm = "zb-h2", .pp = 2, .microbatches = 4});
  Config config = proof_config(experiment.config);
  const double norm =
      verify_layout(config, *experiment.data, {.steps = 1}).steps.at(0).norm_reference;
  config.optimizer.kind = OptimizerKind::kAdamW;
  config.optimizer.clip_grad = 0.9999 * norm;
  config.pipeline.post_validation = true;
  return verify_layout(config, *experiment.data, {.steps = 2, .faults = faults});
}

bool is_of_post_validation(Fault fault) {
  return fault == Fault::kRollBackForgetsMoment || fault == Fault::kPartialNormForFull;
}

bool is_of_pipelines(Fault fault) {
  return fault == Fault::kQueuedWeightGradientsDropped || fault == Fault::kOwnersNotSummed ||
         fault == Fault::kLayerLost || fault == Fault::kLossScaledTwice;
}

bool is_of_zero(Fault fault) {
  return fault == Fault::kShardNormNotSummed || fault == Fault::kLastShardNotUpdated ||
         fault == Fault::kWeightsNotGathered || fault == Fault::kWeightsReadEarly;
}

bool is_of_tensor_parallelism(Fault fault) {
  switch (fault) {
    case Fault::kTensorIgnored:
    case Fault::kTensorSumMissing:
    case Fault::kTensorSumTwice:
    case Fault::kTensorInputSumMissing:
    case Fault::kTensorInputSumTwice:
    case Fault::kCopiesNotSummed:
    case Fault::kReplicatedGradientsNotSummed:
    case Fault::kBiasPerRank:
    case Fault::kPaddedRowsInSoftmax:
    case Fault::kSequenceOffsetDropped:
      return true;
    default:
      return false;
  }
}

VerifyReport verify_with(Fault fault) {
  const FaultSet faults = FaultSet().enable(fault);
  if (is_of_tensor_parallelism(fault)) return verify_tensor(faults, /*sequence=*/true);
  if (is_of_zero(fault)) return verify_zero(faults, 1);
  if (fault == Fault::kReplicasNotSummed) return verify_zero(faults, 3, 2);
  if (is_of_pipelines(fault)) return verify_pipeline(faults, "zb-h1");
  if (is_of_post_validation(fault)) return verify_post_validation(faults);
  switch (fault) {
    case Fault::kRecomputeDropoutRedrawn:
      return verify_recomputed(faults);
    case Fault::kDropoutRedrawn:
    case Fault::kDropoutKeyedByRow:
    case Fault::kBiasGradientDropped:
    case Fault::kPositionsNotReset:
    case Fault::kDocumentMaskDropped:
      return verify_gpt(faults);
    default:
      return verify_llama(faults);
  }
}

enum class Rule { kLayers, kLoss, kNorm, kGradient, kReplicas, kAxes };

// The rule that sees the fault at its root. Most show in the gradients first and in the rest after.
Rule rule_that_sees(Fault fault) {
  switch (fault) {
    case Fault::kLayerLost:
      return Rule::kLayers;
    case Fault::kLossNotSummed:
      return Rule::kLoss;
    case Fault::kTiedTableCountedTwice:
    case Fault::kShardNormNotSummed:
    case Fault::kPartialNormForFull:
      return Rule::kNorm;
    case Fault::kOwnersNotSummed:
    case Fault::kStartPerRank:
    case Fault::kReplicaNotUpdated:
    case Fault::kNormOfLocalGradient:
    case Fault::kReduceBeforeLastMicrobatch:
    case Fault::kWeightsNotGathered:
    case Fault::kWeightsReadEarly:
      return Rule::kReplicas;
    case Fault::kDataParallelSumMissing:
    case Fault::kTensorIgnored:
    case Fault::kReplicasNotSummed:
      return Rule::kAxes;
    default:
      return Rule::kGradient;
  }
}

bool breaks(const VerifyReport& report, Rule rule) {
  switch (rule) {
    case Rule::kLayers:
      return !report.missing_parameter.empty();
    case Rule::kLoss:
      return report.max_loss_difference > report.tolerance;
    case Rule::kNorm:
      return report.max_norm_difference > report.tolerance;
    case Rule::kGradient:
      return report.max_gradient_difference > report.tolerance;
    case Rule::kReplicas:
      return !report.replicas_equal;
    case Rule::kAxes:
      return std::any_of(report.axes_used.begin(), report.axes_used.end(),
                         [](const auto& axis) { return !axis.second; });
  }
  return false;
}

class PlantedFault : public ::testing::TestWithParam<FaultInfo> {};

TEST_P(PlantedFault, IsCaughtByTheRuleThatItBreaks) {
  const VerifyReport report = verify_with(GetParam().fault);
  EXPECT_FALSE(report.pass) << GetParam().name << ": " << GetParam().meaning;
  EXPECT_TRUE(breaks(report, rule_that_sees(GetParam().fault))) << report.failure();
}

// Those of tensor parallelism without sequence parallelism.
class TensorFault : public PlantedFault {};

std::vector<FaultInfo> tensor_faults() {
  std::vector<FaultInfo> faults;
  for (const FaultInfo& info : all_faults())
    if (is_of_tensor_parallelism(info.fault) && info.fault != Fault::kSequenceOffsetDropped)
      faults.push_back(info);
  return faults;
}

TEST_P(TensorFault, IsCaughtWithWholeSequencesToo) {
  const Fault fault = GetParam().fault;
  const VerifyReport report = verify_tensor(FaultSet().enable(fault), /*sequence=*/false);
  EXPECT_FALSE(report.pass) << GetParam().name;
  EXPECT_TRUE(breaks(report, rule_that_sees(fault))) << report.failure();
}

// Where each rank owns a shard, copies do not give a mistake away: a replica that skips its step,
// and sums and divisors that are wrong alike on all ranks.
TEST(PlantedFaultsWithZero, AreCaughtInEachStage) {
  for (const auto& [stage, replicate] : Sets{{1, 1}, {2, 1}, {3, 1}, {1, 2}, {2, 2}, {3, 2}}) {
    for (const Fault fault :
         {Fault::kShardNormNotSummed, Fault::kLastShardNotUpdated, Fault::kWeightsNotGathered,
          Fault::kWeightsReadEarly, Fault::kDivisorTwice, Fault::kDataParallelSumTwice,
          Fault::kDataParallelSumMissing, Fault::kReplicaNotUpdated, Fault::kNormOfLocalGradient,
          Fault::kTiedTableCountedTwice, Fault::kTiedGradientDropped}) {
      const VerifyReport report = verify_zero(FaultSet().enable(fault), stage, replicate);
      EXPECT_FALSE(report.pass) << "stage " << stage << ", " << replicate << " sets, "
                                << FaultSet().enable(fault).to_string();
    }
    const VerifyReport report = verify_zero({}, stage, replicate);
    EXPECT_TRUE(report.pass) << report.failure();
    EXPECT_THROW(verify_zero(FaultSet().enable(Fault::kStaleWeights), stage, replicate),
                 InternalError);
  }
}

// Of the parts of a layer attention draws masks; the others have none to draw.
TEST(RecomputedParts, DrawTheMasksOfTheFirstForward) {
  const FaultSet redrawn = FaultSet().enable(Fault::kRecomputeDropoutRedrawn);
  const auto verify = [](FaultSet faults, const nlohmann::json& modules) {
    return verify_recomputed(
        faults, {{"recompute_granularity", "selective"}, {"recompute_modules", modules}});
  };
  for (const nlohmann::json& modules :
       {nlohmann::json{"core_attn"}, nlohmann::json{"core_attn", "layernorm", "mlp"}}) {
    EXPECT_TRUE(verify({}, modules).pass) << modules;
    const VerifyReport report = verify(redrawn, modules);
    EXPECT_FALSE(report.pass) << modules;
    EXPECT_TRUE(breaks(report, Rule::kGradient)) << report.failure();
  }
  EXPECT_TRUE(verify(redrawn, {"layernorm", "moe_act", "mlp"}).pass);
}

// The norm sees a loss that is scaled twice, twins that go their own ways show as replicas, and a
// sum that starts before the last W is a sum of less (field cases B04, B39, B37).
TEST(PlantedFaultsInPipelines, AreCaughtUnderOtherSchedules) {
  for (const char* algorithm : {"1f1b", "zbv-formatted", "dualpipe"}) {
    EXPECT_TRUE(verify_pipeline({}, algorithm).pass) << algorithm;
    const VerifyReport report =
        verify_pipeline(FaultSet().enable(Fault::kLossScaledTwice), algorithm);
    EXPECT_TRUE(breaks(report, Rule::kNorm)) << algorithm;
    EXPECT_NEAR(report.steps[0].loss_reference, report.steps[0].loss_layout, 1e-9)
        << "the loss of the first step, which does not show it";
  }
  EXPECT_TRUE(breaks(verify_pipeline(FaultSet().enable(Fault::kOwnersNotSummed), "dualpipe"),
                     Rule::kReplicas));
  for (const char* algorithm : {"zb-h1", "zbv-formatted"}) {
    EXPECT_TRUE(verify_pipeline({}, algorithm, 2).pass) << algorithm;
    for (const Fault fault : {Fault::kReduceBeforeLastMicrobatch, Fault::kNormOfLocalGradient})
      EXPECT_FALSE(verify_pipeline(FaultSet().enable(fault), algorithm, 2).pass) << algorithm;
    EXPECT_FALSE(
        verify_pipeline(FaultSet().enable(Fault::kQueuedWeightGradientsDropped), algorithm).pass)
        << algorithm;
  }
  for (const Fault fault : {Fault::kTiedTableCountedTwice, Fault::kTiedGradientDropped,
                            Fault::kLossNotSummed, Fault::kStartPerRank})
    EXPECT_FALSE(verify_pipeline(FaultSet().enable(fault), "1f1b").pass)
        << FaultSet().enable(fault).to_string();
}

const auto kName = [](const auto& instance) {
  std::string name(instance.param.name);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
};
// Weights of an older step are not read at all: PlantedFaultsWithZero sees the refusal. Checkpoints
// take no part in `verify`: checkpoint_test.cpp sees their faults.
std::vector<FaultInfo> verified_faults() {
  std::vector<FaultInfo> faults = all_faults();
  std::erase_if(faults, [](const FaultInfo& info) {
    return info.fault == Fault::kStaleWeights || info.fault == Fault::kRestoredStatesDropped ||
           info.fault == Fault::kRestoredShardMisplaced;
  });
  return faults;
}
INSTANTIATE_TEST_SUITE_P(All, PlantedFault, ::testing::ValuesIn(verified_faults()), kName);
INSTANTIATE_TEST_SUITE_P(WholeSequences, TensorFault, ::testing::ValuesIn(tensor_faults()), kName);

// Without a fault the same experiments pass, so each failure above is the fault's.
TEST(PlantedFaults, AreOffUnlessAskedFor) {
  for (const VerifyReport& report :
       {verify_llama({}), verify_gpt({}), verify_recomputed({}), verify_pipeline({}, "zb-h1"),
        verify_tensor({}, false), verify_tensor({}, true), verify_post_validation({})})
    EXPECT_TRUE(report.pass) << report.failure();
}

}  // namespace
}  // namespace sevenfold
