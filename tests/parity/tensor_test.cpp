// Tensor and sequence parallelism against one rank, by the proof rules.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

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
        // Every rank has the figure.
        const at::Tensor others = at::full({1}, result.loss, at::kDouble);
        rank.group("world").all_reduce_max(others).wait();
        EXPECT_EQ(others.item<double>(), result.loss);
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
      const double most = precision == std::string("bf16") ? 0.6 : 0.07;
      EXPECT_LT(report.allowed.gradient, most) << precision;
    }
}

// Of the whole model, written down by hand.
int64_t logical_parameters(const TensorCase& c, const ModelConfig& model) {
  const int64_t h = model.hidden_size, f = model.ffn_hidden_size, head = model.kv_channels;
  const int64_t q = model.num_attention_heads * head, kv = c.groups * head;
  const bool is_gpt = c.model.starts_with("gpt"), is_tied = c.model.ends_with("tied");
  int64_t layer = 2 * h * q + 2 * h * kv + (is_gpt ? 2 : 3) * h * f + (is_gpt ? 4 : 2) * h;
  if (c.model == "qk_norm") layer += 2 * head;
  if (c.model == "biased") layer += q + 2 * kv + h + 2 * f + h;
  if (is_gpt) layer += q + 2 * kv + h + f + h;
  const int64_t tables = (is_tied ? 1 : 2) * 101 * h + (is_gpt ? 32 * h : 0);
  return 4 * layer + tables + (is_gpt ? 2 : 1) * h;
}

// Gradients all 1: every logical parameter counts once, however many ranks hold it.
TEST_P(TensorParallelLayout, CountsEveryLogicalParameterOnceInTheNorm) {
  const TemporaryDirectory directory;
  const testing::Experiment experiment = tensor_experiment(directory, GetParam());
  const LayoutTrace trace =
      trace_layout(experiment.config, *experiment.data, {.steps = 1, .ones = true});
  const auto count = static_cast<double>(logical_parameters(GetParam(), experiment.config.model));
  EXPECT_NEAR(trace.steps[0].gradient_norm, std::sqrt(count), 1e-9);
}

TEST(TensorParallelNorm, OfM0IsPublished) {
  install_allocator();
  for (const bool tied : {false, true}) {
    const TemporaryDirectory directory;
    const TensorCase c{.model = tied ? "tied" : "llama"};
    EXPECT_EQ(logical_parameters(c, tensor_experiment(directory, c).config.model),
              tied ? 40384 : 43616);
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

double loss_after(const testing::Experiment& experiment,
                  const std::function<void(const Parameter&)>& change) {
  double loss = 0.0;
  const SampleStream samples(experiment.config, *experiment.data);
  run_ranks(Mesh(experiment.config.mesh), {}, [&](RankContext& rank) {
    RankTrainer trainer(experiment.config, samples, rank);
    for (const Parameter* parameter : trainer.parameters()) change(*parameter);
    const ValidationResult result = trainer.evaluate(*experiment.data, {.num_samples = 4});
    if (rank.rank == 0) loss = result.loss;
  });
  return loss;
}

// Rows of the vocabulary that do not divide (field case B11): with output weights of zero every
// token has the same probability, 1 / 101.
TEST(VocabularyOf101, HasTheLossOfAUniformGuessOnEveryNumberOfRanks) {
  install_allocator();
  for (const int64_t tp : {1, 2, 4})
    for (const bool sequence : {false, true}) {
      const TemporaryDirectory directory;
      const testing::Experiment experiment =
          tensor_experiment(directory, {.model = "llama", .tp = tp, .sequence = sequence},
                            {{"make_vocab_size_divisible_by", 8}});
      EXPECT_EQ(experiment.config.model.padded_vocab_size, tp == 1 ? 104 : tp == 2 ? 112 : 128);
      const double loss = loss_after(experiment, [](const Parameter& parameter) {
        if (parameter.name() == "lm_head.weight") parameter.weight().zero_();
      });
      EXPECT_NEAR(loss, std::log(101.0), 1e-12);
    }
}

// Field case B62: every bias 1. One that each rank adds once more, or that is divided by them,
// changes the logits.
TEST(TensorParallelBiases, OfOneAreAddedOnce) {
  install_allocator();
  for (const char* model : {"biased", "gpt"}) {
    std::vector<double> losses;
    for (const int64_t tp : {1, 2, 4})
      for (const bool sequence : {false, true}) {
        const TemporaryDirectory directory;
        const testing::Experiment experiment = tensor_experiment(
            directory, {.model = model, .groups = 1, .tp = tp, .sequence = sequence});
        losses.push_back(loss_after(experiment, [](const Parameter& parameter) {
          if (parameter.name().ends_with(".bias")) parameter.weight().fill_(1.0);
        }));
      }
    for (const double loss : losses) EXPECT_NEAR(loss, losses[0], 1e-12 * losses[0]) << model;
  }
}

}  // namespace
}  // namespace sevenfold
