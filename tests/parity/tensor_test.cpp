// Tensor and sequence parallelism against one rank, by the proof rules.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "parity/tensor_cases.h"
#include "sevenfold/dist/allocator.h"
#include "sevenfold/dist/threads/cluster.h"
#include "sevenfold/train/proof/layout_trace.h"
#include "sevenfold/train/proof/verify.h"
#include "sevenfold/train/rank_trainer.h"

namespace sevenfold {
namespace {

using testing::TemporaryDirectory;
using testing::tensor_experiment;
using testing::TensorCase;

class TensorParallelLayout : public ::testing::TestWithParam<TensorCase> {
 protected:
  void SetUp() override { install_allocator(); }
};

TEST_P(TensorParallelLayout, ComputesWhatOneRankComputes) {
  const TemporaryDirectory directory;
  const testing::Experiment experiment = tensor_experiment(directory, GetParam());
  const VerifyReport report = verify_layout(proof_config(experiment.config), *experiment.data, {});
  EXPECT_TRUE(report.pass) << report.failure();
  EXPECT_TRUE(report.axes_used.at("tp"));
  for (const VerifyStep& step : report.steps) EXPECT_TRUE(std::isfinite(step.loss_layout));
}

const auto kName = [](const auto& instance) { return instance.param.name(); };
INSTANTIATE_TEST_SUITE_P(Cover, TensorParallelLayout,
                         ::testing::ValuesIn(testing::tensor_cases(
                             testing::pairwise_cover(testing::all_tensor_combinations()))),
                         kName);

TEST(TensorParallelCover, HoldsEveryPairAndFewLayouts) {
  const auto all = testing::all_tensor_combinations(), cover = testing::pairwise_cover(all);
  EXPECT_LE(cover.size(), 60U);
  EXPECT_GE(cover.size(), 18U);  // models x KV heads alone
  for (const testing::Combination& one : all)
    for (size_t a = 0; a < one.size(); ++a)
      for (size_t b = a + 1; b < one.size(); ++b)
        ASSERT_TRUE(std::any_of(cover.begin(), cover.end(), [&](const auto& chosen) {
          return chosen[a] == one[a] && chosen[b] == one[b];
        }));
}

// Evaluation runs the same layers without a graph, and the last micro batch may be short.
TEST(TensorParallelEvaluation, GivesTheLossOfOneRank) {
  install_allocator();
  std::vector<double> losses;
  for (const int64_t tp : {1, 2, 4})
    for (const bool sequence : {false, true}) {
      const TemporaryDirectory directory;
      const testing::Experiment experiment =
          tensor_experiment(directory, {.model = "gpt_tied", .tp = tp, .sequence = sequence});
      const SampleStream samples(experiment.config, *experiment.data);
      run_ranks(Mesh(experiment.config.mesh), {}, [&](RankContext& rank) {
        RankTrainer trainer(experiment.config, samples, rank);
        const ValidationResult result = trainer.evaluate(*experiment.data, {.num_samples = 5});
        EXPECT_EQ(result.samples, 5);
        if (rank.rank == 0) losses.push_back(result.loss);
      });
    }
  for (const double loss : losses) EXPECT_NEAR(loss, losses[0], 1e-9 * losses[0]);
}

// Ranks whose parts differ by a row cut the same buckets, whatever their size.
TEST(TensorParallelBuckets, DoNotChangeABit) {
  install_allocator();
  for (const int64_t tp : {2, 4}) {
    const TemporaryDirectory directory;
    testing::Experiment experiment =
        tensor_experiment(directory, {.model = "llama", .groups = 1, .tp = tp, .sequence = true});
    std::vector<LayoutTrace> traces;
    // The head has 1632 elements on one of two ranks and 1664 on the other.
    for (const int64_t elements : {int64_t{1}, int64_t{840}, int64_t{1650}, int64_t{40'000'000}}) {
      experiment.config.run.gradient_bucket_elements = elements;
      traces.push_back(trace_layout(experiment.config, *experiment.data, {.steps = 2}));
    }
    for (const LayoutTrace& trace : traces)
      for (const auto& [name, weights] : trace.final_weights)
        EXPECT_TRUE(at::equal(weights, traces[0].final_weights.at(name))) << name;
  }
}

// A sum in another order is all that fp32 shows. In bf16 every rank rounds its partial sums: no
// more than twice as far from one rank as that is from fp32. (Without biases: that of the keys has
// a gradient which is almost zero by mathematics, so that its relative error is noise.)
TEST(TensorParallelPrecision, IsThatOfOneRank) {
  install_allocator();
  for (const char* precision : {"fp32", "bf16", "fp16"})
    for (const bool sequence : {false, true}) {
      const TemporaryDirectory directory;
      const testing::Experiment experiment = tensor_experiment(
          directory, {.model = "qk_norm", .groups = 1, .tp = 4, .sequence = sequence},
          {{"bf16", std::string(precision) == "bf16"}, {"fp16", std::string(precision) == "fp16"}},
          {{"precision", precision}});
      const VerifyReport report =
          verify_layout(proof_config(experiment.config), *experiment.data, {});
      EXPECT_TRUE(report.pass) << precision << ": " << report.failure();
      EXPECT_LT(report.max_loss_difference, 0.02) << precision;
      EXPECT_LT(report.allowed.gradient, 4.0) << precision;
    }
}

// Gradients all 1: every logical parameter counts once, however many ranks hold it.
TEST(TensorParallelNorm, OfOnesIsTheRootOfTheNumberOfLogicalParameters) {
  install_allocator();
  for (const bool tied : {false, true})
    for (const int64_t tp : {1, 2, 4})
      for (const bool sequence : {false, true})
        for (const int64_t dp : {1, 2}) {
          const TemporaryDirectory directory;
          const testing::Experiment experiment = tensor_experiment(
              directory,
              {.model = tied ? "tied" : "llama", .tp = tp, .sequence = sequence, .dp = dp});
          const LayoutTrace trace =
              trace_layout(experiment.config, *experiment.data, {.steps = 1, .ones = true});
          EXPECT_NEAR(trace.steps[0].gradient_norm, std::sqrt(tied ? 40384.0 : 43616.0), 1e-9);
        }
}

// Norms, norms of q and k, and copies of KV heads after 20 steps of AdamW with clipping, dropout
// and biases: the bits of every copy are the same (field case B09).
TEST(TensorParallelReplicas, AreBitEqualAfterTwentySteps) {
  install_allocator();
  for (const int64_t tp : {2, 4})
    for (const bool sequence : {false, true}) {
      const TemporaryDirectory directory;
      const testing::Experiment experiment = tensor_experiment(
          directory,
          {.model = "qk_norm",
           .groups = 1,
           .dropout = 0.1,
           .tp = tp,
           .sequence = sequence,
           .dp = 2},
          {{"optimizer", "adam"}, {"clip_grad", 0.5}, {"lr", 0.01}, {"add_bias_linear", true}},
          {{"precision", "fp32"}});
      const LayoutTrace trace = trace_layout(experiment.config, *experiment.data, {.steps = 20});
      EXPECT_TRUE(trace.replicas_equal) << "tp " << tp << (sequence ? " with sequence parts" : "");
      EXPECT_LT(trace.steps[19].loss, trace.steps[0].loss);
    }
}

// Weights cut and put together again are those of one rank, to the bit: biases are neither summed
// nor divided (field case B62), and no row of a vocabulary is padded (B11).
TEST(TensorParallelWeights, PutTogetherAreThoseOfOneRank) {
  install_allocator();
  for (const char* model : {"biased", "gpt_tied"})
    for (const bool sequence : {false, true}) {
      const TemporaryDirectory directory;
      const testing::Experiment experiment = tensor_experiment(
          directory, {.model = model, .groups = 1, .tp = 4, .sequence = sequence}, {{"lr", 0.0}});
      const LayoutTrace cut = trace_layout(experiment.config, *experiment.data, {.steps = 1});
      const Config alone = one_rank_config(experiment.config);
      const LayoutTrace whole = trace_layout(alone, *experiment.data, {.steps = 1});
      ASSERT_EQ(cut.final_weights.size(), whole.final_weights.size());
      for (const auto& [name, weights] : whole.final_weights)
        EXPECT_TRUE(at::equal(weights, cut.final_weights.at(name))) << name;
    }
}

// Collectives that run beside the weight gradients, or before them: the same bits.
TEST(TensorParallelOverlap, DoesNotChangeABit) {
  install_allocator();
  for (const bool sequence : {false, true}) {
    const TemporaryDirectory directory;
    testing::Experiment experiment = tensor_experiment(
        directory, {.model = "biased", .groups = 1, .dropout = 0.1, .tp = 4, .sequence = sequence},
        nlohmann::json::object(), {{"precision", "fp32"}});
    EXPECT_TRUE(experiment.config.parallel.tensor_overlap);
    const LayoutTrace beside = trace_layout(experiment.config, *experiment.data, {});
    experiment.config.parallel.tensor_overlap = false;
    const LayoutTrace before = trace_layout(experiment.config, *experiment.data, {});
    for (size_t step = 0; step < beside.steps.size(); ++step)
      EXPECT_EQ(beside.steps[step].gradient_norm, before.steps[step].gradient_norm);
    for (const auto& [name, weights] : beside.final_weights)
      EXPECT_TRUE(at::equal(weights, before.final_weights.at(name))) << name;
  }
}

// Rows of the vocabulary that do not divide (field case B11): with output weights of zero every
// token has the same probability, 1 / 101.
TEST(VocabularyOf101, HasTheLossOfAUniformGuessOnEveryNumberOfRanks) {
  install_allocator();
  for (const int64_t tp : {1, 2, 4})
    for (const bool sequence : {false, true}) {
      const TemporaryDirectory directory;
      testing::Experiment experiment =
          tensor_experiment(directory, {.model = "llama", .tp = tp, .sequence = sequence},
                            {{"make_vocab_size_divisible_by", 8}});
      EXPECT_EQ(experiment.config.model.padded_vocab_size, tp == 1 ? 104 : tp == 2 ? 112 : 128);
      experiment.config.run.start = StartKind::kInit;
      experiment.config.model.init_method_std = 0.0;
      const LayoutTrace trace = trace_layout(experiment.config, *experiment.data, {.steps = 1});
      EXPECT_NEAR(trace.steps[0].loss, std::log(101.0), 1e-12);
      EXPECT_EQ(trace.final_weights.at("lm_head.weight").size(0), 101);
    }
}

}  // namespace
}  // namespace sevenfold
