// Steps without a barrier over the pipeline against steps with one: the same bits.

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <sstream>
#include <thread>

#include "parity/pipeline_cases.h"
#include "sevenfold/core/error.h"
#include "sevenfold/dist/allocator.h"
#include "sevenfold/dist/threads/cluster.h"
#include "sevenfold/dist/timeline.h"
#include "sevenfold/train/rank_statistics.h"
#include "sevenfold/train/rank_trainer.h"
#include "sevenfold/train/train.h"

namespace sevenfold {
namespace {

using nlohmann::json;
using testing::pipeline_experiment;
using testing::PipelineCase;
using testing::TemporaryDirectory;

// What one rank has at the end, and what it heard of the steps.
struct RankEnd {
  std::vector<StepResult> steps;
  std::vector<at::Tensor> tensors;  // weights as layers read them, what is owned, states
  RunPosition position;
  int64_t num_steps = 0;
  int64_t num_taken_back = 0;  // steps that this rank took at once, and not for good
};
using Ends = std::vector<RankEnd>;  // by rank

void collect(RankTrainer& trainer, RankEnd& end) {
  trainer.weights().visit(
      [&](const Bucket& bucket) { end.tensors.push_back(bucket.weights.clone()); });
  for (const Parameter* parameter : trainer.parameters()) {
    end.tensors.push_back(parameter->owned_weight().clone());
    for (const OptimizerState& state : trainer.optimizer().states(*parameter))
      end.tensors.push_back(state.tensor.clone());
  }
  end.position = trainer.position();
  end.num_steps = trainer.optimizer().num_steps();
}

constexpr int64_t kSteps = 6;

constexpr int64_t kNoStep = -1;

// In this step the last rank's gradient has an infinity of which no other rank knows.
struct Poison {
  int64_t step = kNoStep;
  void add(RankTrainer& trainer, const RankContext& rank, int64_t at) const {
    if (at == step && rank.rank == rank.mesh->world_size() - 1)
      trainer.parameters().back()->owned_gradient()[0] = INFINITY;
  }
};

// Every step is settled in the course of the next; the last one after it.
void run_ahead(RankTrainer& trainer, const RankContext& rank, const Poison& poison, RankEnd& end) {
  bool is_taken = false;
  const auto settled = [&](const StepResult& result) {
    if (is_taken && (result.is_skipped || result.clip_factor < 1.0)) ++end.num_taken_back;
    end.steps.push_back(result);
  };
  for (int64_t step = 0; step < kSteps; ++step) {
    trainer.compute_gradients();
    const auto before = trainer.take_settled();
    EXPECT_EQ(before.has_value(), step > 0);
    if (before) settled(*before);
    poison.add(trainer, rank, step);
    const int64_t num_steps = trainer.optimizer().num_steps();
    trainer.apply_ahead();
    is_taken = trainer.optimizer().num_steps() > num_steps;
  }
  trainer.settle();
  settled(trainer.take_settled().value());
}

enum class Form { kBarrier, kAhead, kSettledAtOnce };

Ends run(const testing::Experiment& experiment, Form form, FaultSet faults = {},
         const Poison& poison = {}) {
  install_allocator();
  Config config = experiment.config;
  config.pipeline.post_validation = form != Form::kBarrier;
  const SampleStream samples(config, *experiment.data);
  const auto tables = std::make_shared<const PipelineTables>(config);
  Ends ends(static_cast<size_t>(config.mesh.world_size()));
  run_ranks(Mesh(config.mesh), {.timeout = std::chrono::seconds(60), .faults = faults},
            [&](RankContext& rank) {
              RankTrainer trainer(config, samples, rank, tables);
              RankEnd& end = ends[static_cast<size_t>(rank.rank)];
              if (form == Form::kAhead) run_ahead(trainer, rank, poison, end);
              for (int64_t step = 0; form != Form::kAhead && step < kSteps; ++step) {
                trainer.compute_gradients();
                poison.add(trainer, rank, step);
                end.steps.push_back(trainer.apply_gradients());
              }
              collect(trainer, end);
            });
  return ends;
}

bool same(double left, double right) {
  return left == right || (std::isnan(left) && std::isnan(right));
}

// "" or the first difference.
std::string difference(const StepResult& left, const StepResult& right) {
  if (!same(left.loss, right.loss)) return fmt::format("loss {} {}", left.loss, right.loss);
  if (!same(left.gradient_norm, right.gradient_norm))
    return fmt::format("norm {} {}", left.gradient_norm, right.gradient_norm);
  if (!same(left.clip_factor, right.clip_factor)) return "clip factor";
  if (left.learning_rate != right.learning_rate) return "rate";
  if (left.loss_scale != right.loss_scale) return "loss scale";
  if (left.is_skipped != right.is_skipped) return "skipped";
  return left.tokens == right.tokens && left.trained_tokens == right.trained_tokens ? "" : "tokens";
}

std::string difference(const RankEnd& left, const RankEnd& right) {
  for (size_t step = 0; step < left.steps.size(); ++step)
    if (const auto text = difference(left.steps[step], right.steps[step]); !text.empty())
      return fmt::format("step {}: {}", step, text);
  for (size_t i = 0; i < left.tensors.size(); ++i)
    if (!at::equal(left.tensors[i], right.tensors[i])) return fmt::format("tensor {}", i);
  if (left.num_steps != right.num_steps) return "number of steps";
  return left.position.iteration == right.position.iteration &&
                 left.position.consumed_samples == right.position.consumed_samples &&
                 left.position.stepped_samples == right.position.stepped_samples
             ? ""
             : "position";
}

std::string difference(const Ends& left, const Ends& right) {
  for (size_t rank = 0; rank < left.size(); ++rank)
    if (const auto text = difference(left[rank], right[rank]); !text.empty())
      return fmt::format("rank {} {}", rank, text);
  return "";
}

json adamw_keys(double clip, const json& more = json::object()) {
  json keys = {{"optimizer", "adam"},        {"weight_decay", 0.1}, {"lr", 0.01},
               {"lr_decay_style", "linear"}, {"min_lr", 0.0},       {"train_iters", kSteps},
               {"clip_grad", clip}};
  keys.update(more);
  return keys;
}

int64_t num_clipped(const Ends& ends) {
  return std::count_if(ends[0].steps.begin(), ends[0].steps.end(),
                       [](const StepResult& step) { return step.clip_factor < 1.0; });
}

int64_t num_taken_back(const Ends& ends) {
  int64_t number = 0;
  for (const RankEnd& end : ends) number += end.num_taken_back;
  return number;
}

// A clip that the step of the largest norm just reaches: no stage sees it coming but the last.
void clip_largest(testing::Experiment& experiment) {
  experiment.config.optimizer.clip_grad = 0.0;
  double largest = 0.0;
  const Ends unclipped = run(experiment, Form::kBarrier);
  for (const StepResult& step : unclipped[0].steps) largest = std::max(largest, step.gradient_norm);
  experiment.config.optimizer.clip_grad = 0.9999 * largest;
}

// Whether some steps are clipped, some not, and some ranks take one back.
void expect_same_bits_with_some_taken_back(testing::Experiment& experiment) {
  clip_largest(experiment);
  const Ends barrier = run(experiment, Form::kBarrier);
  const Ends ahead = run(experiment, Form::kAhead);
  EXPECT_EQ(difference(barrier, ahead), "");
  EXPECT_EQ(difference(barrier, run(experiment, Form::kSettledAtOnce)), "");
  EXPECT_GT(num_clipped(barrier), 0);
  EXPECT_LT(num_clipped(barrier), kSteps);
  EXPECT_GT(num_taken_back(ahead), 0);
}

void expect_same_bits(const PipelineCase& c, const json& more = json::object(),
                      const json& block = {{"precision", "fp32"}}) {
  SCOPED_TRACE(c.name() + " " + block.dump() + " " + more.dump());
  const TemporaryDirectory directory;
  testing::Experiment experiment = pipeline_experiment(directory, c, adamw_keys(0.0, more), block);
  expect_same_bits_with_some_taken_back(experiment);
}

class PostValidation : public ::testing::TestWithParam<PipelineCase> {};

// A clip that no step reaches, one that all reach in all stages, and one that only some do.
TEST_P(PostValidation, GivesTheBitsOfStepsWithABarrier) {
  for (const double clip : {1e6, 1e-3}) {
    const TemporaryDirectory directory;
    const testing::Experiment experiment =
        pipeline_experiment(directory, GetParam(), adamw_keys(clip), {{"precision", "fp32"}});
    const Ends barrier = run(experiment, Form::kBarrier);
    EXPECT_EQ(difference(barrier, run(experiment, Form::kAhead)), "");
    EXPECT_EQ(num_clipped(barrier), clip < 1.0 ? kSteps : 0);
  }
  expect_same_bits(GetParam());
}

std::vector<PipelineCase> staircases() {
  std::vector<PipelineCase> cases;
  for (const char* algorithm : {"zb-h2", "zbv-formatted", "zero-bubble-heuristic", "1f1b"})
    for (const int64_t pp : {2, 4})
      cases.push_back({.algorithm = algorithm, .pp = pp, .microbatches = 8});
  return cases;
}

std::vector<PipelineCase> layouts() {
  std::vector<PipelineCase> cases;
  for (const int64_t zero : {0, 1, 2, 3})
    cases.push_back({.algorithm = "zbv-formatted", .pp = 2, .tied = true, .dp = 2, .zero = zero});
  cases.push_back({.algorithm = "zb-h2", .pp = 4, .microbatches = 8, .tied = true});
  cases.push_back({.algorithm = "zb-h2", .pp = 2, .tp = 2});
  cases.push_back({.algorithm = "zbv-formatted", .pp = 2, .tp = 2, .recompute = true});
  cases.push_back({.algorithm = "zb-h2", .pp = 2, .dp = 2, .tp = 2, .zero = 1});
  cases.push_back({.algorithm = "dualpipe", .pp = 4, .microbatches = 8, .tied = true});
  return cases;
}

std::vector<PipelineCase> other_schedules() {
  std::vector<PipelineCase> cases;
  for (const std::string& algorithm : testing::pipeline_algorithms()) {
    const PipelineCase c{.algorithm = algorithm, .pp = 4, .microbatches = 8};
    if (testing::is_possible(c)) cases.push_back(c);
  }
  return cases;
}

const auto kName = [](const auto& instance) { return instance.param.name(); };
INSTANTIATE_TEST_SUITE_P(Staircases, PostValidation, ::testing::ValuesIn(staircases()), kName);
INSTANTIATE_TEST_SUITE_P(Layouts, PostValidation, ::testing::ValuesIn(layouts()), kName);

TEST(PostValidationOf, EveryScheduleGivesTheBitsOfStepsWithABarrier) {
  for (const PipelineCase& c : other_schedules()) expect_same_bits(c);
}

// Dropout is a function of coordinates: forwards that run again drop the same.
TEST(PostValidationOf, DropoutBf16AndMomentumGivesTheSameBits) {
  const PipelineCase c{.algorithm = "zbv-formatted", .pp = 2};
  expect_same_bits(c, {{"hidden_dropout", 0.1}, {"attention_dropout", 0.1}});
  expect_same_bits(c, {{"bf16", true}}, {{"precision", "bf16"}});
  expect_same_bits(c, {{"optimizer", "sgd"}, {"sgd_momentum", 0.9}, {"lr", 0.02}},
                   {{"precision", "fp64"}});
}

json fp16_keys(double first_scale) {
  return adamw_keys(1.0, {{"fp16", true},
                          {"initial_loss_scale", first_scale},
                          {"loss_scale_window", 1},
                          {"hysteresis", 1}});
}

int64_t num_skipped(const Ends& ends) {
  return std::count_if(ends[0].steps.begin(), ends[0].steps.end(),
                       [](const StepResult& step) { return step.is_skipped; });
}

// The loss scale comes down over skipped steps and doubles after each good one.
TEST(PostValidationOf, Fp16WithOverflowsGivesTheSameBits) {
  for (PipelineCase c : staircases()) {
    c.microbatches = 4;
    SCOPED_TRACE(c.name());
    const TemporaryDirectory directory;
    const testing::Experiment experiment =
        pipeline_experiment(directory, c, fp16_keys(262144.0), {{"precision", "fp16"}});
    const Ends barrier = run(experiment, Form::kBarrier);
    EXPECT_EQ(difference(barrier, run(experiment, Form::kAhead)), "");
    EXPECT_EQ(difference(barrier, run(experiment, Form::kSettledAtOnce)), "");
    EXPECT_GT(num_skipped(barrier), 0);
    EXPECT_LT(num_skipped(barrier), kSteps);
  }
}

// An overflow that only the last rank sees: the others take their step back, forget the doubled
// loss scale, and run the forwards of the next step again with half of it.
TEST(PostValidationOf, AnOverflowOfTheLastStageGivesTheSameBits) {
  for (PipelineCase c : staircases()) {
    SCOPED_TRACE(c.name());
    const TemporaryDirectory directory;
    testing::Experiment experiment =
        pipeline_experiment(directory, c, fp16_keys(64.0), {{"precision", "fp16"}});
    experiment.config.optimizer.clip_grad = 0.0;
    const Ends barrier = run(experiment, Form::kBarrier, {}, {.step = 2});
    const Ends ahead = run(experiment, Form::kAhead, {}, {.step = 2});
    EXPECT_EQ(difference(barrier, ahead), "");
    EXPECT_EQ(num_skipped(barrier), 1);
    EXPECT_EQ(barrier[0].steps[3].loss_scale, barrier[0].steps[2].loss_scale / 2);
    EXPECT_EQ(num_taken_back(ahead), c.pp - 1);
  }
}

// Gathers of weights may be under way when they are taken back; several sets of shards.
TEST(PostValidationOf, GathersUnderWayGivesTheSameBits) {
  for (const auto& [zero, overlaps, replicas] : std::vector<std::tuple<int64_t, bool, int64_t>>{
           {1, true, 1}, {2, true, 1}, {1, false, 2}, {3, false, 2}, {3, true, 1}}) {
    const PipelineCase c{.algorithm = "zb-h2", .pp = 2, .dp = 2 * replicas, .zero = zero};
    SCOPED_TRACE(c.name() + (overlaps ? " overlap" : "") + " " + std::to_string(replicas));
    const TemporaryDirectory directory;
    testing::Experiment experiment =
        pipeline_experiment(directory, c, adamw_keys(0.0), {{"precision", "fp32"}});
    experiment.config.parallel.overlap_gather = overlaps;
    experiment.config.parallel.reshard_after_forward = !overlaps;
    experiment.config.mesh.dp_replicate = replicas;
    expect_same_bits_with_some_taken_back(experiment);
  }
}

// Steps of other numbers of micro batches run ahead of each other.
TEST(PostValidationOf, GrowingBatchesGivesTheSameBits) {
  const TemporaryDirectory directory;
  testing::Experiment experiment =
      pipeline_experiment(directory, {.algorithm = "zb-h2", .pp = 4, .microbatches = 8},
                          adamw_keys(0.0), {{"precision", "fp32"}});
  experiment.config.batch.schedule = {{0, 1}, {1, 3}, {4, 8}, {12, 5}, {17, 8}};
  expect_same_bits_with_some_taken_back(experiment);
}

#ifdef SEVENFOLD_FAULTS
TEST(PostValidationFaults, AreSeenInTheBits) {
  const TemporaryDirectory directory;
  testing::Experiment experiment =
      pipeline_experiment(directory, {.algorithm = "zb-h2", .pp = 4, .microbatches = 8},
                          adamw_keys(0.0), {{"precision", "fp32"}});
  clip_largest(experiment);
  const Ends barrier = run(experiment, Form::kBarrier);
  for (const Fault fault : {Fault::kRollBackForgetsMoment, Fault::kPartialNormForFull})
    EXPECT_NE(difference(barrier, run(experiment, Form::kAhead, FaultSet().enable(fault))), "")
        << FaultSet().enable(fault).to_string();
}
#endif

int64_t count_spans(const std::vector<TimeSpan>& spans, const std::string& start) {
  return std::count_if(spans.begin(), spans.end(),
                       [&](const TimeSpan& span) { return span.name.starts_with(start); });
}

// The last rank has done its backward passes and says nothing of them until every other rank has
// run all the forwards of the next step that the table lets it run: with a barrier none would.
TEST(PostValidationOrder, HasTheNextForwardsBeforeTheLastStageIsDone) {
  install_allocator();
  const TemporaryDirectory directory;
  testing::Experiment experiment = pipeline_experiment(
      directory, {.algorithm = "zb-h2", .pp = 4, .microbatches = 8}, adamw_keys(0.0));
  Config& config = experiment.config;
  config.pipeline.post_validation = true;
  const SampleStream samples(config, *experiment.data);
  const std::vector<int64_t> ahead = {7, 5, 3};  // 2 (P - 1 - r) + 1, for M >= 2P - 1
  std::vector<Timeline> timelines(4);
  std::vector<std::vector<TimeSpan>> spans(3);
  const auto have_run_ahead = [&] {
    bool all = true;
    for (size_t rank = 0; rank < ahead.size(); ++rank) {
      std::vector<TimeSpan> more = timelines[rank].take();
      std::move(more.begin(), more.end(), std::back_inserter(spans[rank]));
      all = all && count_spans(spans[rank], "forward") >= 8 + ahead[rank];
    }
    return all;
  };
  run_ranks(Mesh(config.mesh), {.timeout = std::chrono::seconds(60)}, [&](RankContext& rank) {
    rank.timeline = &timelines[static_cast<size_t>(rank.rank)];
    RankTrainer trainer(config, samples, rank);
    trainer.compute_gradients();
    if (rank.rank == 3) {
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
      while (!have_run_ahead()) {
        if (std::chrono::steady_clock::now() > deadline) raise<Error>("the other ranks wait");
        std::this_thread::yield();
      }
      for (size_t other = 0; other < ahead.size(); ++other) {
        EXPECT_EQ(count_spans(spans[other], "optimizer"), 1) << "rank " << other;
        EXPECT_EQ(count_spans(spans[other], "forward"), 8 + ahead[other]) << "rank " << other;
        EXPECT_EQ(count_spans(spans[other], "backward"), 16) << "rank " << other;
      }
    }
    trainer.apply_ahead();
    trainer.compute_gradients();
    trainer.apply_ahead();
    trainer.settle();
    EXPECT_EQ(trainer.optimizer().num_steps(), 2);
  });
}

// A norm that is not a number, on the last stage alone: the others have stepped already.
TEST(PostValidationOf, ALossThatIsNotFiniteEndsTheRunBeforeWeightsChange) {
  install_allocator();
  const TemporaryDirectory directory;
  testing::Experiment experiment = pipeline_experiment(
      directory, {.algorithm = "zb-h2", .pp = 4, .microbatches = 8}, adamw_keys(0.0));
  experiment.config.pipeline.post_validation = true;
  const SampleStream samples(experiment.config, *experiment.data);
  run_ranks(Mesh(experiment.config.mesh), {.timeout = std::chrono::seconds(60)},
            [&](RankContext& rank) {
              RankTrainer trainer(experiment.config, samples, rank);
              trainer.step();
              RankEnd before, after;
              collect(trainer, before);
              trainer.compute_gradients();
              if (rank.rank == 3) trainer.parameters().front()->gradient().fill_(NAN);
              trainer.apply_ahead();
              EXPECT_EQ(trainer.optimizer().num_steps(), rank.rank == 3 ? 1 : 2);
              try {
                trainer.compute_gradients();
                ADD_FAILURE() << "rank " << rank.rank << " went on";
              } catch (const Error& error) {
                EXPECT_THAT(error.what(), ::testing::HasSubstr("iteration 2"));
              }
              collect(trainer, after);
              EXPECT_EQ(difference(before, after), "");
            });
}

TEST(PostValidationOf, AnOpenStepLeavesNoRoomForAnEvaluation) {
  install_allocator();
  const TemporaryDirectory directory;
  testing::Experiment experiment =
      pipeline_experiment(directory, {.algorithm = "zb-h2", .pp = 2}, adamw_keys(0.0));
  experiment.config.pipeline.post_validation = true;
  const SampleStream samples(experiment.config, *experiment.data);
  run_ranks(Mesh(experiment.config.mesh), {}, [&](RankContext& rank) {
    RankTrainer trainer(experiment.config, samples, rank);
    trainer.compute_gradients();
    trainer.apply_ahead();
    EXPECT_THROW(trainer.evaluate(*experiment.data, {.num_samples = 4}), InternalError);
    trainer.settle();
    EXPECT_GT(trainer.evaluate(*experiment.data, {.num_samples = 4}).loss, 0.0);
  });
}

// Rank 0 is done when rank 1 starts its last pass: without a barrier it goes on at once.
TEST(BubbleRate, WithoutABarrierIsThatOfTheLongestRank) {
  const std::vector<RankStatistics> all = {
      {.first_start_s = 0.0, .last_end_s = 10.0, .busy_s = 10.0},
      {.first_start_s = 2.0, .last_end_s = 12.0, .busy_s = 9.0}};
  EXPECT_DOUBLE_EQ(bubble_rate(all), 1.0 - 19.0 / 24.0);
  EXPECT_DOUBLE_EQ(bubble_rate_without_barrier(all), 1.0 - 19.0 / 20.0);
}

std::vector<json> metrics_lines(const Config& config) {
  std::istringstream text(testing::read_text(config.run.directory + "/metrics.jsonl"));
  std::vector<json> lines;
  for (std::string line; std::getline(text, line);) {
    json one = json::parse(line);
    for (const char* key : {"step_time_s", "tokens_per_s", "bubble_rate", "exposed_communication_s",
                            "peak_memory_bytes"})
      one.erase(key);
    lines.push_back(std::move(one));
  }
  return lines;
}

// A whole run, with validations and an exit that fall between steps.
TEST(PostValidationOf, ARunWritesTheSameMetrics) {
  for (const int64_t exit_interval : {0, 5})
    for (const double clip : {0.0, 1.0}) {
      const TemporaryDirectory directory;
      testing::write_data_set("D3", directory / "D3");
      testing::Experiment experiment = pipeline_experiment(
          directory, {.algorithm = "zbv-formatted", .pp = 2},
          adamw_keys(
              clip,
              {{"eval_interval", 3}, {"eval_iters", 1}, {"valid_data_path", directory / "D3"}}),
          {{"precision", "fp32"}});
      Config& config = experiment.config;
      config.run.exit_interval = exit_interval;
      const TrainOutcome barrier = train(config, {.check_replicas_interval = 4});
      const std::vector<json> expected = metrics_lines(config);
      config.pipeline.post_validation = true;
      const TrainOutcome ahead = train(config, {.check_replicas_interval = 4});
      EXPECT_EQ(metrics_lines(config), expected);
      EXPECT_EQ(expected.size(), exit_interval == 0 ? 8U : 7U);
      EXPECT_EQ(ahead.iterations, barrier.iterations);
      EXPECT_EQ(ahead.stop, barrier.stop);
      EXPECT_EQ(ahead.validation_loss, barrier.validation_loss);
    }
}

}  // namespace
}  // namespace sevenfold
