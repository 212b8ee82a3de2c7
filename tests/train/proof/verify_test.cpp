#include "sevenfold/train/proof/verify.h"

#include <gtest/gtest.h>

#include "sevenfold/dataset/synthetic_source.h"
#include "sevenfold/dist/allocator.h"
#include "sevenfold/train/proof/layout_trace.h"
#include "train/experiments.h"

namespace sevenfold {
namespace {

using testing::TemporaryDirectory;

TEST(OneRankConfig, KeepsGlobalAndMicroBatch) {
  const TemporaryDirectory directory;
  const Config config =
      testing::m0_experiment(directory, "D3", 4, {{"micro_batch_size", 2}}).config;
  EXPECT_EQ(config.batch.num_microbatches, 1);
  const Config one = one_rank_config(config);
  EXPECT_EQ(one.mesh.world_size(), 1);
  EXPECT_EQ(one.batch.global_batch_size, 8);
  EXPECT_EQ(one.batch.micro_batch_size, 2);
  EXPECT_EQ(one.batch.num_microbatches, 4);
}

TEST(ShrinkConfig, KeepsRatiosAndCutsSizes) {
  Config config;
  config.model = {.num_layers = 32,
                  .hidden_size = 4096,
                  .ffn_hidden_size = 11008,
                  .num_attention_heads = 32,
                  .num_query_groups = 8,
                  .kv_channels = 128,
                  .vocab_size = 128'256,
                  .seq_length = 8192};
  config.mesh.dp = 8;
  config.batch = {.micro_batch_size = 2, .global_batch_size = 128, .num_microbatches = 8};
  const Config small = shrink_config(config);
  EXPECT_EQ(small.mesh.dp, 2);
  EXPECT_EQ(small.batch.num_microbatches, 8);
  EXPECT_EQ(small.batch.global_batch_size, 32);
  EXPECT_EQ(small.model.num_attention_heads, 32);
  EXPECT_EQ(small.model.num_query_groups, 8);
  EXPECT_EQ(small.model.hidden_size, 256);
  EXPECT_EQ(small.model.ffn_hidden_size, 688);
  EXPECT_EQ(small.model.vocab_size, 211);
  EXPECT_EQ(small.model.seq_length, 32);
  EXPECT_EQ(small.model.num_layers, 2);
}

TEST(VerifyLayout, PassesOnAShrunkLayoutWithMadeUpTokens) {
  install_allocator();
  const TemporaryDirectory directory;
  Config config = shrink_config(proof_config(testing::m0_experiment(directory, "D3", 4).config));
  config.data.eod_token_id = SyntheticSource::kEodTokenId;
  const SyntheticSource source(
      {.vocab_size = config.model.vocab_size, .seq_length = config.model.seq_length});
  const VerifyReport report = verify_layout(config, source, {});
  EXPECT_TRUE(report.pass) << report.failure();
  EXPECT_EQ(report.layout.dp, 2);
  EXPECT_TRUE(report.unequal_tokens);
}

TEST(VerifyLayout, PassesInEveryPrecisionWithinItsTolerance) {
  install_allocator();
  for (const char* precision : {"fp32", "bf16", "fp16"}) {
    const TemporaryDirectory directory;
    const auto experiment = testing::m0_experiment(directory, "D3", 4, {{"weight_decay", 0.1}},
                                                   {{"precision", precision}});
    const VerifyReport report =
        verify_layout(proof_config(experiment.config), *experiment.data, {.steps = 3});
    EXPECT_TRUE(report.pass) << precision << ": " << report.failure();
    const double tolerance = std::string(precision) == "fp32" ? 1e-4 : 3e-2;
    EXPECT_EQ(report.tolerance, tolerance);
#ifdef SEVENFOLD_FAULTS
    // A mistake of a factor, or of a token's weight, is far outside.
    const VerifyReport faulty =
        verify_layout(proof_config(experiment.config), *experiment.data,
                      {.steps = 1, .faults = FaultSet().enable(Fault::kMeanPerMicrobatch)});
    EXPECT_FALSE(faulty.pass) << precision;
#endif
  }
}

// The gradient of a key bias is rounding alone where keys are not rotated (the G0 of the goldens);
// in fp32 that is more than 1e-7 of the largest gradient of all.
TEST(VerifyLayout, MeasuresAKeyBiasAgainstTheKeyWeights) {
  install_allocator();
  const TemporaryDirectory directory;
  auto experiment = testing::g0_experiment(
      directory, "D3", 4, 0.0,
      {{"num_layers", 8}, {"tensor_model_parallel_size", 2}, {"sequence_parallel", false}});
  experiment.config.run.precision = Precision::kFp32;
  const VerifyReport report =
      verify_layout(proof_config(experiment.config), *experiment.data, {.steps = 3});
  EXPECT_TRUE(report.pass) << report.failure();
}

// Gradients rounded for their sum move rounded weights by 2^-8 of themselves: a layout may differ
// by what rounding does to one rank.
TEST(VerifyLayout, AllowsForGradientsSummedInBf16) {
  install_allocator();
  const TemporaryDirectory directory;
  auto experiment = testing::g0_experiment(
      directory, "D3", 4, 0.0,
      {{"num_layers", 8}, {"micro_batch_size", 2}, {"global_batch_size", 32}});
  experiment.config.run.precision = Precision::kBf16;
  experiment.config.parallel.reduces_in_bf16 = true;
  const VerifyReport report =
      verify_layout(proof_config(experiment.config), *experiment.data, {.steps = 3});
  EXPECT_GT(report.max_gradient_difference, report.tolerance);
  EXPECT_GT(report.allowed.gradient, report.tolerance);
  EXPECT_TRUE(report.pass) << report.failure();
#ifdef SEVENFOLD_FAULTS
  const VerifyReport faulty =
      verify_layout(proof_config(experiment.config), *experiment.data,
                    {.steps = 1, .faults = FaultSet().enable(Fault::kMeanPerMicrobatch)});
  EXPECT_FALSE(faulty.pass);
#endif
  // A reduce-scatter of them sends half the bytes of one in fp32, and is all of them nevertheless.
  for (const ZeroStage stage : {ZeroStage::kOptimizer, ZeroStage::kParameters}) {
    experiment.config.parallel.zero = stage;
    const VerifyReport sharded =
        verify_layout(proof_config(experiment.config), *experiment.data, {.steps = 1});
    EXPECT_TRUE(sharded.pass) << sharded.failure();
  }
}

// Cyclic order depends on the number of ranks: the one rank reads what the layout read.
TEST(VerifyLayout, HandsItsOneRankTheSamplesOfACyclicLayout) {
  install_allocator();
  for (const bool sharded : {true, false}) {
    const TemporaryDirectory directory;
    auto experiment = testing::m0_experiment(directory, "D1", 4);
    experiment.config.data.loader = LoaderKind::kCyclic;
    experiment.config.data.data_sharding = sharded;
    const VerifyReport report =
        verify_layout(proof_config(experiment.config), *experiment.data, {.steps = 3});
    EXPECT_TRUE(report.pass) << report.failure();
    Config other_order = one_rank_config(experiment.config);
    other_order.data.order_dp_size = 1;
    const double other = trace_layout(other_order, *experiment.data, {.steps = 1}).steps[0].loss;
    if (sharded) {
      EXPECT_NE(other, report.steps[0].loss_reference) << "one rank by itself reads other samples";
    }
  }
}

TEST(VerifyLayout, SaysWhenEqualTokenCountsHideMistakesOfAveraging) {
  install_allocator();
  const TemporaryDirectory directory;
  const auto experiment = testing::m0_experiment(directory, "D3", 2, {{"eod_mask_loss", false}});
  const VerifyReport report =
      verify_layout(proof_config(experiment.config), *experiment.data,
                    {.steps = 1, .faults = FaultSet().enable(Fault::kMeanPerMicrobatch)});
  EXPECT_FALSE(report.unequal_tokens);
  EXPECT_TRUE(report.pass) << "the planted fault shows after all: the note is no longer needed";
}

TEST(VerifyReport, NamesTheFirstRuleThatDoesNotHold) {
  VerifyReport report;
  report.allowed = {1e-9, 1e-9, 1e-9};
  report.replicas_equal = true;
  EXPECT_EQ(report.failure(), "");
  report.axes_used = {{"dp", false}};
  EXPECT_EQ(report.failure(),
            "gradients were computed without sending what axis dp must send: the layout replicates "
            "silently");
  report.replicas_equal = false;
  EXPECT_EQ(report.failure(),
            "replicated weights, gradients or optimizer states are not the same bits on all ranks");
  report.max_gradient_difference = std::numeric_limits<double>::infinity();
  report.worst_parameter = "lm_head.weight";
  EXPECT_EQ(report.failure(),
            "the gradient of lm_head.weight differs by inf (relative), more than 1e-09");
  report.max_loss_difference = 0.5;
  EXPECT_EQ(report.failure(), "the loss differs by 0.5 (relative), more than 1e-09");
}

}  // namespace
}  // namespace sevenfold
