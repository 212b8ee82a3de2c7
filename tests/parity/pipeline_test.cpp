// Pipeline stages against one rank by the proof rules: every schedule.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

#include "parity/pipeline_cases.h"
#include "sevenfold/dist/allocator.h"
#include "sevenfold/dist/threads/cluster.h"
#include "sevenfold/train/proof/layout_trace.h"
#include "sevenfold/train/proof/verify.h"

namespace sevenfold {
namespace {

using testing::pipeline_experiment;
using testing::PipelineCase;
using testing::StageCut;
using testing::TemporaryDirectory;

class PipelineLayout : public ::testing::TestWithParam<PipelineCase> {
 protected:
  void SetUp() override { install_allocator(); }
};

TEST_P(PipelineLayout, ComputesWhatOneRankComputes) {
  const TemporaryDirectory directory;
  const testing::Experiment experiment = pipeline_experiment(directory, GetParam());
  const VerifyReport report =
      verify_layout(proof_config(experiment.config), *experiment.data, {.steps = 2});
  EXPECT_TRUE(report.pass) << report.failure();
  EXPECT_TRUE(report.axes_used.at("pp"));
  for (const VerifyStep& step : report.steps) EXPECT_TRUE(std::isfinite(step.loss_layout));
}

std::vector<PipelineCase> cover() {
  std::vector<PipelineCase> cases;
  for (const testing::Combination& c :
       testing::pairwise_cover(testing::all_pipeline_combinations()))
    cases.push_back(testing::pipeline_case(c));
  return cases;
}

const auto kName = [](const auto& instance) { return instance.param.name(); };
INSTANTIATE_TEST_SUITE_P(Cover, PipelineLayout, ::testing::ValuesIn(cover()), kName);

// Gradients all 1: every logical parameter counts once, a table with an owner at each end of the
// pipeline and the twins of a stage too (field cases B06, B07, B39).
TEST(PipelineNorm, OfOnesIsTheRootOfTheNumberOfLogicalParameters) {
  install_allocator();
  for (const char* algorithm : {"1f1b", "1f1b-interleaved", "zbv-formatted", "dualpipe"})
    for (const bool tied : {false, true})
      for (const int64_t zero : {0, 1, 2, 3}) {
        const TemporaryDirectory directory;
        const testing::Experiment experiment =
            pipeline_experiment(directory, {.algorithm = algorithm,
                                            .pp = 4,
                                            .microbatches = 8,
                                            .tied = tied,
                                            .dp = 2,
                                            .zero = zero});
        const LayoutTrace trace =
            trace_layout(experiment.config, *experiment.data, {.steps = 1, .ones = true});
        const double layers = static_cast<double>(experiment.config.model.num_layers);
        EXPECT_NEAR(trace.steps[0].gradient_norm,
                    std::sqrt(layers * 9280.0 + 32.0 + (tied ? 3232.0 : 6464.0)), 1e-9)
            << algorithm << (tied ? " tied" : "") << " zero " << zero;
      }
}

// Field case B07: after ten steps the copies are the same bits, and one rank's table to rounding.
TEST(TiedTable, StaysOneAcrossTheEndsOfAPipeline) {
  install_allocator();
  for (const char* algorithm : {"1f1b", "zb-interleaved", "v-half", "dualpipe"})
    for (const int64_t pp : {2, 4}) {
      const TemporaryDirectory directory;
      const testing::Experiment experiment = pipeline_experiment(
          directory, {.algorithm = algorithm, .pp = pp, .microbatches = 8, .tied = true},
          {{"train_iters", 10}});
      const LayoutTrace one =
          trace_layout(one_rank_config(experiment.config), *experiment.data, {.steps = 10});
      const LayoutTrace many = trace_layout(experiment.config, *experiment.data, {.steps = 10});
      EXPECT_TRUE(many.replicas_equal) << algorithm;
      const char* name = "model.embed_tokens.weight";
      EXPECT_TRUE(at::allclose(many.final_weights.at(name), one.final_weights.at(name), 1e-5, 1e-7))
          << algorithm << " pp " << pp;
    }
}

// Field case B12: fewer micro batches than stages, every schedule that has one for them.
TEST(FewMicrobatches, RunOnFourStages) {
  install_allocator();
  for (const std::string& algorithm : testing::pipeline_algorithms())
    for (const int64_t microbatches : {1, 2, 3}) {
      const PipelineCase c{.algorithm = algorithm, .pp = 4, .microbatches = microbatches};
      if (!testing::is_possible(c)) continue;
      const TemporaryDirectory directory;
      const testing::Experiment experiment = pipeline_experiment(directory, c);
      const VerifyReport report =
          verify_layout(proof_config(experiment.config), *experiment.data, {.steps = 1});
      EXPECT_TRUE(report.pass) << c.name() << ": " << report.failure();
    }
}

// Field case B13: every layer is owned once, whatever the cut.
TEST(UnevenStages, HoldEveryLayerOnce) {
  install_allocator();
  for (const auto& [pp, algorithm, layers] :
       std::vector<std::tuple<int64_t, std::string, std::vector<int64_t>>>{
           {4, "1f1b", {2, 1, 1, 1}},
           {4, "zb-h1", {2, 2, 1, 1}},
           {4, "1f1b", {1, 2, 2, 2}},
           {2, "1f1b-interleaved", {2, 2, 1, 1}},
           {2, "zbv-formatted", {1, 2, 1, 1}},
           {2, "zb-interleaved", {0, 3, 2, 0}}}) {
    const TemporaryDirectory directory;
    int64_t first = 0;
    std::vector<StageLayers> stages;
    for (const int64_t count : layers) {
      stages.push_back({first, count, stages.empty(), stages.size() + 1 == layers.size()});
      first += count;
    }
    testing::Experiment experiment =
        pipeline_experiment(directory, {.algorithm = algorithm, .pp = pp}, {{"num_layers", first}});
    experiment.config.pipeline.stages = stages;
    const VerifyReport report =
        verify_layout(proof_config(experiment.config), *experiment.data, {.steps = 1});
    EXPECT_TRUE(report.pass) << algorithm << " " << first << ": " << report.failure();
  }
}

// A rank whose stages have no layers passes on what it gets, and has nothing to send to its
// tensor-parallel neighbours.
TEST(StagesWithoutLayers, LeaveWholeRanksWithNothingToCompute) {
  install_allocator();
  for (const int64_t zero : {0, 2, 3}) {
    const TemporaryDirectory directory;
    const testing::Experiment experiment =
        testing::m0_experiment(directory, "D3", 12,
                               {{"pipeline_model_parallel_size", 3},
                                {"pipeline_model_parallel_layout", "Ett||ttL"},
                                {"tensor_model_parallel_size", 2},
                                {"sequence_parallel", zero > 0}});
    Config config = proof_config(experiment.config);
    config.parallel.zero = static_cast<ZeroStage>(zero);
    const VerifyReport report = verify_layout(config, *experiment.data, {.steps = 1});
    EXPECT_TRUE(report.pass) << zero << ": " << report.failure();
  }
}

// The same through the keys of an experiment file.
TEST(PipelineKeys, MakeALayoutThatComputesWhatOneRankComputes) {
  install_allocator();
  const std::vector<nlohmann::json> files = {
      {{"pipeline_model_parallel_size", 2}},
      {{"pipeline_model_parallel_size", 2}, {"num_virtual_stages_per_pipeline_rank", 2}},
      {{"pipeline_model_parallel_size", 4}, {"pipeline_model_parallel_layout", "Et|tt|t|L"}},
      {{"pipeline_model_parallel_size", 2},
       {"patch_primus_pipeline", true},
       {"pp_algorithm", "zero-bubble"},
       {"decoder_first_pipeline_num_layers", 1}}};
  for (const nlohmann::json& keys : files) {
    const TemporaryDirectory directory;
    const testing::Experiment experiment = testing::m0_experiment(directory, "D3", 4, keys);
    const VerifyReport report =
        verify_layout(proof_config(experiment.config), *experiment.data, {.steps = 1});
    EXPECT_TRUE(report.pass) << keys << report.failure();
    const VerifyReport shrunk = verify_layout(shrink_config(proof_config(experiment.config)),
                                              *experiment.data, {.steps = 1});
    EXPECT_TRUE(shrunk.pass) << keys << shrunk.failure();
  }
}

// Validation between two steps: the figures of one rank, and the steps as if there were none.
struct Evaluated {
  ValidationResult validation;
  double loss = 0.0;  // of the step after it
  int64_t num_parameters = 0;
  int64_t communication = 0;  // bytes that the evaluation has left booked so, on all ranks
};

Evaluated evaluate_between_steps(const Config& config, const SampleSource& data) {
  Evaluated result;
  std::atomic<int64_t> communication = 0;
  const SampleStream samples(config, data);
  run_ranks(Mesh(config.mesh), {}, [&](RankContext& rank) {
    RankTrainer trainer(config, samples, rank);
    trainer.step();
    const ValidationResult validation = trainer.evaluate(data, {.first = 1, .num_samples = 13});
    communication += rank.memory.live(MemoryCategory::kCommunication);
    const double loss = trainer.step().loss;
    const int64_t num_parameters = trainer.count_parameters();
    if (rank.rank == rank.mesh->world_size() - 1) result = {validation, loss, num_parameters};
  });
  result.communication = communication;
  return result;
}

// On a rank with both ends of a pipeline the other end reads the tied table too.
TEST(PipelineEvaluation, LeavesNoGatheredWeights) {
  install_allocator();
  for (const char* algorithm : {"v-half", "dualpipe"}) {
    const TemporaryDirectory directory;
    const testing::Experiment experiment = pipeline_experiment(
        directory,
        {.algorithm = algorithm, .pp = 2, .microbatches = 4, .tied = true, .dp = 2, .zero = 3});
    EXPECT_EQ(evaluate_between_steps(experiment.config, *experiment.data).communication, 0)
        << algorithm;
  }
}

// With ZeRO-3 a rank that has read its last sample still gathers weights with the others.
TEST(PipelineEvaluation, GivesTheFiguresOfOneRank) {
  install_allocator();
  for (const char* algorithm : {"1f1b", "zb-interleaved", "v-half", "dualpipe"})
    for (const int64_t zero : {0, 3}) {
      const TemporaryDirectory directory;
      const testing::Experiment experiment = pipeline_experiment(
          directory, {.algorithm = algorithm, .pp = 4, .microbatches = 8, .dp = 2, .zero = zero},
          {{"micro_batch_size", 2}, {"global_batch_size", 32}});
      const Evaluated one =
          evaluate_between_steps(one_rank_config(experiment.config), *experiment.data);
      const Evaluated many = evaluate_between_steps(experiment.config, *experiment.data);
      EXPECT_NEAR(many.validation.loss, one.validation.loss, 1e-9) << algorithm << " " << zero;
      EXPECT_EQ(many.validation.samples, 13);
      EXPECT_EQ(many.validation.trained_tokens, one.validation.trained_tokens);
      EXPECT_NEAR(many.loss, one.loss, 1e-9) << algorithm << " " << zero;
      EXPECT_EQ(many.num_parameters, experiment.config.model.num_layers * 9280 + 6496);
    }
}

LayoutTrace adamw_steps(const PipelineCase& c, const std::string& precision) {
  const TemporaryDirectory directory;
  const testing::Experiment experiment = pipeline_experiment(directory, c,
                                                             {{"optimizer", "adam"},
                                                              {"weight_decay", 0.1},
                                                              {"lr", 0.01},
                                                              {"clip_grad", 0.5},
                                                              {"bf16", precision == "bf16"}},
                                                             {{"precision", precision}});
  return trace_layout(experiment.config, *experiment.data, {.steps = 3});
}

// A step is the same arithmetic whoever holds a layer, and B and W add in the order of BW: bits.
TEST(PipelineSteps, GiveTheSameBitsUnderOtherSchedules) {
  install_allocator();
  for (const char* precision : {"fp32", "bf16"}) {
    const LayoutTrace plain = adamw_steps({.algorithm = "1f1b", .pp = 4}, precision);
    for (const char* algorithm : {"gpipe", "zb-h1"}) {
      const LayoutTrace many = adamw_steps({.algorithm = algorithm, .pp = 4}, precision);
      for (size_t step = 0; step < plain.steps.size(); ++step)
        EXPECT_EQ(plain.steps[step].loss, many.steps[step].loss) << algorithm << " " << precision;
      for (const auto& [name, weights] : plain.final_weights)
        EXPECT_TRUE(at::equal(weights, many.final_weights.at(name))) << algorithm << " " << name;
    }
  }
}

}  // namespace
}  // namespace sevenfold
