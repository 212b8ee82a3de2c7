#include "sevenfold/train/rank_trainer.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "sevenfold/core/error.h"
#include "sevenfold/dist/allocator.h"
#include "sevenfold/dist/threads/cluster.h"
#include "sevenfold/train/proof/layout_trace.h"
#include "train/experiments.h"

namespace sevenfold {
namespace {

using testing::TemporaryDirectory;

void on_ranks(const testing::Experiment& experiment,
              const std::function<void(RankContext&, RankTrainer&)>& body) {
  install_allocator();
  run_ranks(Mesh(experiment.config.mesh), {}, [&](RankContext& rank) {
    RankTrainer trainer(experiment.config, *experiment.data, rank);
    body(rank, trainer);
  });
}

struct MemoryCase {
  const char* optimizer;
  double momentum;
  const char* precision;
  int64_t element_bytes;
  int64_t states;
};

class MemoryLedgerOfTraining : public ::testing::TestWithParam<MemoryCase> {};

TEST_P(MemoryLedgerOfTraining, EqualsTheFormulaExactly) {
  const MemoryCase& c = GetParam();
  for (const bool tied : {false, true}) {
    const TemporaryDirectory directory;
    const auto experiment = testing::m0_experiment(directory, "D3", 2,
                                                   {{"optimizer", c.optimizer},
                                                    {"sgd_momentum", c.momentum},
                                                    {"untie_embeddings_and_output_weights", !tied}},
                                                   {{"precision", c.precision}});
    const int64_t bytes = (tied ? 40'384 : 43'616) * c.element_bytes;
    on_ranks(experiment, [&](RankContext& rank, RankTrainer& trainer) {
      for (int64_t step = 0; step < 2; ++step) {
        trainer.step(step);
        EXPECT_EQ(rank.memory.live(MemoryCategory::kParameters), bytes);
        EXPECT_EQ(rank.memory.live(MemoryCategory::kGradients), bytes);
        EXPECT_EQ(rank.memory.live(MemoryCategory::kOptimizer), bytes * c.states);
        EXPECT_EQ(trainer.parameter_bytes(), bytes);
      }
      EXPECT_GT(rank.memory.peak(MemoryCategory::kActivations), 0);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, MemoryLedgerOfTraining,
                         ::testing::Values(MemoryCase{"adam", 0.0, "fp32", 4, 2},
                                           MemoryCase{"adam", 0.0, "fp64", 8, 2},
                                           MemoryCase{"sgd", 0.0, "fp32", 4, 0},
                                           MemoryCase{"sgd", 0.9, "fp64", 8, 1}));

TEST(Activations, AreFreedByTheEndOfTheStep) {
  const TemporaryDirectory directory;
  const auto experiment = testing::m0_experiment(directory, "D3", 1);
  on_ranks(experiment, [](RankContext& rank, RankTrainer& trainer) {
    trainer.step(0);
    const int64_t live = rank.memory.live(MemoryCategory::kActivations);
    for (int64_t step = 1; step < 4; ++step) trainer.step(step);
    EXPECT_EQ(rank.memory.live(MemoryCategory::kActivations), live)
        << "activations pile up from step to step";
  });
}

TEST(Activations, PeakDoesNotGrowWithAccumulation) {
  std::vector<int64_t> peaks;
  for (const int64_t batch : {2, 8}) {
    const TemporaryDirectory directory;
    const auto experiment =
        testing::m0_experiment(directory, "D3", 1, {{"global_batch_size", batch}});
    on_ranks(experiment, [&](RankContext& rank, RankTrainer& trainer) {
      trainer.step(0);
      rank.memory.reset_peaks();
      trainer.step(1);
      peaks.push_back(rank.memory.peak(MemoryCategory::kActivations));
    });
  }
  // 1F1B on one stage keeps one micro batch alive; what grows is the token ids and masks read at
  // step start.
  constexpr int64_t kReadAhead = 6 * 32 * (8 + 8 + 8 + 1) + 1024;
  EXPECT_LE(peaks[1], peaks[0] + kReadAhead);
}

TEST(GradientTraffic, IsTheRingsShareOfTheGradientBytesOncePerStep) {
  const TemporaryDirectory directory;
  for (const int64_t dp : {2, 4}) {
    const auto experiment = testing::m0_experiment(directory, "D3", dp);
    std::mutex mutex;
    int64_t sent = 0, operations = 0;
    on_ranks(experiment, [&](RankContext& rank, RankTrainer& trainer) {
      rank.traffic.clear();
      trainer.compute_gradients(0);
      const std::lock_guard<std::mutex> lock(mutex);
      sent += rank.traffic.of_group("dp-cp").bytes_sent;
      operations += rank.traffic.of_group("dp-cp").operations;
    });
    // All ranks together: 2 (n-1)/n of the gradient bytes from each.
    EXPECT_EQ(sent, 2 * (dp - 1) * 43'616 * 8);
    EXPECT_EQ(operations, dp) << "one bucket, reduced once however many micro batches";
  }
}

TEST(MaskedBatch, WithEmptySequencesStaysFinite) {
  const TemporaryDirectory directory;
  const auto experiment = testing::m0_experiment(directory, "D4", 2);
  on_ranks(experiment, [](RankContext&, RankTrainer& trainer) {
    const StepResult result = trainer.step(0);
    EXPECT_EQ(result.trained_tokens, 93);
    EXPECT_TRUE(std::isfinite(result.loss));
    EXPECT_TRUE(std::isfinite(result.gradient_norm));
  });
}

// A batch without any trained token: loss 0, gradient 0, weights move by decay only.
TEST(MaskedBatch, WithoutATrainedTokenLeavesOnlyWeightDecay) {
  const TemporaryDirectory directory;
  auto experiment =
      testing::m0_experiment(directory, "D3", 2, {{"weight_decay", 0.25}, {"lr", 0.5}});
  // Every token is its own end of document: all labels are masked.
  const testing::Documents ends = {std::vector<int64_t>(32 * 9, 0)};
  testing::write_indexed(directory / "ends", ends);
  const GptDataset data(
      std::make_shared<const IndexedDataset>(directory / "ends"),
      {.sequences = {0, 1}, .seq_length = 32, .vocab_size = 101, .shuffle = false});
  install_allocator();
  run_ranks(Mesh(experiment.config.mesh), {}, [&](RankContext& rank) {
    RankTrainer trainer(experiment.config, data, rank);
    std::vector<at::Tensor> before;
    for (const Parameter* parameter : trainer.parameters())
      before.push_back(parameter->weight().clone());
    const StepResult result = trainer.step(0);
    EXPECT_EQ(result.loss, 0.0);
    EXPECT_EQ(result.gradient_norm, 0.0);
    EXPECT_EQ(result.trained_tokens, 0);
    for (size_t i = 0; i < before.size(); ++i) {
      const Parameter& parameter = *trainer.parameters()[i];
      const double factor = parameter.num_dims() > 1 ? 1.0 - 0.5 * 0.25 : 1.0;
      EXPECT_TRUE(at::allclose(parameter.weight(), before[i] * factor, 1e-15, 0.0))
          << parameter.name();
    }
  });
}

TEST(Evaluation, DependsOnNeitherLayoutNorMicroBatch) {
  std::vector<double> losses;
  for (const auto& [dp, micro] :
       {std::pair<int64_t, int64_t>{1, 1}, {2, 1}, {4, 2}, {1, 8}, {2, 3}}) {
    const TemporaryDirectory directory;
    const auto experiment = testing::m0_experiment(
        directory, "D3", dp, {{"micro_batch_size", micro}, {"global_batch_size", micro * dp}});
    on_ranks(experiment, [&](RankContext& rank, RankTrainer& trainer) {
      // Seven samples: an odd number, so that micro batches and ranks come out uneven.
      const ValidationResult result = trainer.evaluate(*experiment.data, 7);
      EXPECT_EQ(result.trained_tokens, 126 - 31);
      EXPECT_EQ(result.samples, 7);
      if (rank.rank == 0) losses.push_back(result.loss);
    });
  }
  ASSERT_EQ(losses.size(), 5U);
  for (const double loss : losses) EXPECT_NEAR(loss, losses[0], 1e-12);
}

TEST(Evaluation, LeavesTrainingAlone) {
  std::vector<double> losses;
  for (const bool evaluates : {false, true}) {
    const TemporaryDirectory directory;
    const auto experiment = testing::m0_experiment(directory, "D3", 2);
    on_ranks(experiment, [&](RankContext& rank, RankTrainer& trainer) {
      trainer.step(0);
      if (evaluates) trainer.evaluate(*experiment.data, 8);
      const StepResult result = trainer.step(1);
      if (rank.rank == 0) losses.push_back(result.loss);
    });
  }
  EXPECT_EQ(losses[0], losses[1]);
}

// A rate that blows the weights up: the run ends with the iteration's number and unchanged weights,
// or goes on when it is told to.
TEST(NonFiniteLoss, EndsTheRunUnlessItIsToGoOn) {
  const TemporaryDirectory directory;
  auto experiment = testing::m0_experiment(directory, "D3", 2, {{"lr", 1e300}});
  try {
    on_ranks(experiment, [](RankContext&, RankTrainer& trainer) {
      trainer.step(0);
      trainer.compute_gradients(1);
      const at::Tensor before = trainer.parameters().front()->weight().clone();
      EXPECT_THROW(trainer.apply_gradients(1), Error);
      EXPECT_TRUE(at::equal(before, trainer.parameters().front()->weight()));
      trainer.apply_gradients(1);
    });
    FAIL() << "stepped on a loss that is not finite";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("iteration 2: the loss is "));
  }
  experiment.config.run.check_for_nan = false;
  on_ranks(experiment, [](RankContext&, RankTrainer& trainer) {
    trainer.step(0);
    EXPECT_FALSE(std::isfinite(trainer.step(1).loss));
  });
}

// The ordinary start weights of M0 are frozen: other bits would change every user's run.
TEST(OrdinaryStart, OfM0IsFrozen) {
  const TemporaryDirectory directory;
  const auto experiment =
      testing::m0_experiment(directory, "D3", 1, nlohmann::json::object(), {{"start", "init"}});
  on_ranks(experiment, [](RankContext&, RankTrainer& trainer) {
    uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a over the bytes of all weights in model order
    for (const Parameter* parameter : trainer.parameters()) {
      const auto* bytes = static_cast<const unsigned char*>(parameter->weight().data_ptr());
      for (size_t i = 0; i < static_cast<size_t>(parameter->weight().numel()) * 8; ++i)
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    }
    EXPECT_EQ(hash, 0x3f35291128c7c9bau);
  });
}

}  // namespace
}  // namespace sevenfold
