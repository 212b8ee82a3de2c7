#include "sevenfold/train/rank_trainer.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "sevenfold/core/error.h"
#include "sevenfold/dataset/gpt_dataset.h"
#include "sevenfold/dataset/indexed/indexed_dataset.h"
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
  const SampleStream samples(experiment.config, *experiment.data);
  run_ranks(Mesh(experiment.config.mesh), {}, [&](RankContext& rank) {
    RankTrainer trainer(experiment.config, samples, rank);
    body(rank, trainer);
  });
}

struct MemoryCase {
  const char* optimizer;
  double momentum;
  const char* precision;
  int64_t weight_bytes;    // of an element
  int64_t gradient_bytes;  // and of a state's
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
    const int64_t elements = tied ? 40'384 : 43'616;
    on_ranks(experiment, [&](RankContext& rank, RankTrainer& trainer) {
      for (int64_t step = 0; step < 2; ++step) {
        trainer.step();
        EXPECT_EQ(rank.memory.live(MemoryCategory::kParameters), elements * c.weight_bytes);
        EXPECT_EQ(rank.memory.live(MemoryCategory::kGradients), elements * c.gradient_bytes);
        EXPECT_EQ(rank.memory.live(MemoryCategory::kOptimizer),
                  elements * c.gradient_bytes * c.states);
        EXPECT_EQ(trainer.parameter_bytes(), elements * c.weight_bytes);
      }
      EXPECT_GT(rank.memory.peak(MemoryCategory::kActivations), 0);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, MemoryLedgerOfTraining,
                         ::testing::Values(MemoryCase{"adam", 0.0, "fp32", 4, 4, 2},
                                           MemoryCase{"adam", 0.0, "fp64", 8, 8, 2},
                                           MemoryCase{"sgd", 0.0, "fp32", 4, 4, 0},
                                           MemoryCase{"sgd", 0.9, "fp64", 8, 8, 1},
                                           MemoryCase{"adam", 0.0, "bf16", 2, 4, 3},
                                           MemoryCase{"sgd", 0.0, "bf16", 2, 4, 1},
                                           MemoryCase{"adam", 0.0, "fp16", 2, 4, 3}));

// Losses of six steps, at a rate so small that rounding does not grow from step to step.
std::vector<double> losses_in(const std::string& precision, int64_t ranks) {
  const TemporaryDirectory directory;
  // A fixed scale: the dynamic one would spend the six steps on finding its value.
  const auto experiment = testing::m0_experiment(
      directory, "D3", ranks, {{"lr", 0.01}, {"loss_scale", 1024.0}}, {{"precision", precision}});
  std::vector<double> losses;
  on_ranks(experiment, [&](RankContext& rank, RankTrainer& trainer) {
    for (int step = 0; step < 6; ++step) {
      const StepResult result = trainer.step();
      EXPECT_FALSE(result.is_skipped);
      if (rank.rank == 0) losses.push_back(result.loss);
    }
  });
  return losses;
}

class ReducedPrecision : public ::testing::TestWithParam<const char*> {};

// A sanity check with the losses of fp64; formulas are checked in fp64.
TEST_P(ReducedPrecision, FollowsTheLossesOfFp64) {
  const std::vector<double> expected = losses_in("fp64", 1), losses = losses_in(GetParam(), 2);
  EXPECT_LT(expected[5], expected[0]);
  for (size_t step = 0; step < losses.size(); ++step)
    EXPECT_NEAR(losses[step], expected[step], 0.02 * expected[step]) << "step " << step + 1;
}

TEST_P(ReducedPrecision, GivesTheSameBitsAgain) {
  EXPECT_EQ(losses_in(GetParam(), 2), losses_in(GetParam(), 2));
}

TEST_P(ReducedPrecision, StartsMastersFromUnroundedValues) {
  const TemporaryDirectory directory;
  const auto reduced = testing::m0_experiment(directory, "D3", 1, {{"optimizer", "adam"}},
                                              {{"precision", GetParam()}});
  const auto full =
      testing::m0_experiment(directory, "D3", 1, nlohmann::json::object(), {{"precision", "fp32"}});
  std::vector<at::Tensor> starts;
  on_ranks(full, [&](RankContext&, RankTrainer& trainer) {
    for (const Parameter* parameter : trainer.parameters())
      starts.push_back(parameter->weight().clone());
  });
  on_ranks(reduced, [&](RankContext&, RankTrainer& trainer) {
    for (size_t i = 0; i < starts.size(); ++i) {
      const Parameter& parameter = *trainer.parameters()[i];
      EXPECT_TRUE(at::equal(trainer.optimizer().full_weight(parameter), starts[i].view({-1})));
      EXPECT_TRUE(at::equal(parameter.weight(), starts[i].to(parameter.weight().scalar_type())));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Types, ReducedPrecision, ::testing::Values("bf16", "fp16"),
                         [](const auto& instance) { return std::string(instance.param); });

TEST(Activations, AreFreedByTheEndOfTheStep) {
  const TemporaryDirectory directory;
  const auto experiment = testing::m0_experiment(directory, "D3", 1);
  on_ranks(experiment, [](RankContext& rank, RankTrainer& trainer) {
    trainer.step();
    const int64_t live = rank.memory.live(MemoryCategory::kActivations);
    for (int64_t step = 1; step < 4; ++step) trainer.step();
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
      trainer.step();
      rank.memory.reset_peaks();
      trainer.step();
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
      trainer.compute_gradients();
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
    const StepResult result = trainer.step();
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
  const SampleStream samples(experiment.config, data);
  run_ranks(Mesh(experiment.config.mesh), {}, [&](RankContext& rank) {
    RankTrainer trainer(experiment.config, samples, rank);
    std::vector<at::Tensor> before;
    for (const Parameter* parameter : trainer.parameters())
      before.push_back(parameter->weight().clone());
    const StepResult result = trainer.step();
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

// The loader is cyclic, whose training order does depend on both.
TEST(Evaluation, DependsOnNeitherLayoutNorMicroBatch) {
  std::vector<double> losses;
  for (const auto& [dp, micro] :
       {std::pair<int64_t, int64_t>{1, 1}, {2, 1}, {4, 2}, {1, 8}, {2, 3}}) {
    const TemporaryDirectory directory;
    const auto experiment = testing::m0_experiment(directory, "D3", dp,
                                                   {{"micro_batch_size", micro},
                                                    {"global_batch_size", micro * dp},
                                                    {"dataloader_type", "cyclic"}});
    on_ranks(experiment, [&](RankContext& rank, RankTrainer& trainer) {
      // Seven samples: an odd number, so that micro batches and ranks come out uneven.
      const ValidationResult result = trainer.evaluate(*experiment.data, {.num_samples = 7});
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
      trainer.step();
      if (evaluates) trainer.evaluate(*experiment.data, {.num_samples = 8});
      const StepResult result = trainer.step();
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
      trainer.step();
      trainer.compute_gradients();
      const at::Tensor before = trainer.parameters().front()->weight().clone();
      EXPECT_THROW(trainer.apply_gradients(), Error);
      EXPECT_TRUE(at::equal(before, trainer.parameters().front()->weight()));
      trainer.apply_gradients();
    });
    FAIL() << "stepped on a loss that is not finite";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("iteration 2: the loss is "));
  }
  experiment.config.run.check_for_nan = false;
  on_ranks(experiment, [](RankContext&, RankTrainer& trainer) {
    trainer.step();
    EXPECT_FALSE(std::isfinite(trainer.step().loss));
  });
}

at::Tensor all_weights(const RankTrainer& trainer) {
  std::vector<at::Tensor> flat;
  for (const Parameter* parameter : trainer.parameters())
    flat.push_back(parameter->weight().reshape(-1));
  return at::cat(flat);
}

// An infinity that only one rank has: everybody leaves the weights alone, reads on, and neither
// rate nor moments move.
TEST(NonFiniteGradient, OnOneRankSkipsTheStepOnAll) {
  const TemporaryDirectory directory;
  auto experiment =
      testing::m0_experiment(directory, "D3", 2, {{"optimizer", "adam"}, {"lr_warmup_iters", 2}});
  experiment.config.run.check_for_nan = false;
  on_ranks(experiment, [](RankContext& rank, RankTrainer& trainer) {
    trainer.step();
    const at::Tensor before = all_weights(trainer);
    trainer.compute_gradients();
    if (rank.rank == 1) trainer.parameters()[3]->gradient().view({-1})[5] = INFINITY;
    const StepResult skipped = trainer.apply_gradients();
    EXPECT_TRUE(skipped.is_skipped);
    EXPECT_TRUE(at::equal(before, all_weights(trainer)));
    EXPECT_EQ(trainer.optimizer().num_steps(), 1);
    EXPECT_EQ(trainer.position().iteration, 2);
    EXPECT_EQ(trainer.position().consumed_samples, 16);
    EXPECT_EQ(trainer.position().stepped_samples, 8);
    const StepResult next = trainer.step();
    EXPECT_FALSE(next.is_skipped);
    EXPECT_EQ(next.learning_rate, skipped.learning_rate) << "the clock of the rate stood still";
    EXPECT_FALSE(at::equal(before, all_weights(trainer)));
  });
}

TEST(NonFiniteGradient, OnOneRankEndsTheRunWithOneMessage) {
  const TemporaryDirectory directory;
  const auto experiment = testing::m0_experiment(directory, "D3", 2);
  std::mutex mutex;
  std::vector<std::string> messages;
  EXPECT_THROW(on_ranks(experiment,
                        [&](RankContext& rank, RankTrainer& trainer) {
                          trainer.compute_gradients();
                          if (rank.rank == 1) trainer.parameters()[0]->gradient().fill_(NAN);
                          try {
                            trainer.apply_gradients();
                          } catch (const Error& error) {
                            const std::lock_guard<std::mutex> lock(mutex);
                            messages.emplace_back(error.what());
                            throw;
                          }
                        }),
               Error);
  ASSERT_EQ(messages.size(), 2U) << "a rank went on alone";
  for (const std::string& message : messages)
    EXPECT_THAT(message, ::testing::AnyOf(::testing::HasSubstr("gradient norm inf"),
                                          ::testing::HasSubstr("gradient norm nan")));
}

TEST(BatchSchedule, CountsSamplesAndDoesNotDependOnTheLayout) {
  std::vector<std::vector<double>> losses;
  for (const int64_t dp : {1, 2}) {
    const TemporaryDirectory directory;
    auto experiment = testing::m0_experiment(
        directory, "D1", dp,
        {{"lr_decay_style", "linear"}, {"min_lr", 0.0}, {"train_iters", 4}, {"lr", 0.5}});
    experiment.config.batch.schedule = {{0, 2}, {4, 4}, {10, 8}};
    on_ranks(experiment, [&](RankContext& rank, RankTrainer& trainer) {
      std::vector<int64_t> batches;
      std::vector<double> of_rank;
      for (int step = 0; step < 5; ++step) {
        const int64_t before = trainer.position().consumed_samples;
        const StepResult result = trainer.step();
        EXPECT_EQ(result.tokens, result.global_batch_size * 32);
        // 4 iterations of 8 samples is where the rate ends.
        EXPECT_DOUBLE_EQ(result.learning_rate, 0.5 * (1.0 - static_cast<double>(before) / 32.0));
        batches.push_back(result.global_batch_size);
        of_rank.push_back(result.loss);
      }
      EXPECT_EQ(batches, (std::vector<int64_t>{2, 2, 4, 4, 8}));
      EXPECT_EQ(trainer.position().consumed_samples, 20);
      if (rank.rank == 0) losses.push_back(of_rank);
    });
  }
  for (size_t step = 0; step < 5; ++step) EXPECT_NEAR(losses[0][step], losses[1][step], 1e-11);
}

// ONES: every gradient 1 but for one parameter of zeros.
TEST(LogFigures, CountEachLogicalElementOnce) {
  const TemporaryDirectory directory;
  auto experiment = testing::m0_experiment(directory, "D3", 2, {{"lr", 0.0}});
  experiment.config.run.log_params_norm = experiment.config.run.log_num_zeros = true;
  on_ranks(experiment, [](RankContext&, RankTrainer& trainer) {
    trainer.compute_gradients();
    for (const Parameter* parameter : trainer.parameters()) parameter->gradient().fill_(1.0);
    trainer.parameters().front()->gradient().zero_();  // 101 x 32
    for (const Parameter* parameter : trainer.parameters()) parameter->weight().fill_(0.5);
    const StepResult result = trainer.apply_gradients();
    EXPECT_EQ(result.num_zeros, 101 * 32);
    EXPECT_NEAR(*result.weight_norm, 0.5 * std::sqrt(43'616.0), 1e-9);
  });
}

// Weight decay from 0 to 0.5 over 4 steps, gradients of zero: weights shrink by the step's decay.
TEST(WeightDecay, FollowsItsScheduleByTheSamplesBeforeTheStep) {
  const TemporaryDirectory directory;
  auto experiment = testing::m0_experiment(directory, "D3", 1, {{"lr", 0.25}});
  experiment.config.optimizer.weight_decay_style = WeightDecayStyle::kLinear;
  experiment.config.optimizer.end_weight_decay = 0.5;
  on_ranks(experiment, [](RankContext&, RankTrainer& trainer) {
    const Parameter& table = *trainer.parameters().front();
    for (const double decay : {0.0, 0.125, 0.25, 0.375, 0.5}) {
      const at::Tensor before = table.weight().clone();
      trainer.compute_gradients();
      for (const Parameter* parameter : trainer.parameters()) parameter->gradient().zero_();
      trainer.apply_gradients();
      EXPECT_TRUE(at::allclose(table.weight(), before * (1.0 - 0.25 * decay), 1e-15, 0.0)) << decay;
    }
  });
}

TEST(Validation, GoesOnBehindWhatWasPassed) {
  const TemporaryDirectory directory;
  auto experiment = testing::m0_experiment(directory, "D3", 2, {{"global_batch_size", 2}});
  experiment.config.run.eval_iters = 2;
  on_ranks(experiment, [&](RankContext&, RankTrainer& trainer) {
    const ValidationResult first = trainer.validate(*experiment.data);
    EXPECT_EQ(first.trained_tokens, 32 + 1 + 16 + 4);
    EXPECT_EQ(first.samples, 4);
    EXPECT_EQ(trainer.validate(*experiment.data).loss, first.loss);
    trainer.pass_validation();
    EXPECT_EQ(trainer.validate(*experiment.data).trained_tokens, 32 + 2 + 8 + 31);
    trainer.pass_validation();
    EXPECT_EQ(trainer.position().consumed_valid_samples, 8);
    EXPECT_EQ(trainer.validate(*experiment.data).loss, first.loss) << "the data starts over";
  });
}

TEST(Validation, ReadsTheWholeSetEachTimeWhenAsked) {
  const TemporaryDirectory directory;
  auto experiment = testing::m0_experiment(directory, "D3", 2);
  experiment.config.run.full_validation = true;
  on_ranks(experiment, [&](RankContext&, RankTrainer& trainer) {
    for (int time = 0; time < 2; ++time) {
      const ValidationResult result = trainer.validate(*experiment.data);
      EXPECT_EQ(result.trained_tokens, 126);
      EXPECT_EQ(result.samples, 8);
      trainer.pass_validation();
    }
    EXPECT_EQ(trainer.position().consumed_valid_samples, 0);
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
