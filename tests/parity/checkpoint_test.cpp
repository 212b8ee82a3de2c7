// Runs that are saved and go on, in the same layout to the bit and in any other by the proof rules.

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <optional>

#include "parity/zero_cases.h"
#include "sevenfold/checkpoint/checkpoint.h"
#include "sevenfold/dist/allocator.h"
#include "sevenfold/dist/threads/cluster.h"
#include "sevenfold/train/rank_trainer.h"
#include "sevenfold/train/saving.h"

namespace sevenfold {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::Experiment;
using testing::TemporaryDirectory;

// What a few steps of a layout leave: what each said, and the checkpoint after the last.
struct Outcome {
  std::vector<StepResult> steps;
  fs::path checkpoint;
};

struct Begin {
  std::optional<fs::path> from;
  RestoreOptions restores = {};
  FaultSet faults = {};
};

Outcome run(const Experiment& experiment, int64_t steps, const fs::path& folder,
            const Begin& begin = {}) {
  install_allocator();
  Config config = experiment.config;
  config.checkpoint.save_directory = folder;
  const SampleStream samples(config, *experiment.data);
  std::optional<Checkpoint> checkpoint;
  if (begin.from) checkpoint.emplace(*begin.from);
  Outcome outcome;
  run_ranks(Mesh(config.mesh), {.faults = begin.faults}, [&](RankContext& rank) {
    RankTrainer trainer(config, samples, rank);
    if (checkpoint) trainer.restore(*checkpoint, begin.restores);
    for (int64_t step = 0; step < steps; ++step) {
      const StepResult result = trainer.step();
      if (rank.rank == 0) outcome.steps.push_back(result);
    }
    const SavedCheckpoint saved = save(trainer, config, rank);
    if (rank.rank == 0) outcome.checkpoint = saved.folder;
  });
  return outcome;
}

// All logical tensors, in fp64.
std::map<std::string, at::Tensor> tensors_of(const fs::path& folder) {
  const Checkpoint checkpoint(folder);
  checkpoint.check_sums();
  std::map<std::string, at::Tensor> tensors;
  for (const auto& [name, stored] : checkpoint.index().tensors) {
    const at::Tensor values = at::empty(stored.shape, at::kDouble);
    checkpoint.read({name, stored.shape, whole_piece(stored.shape), values.view({-1})});
    tensors[name] = values;
  }
  return tensors;
}

// In words; empty: none larger than `tolerance` in any element of a weight or state.
std::string difference(const fs::path& a, const fs::path& b, double tolerance = 0.0) {
  const auto left = tensors_of(a), right = tensors_of(b);
  if (left.size() != right.size())
    return fmt::format("{} tensors and {}", left.size(), right.size());
  for (const auto& [name, values] : left) {
    if (!right.contains(name)) return name + " is missing";
    const double largest = (values - right.at(name)).abs().max().item<double>();
    if (!(largest <= tolerance)) return fmt::format("{} differs by {}", name, largest);
  }
  return "";
}

RunState counts_of(const fs::path& checkpoint) {
  return Checkpoint(checkpoint).index().run;
}

// Infinities and NaN are like themselves.
bool close(double a, double b, double tolerance) {
  if (!std::isfinite(a) || !std::isfinite(b)) return std::isnan(a) ? std::isnan(b) : a == b;
  return std::abs(a - b) <= tolerance * std::abs(a);
}

void expect_same(const std::vector<StepResult>& a, const std::vector<StepResult>& b,
                 double tolerance = 0.0) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_TRUE(close(a[i].loss, b[i].loss, tolerance)) << a[i].loss << " " << b[i].loss;
    EXPECT_TRUE(close(a[i].gradient_norm, b[i].gradient_norm, tolerance))
        << a[i].gradient_norm << " " << b[i].gradient_norm;
    EXPECT_EQ(a[i].learning_rate, b[i].learning_rate);
    EXPECT_EQ(a[i].loss_scale, b[i].loss_scale);
    EXPECT_EQ(a[i].is_skipped, b[i].is_skipped);
  }
}

std::vector<StepResult> last(const std::vector<StepResult>& steps, int64_t count) {
  return {steps.end() - count, steps.end()};
}

// AdamW with decay that grows, clipping, a rate that changes: all that could forget where it was.
json demanding_keys(const json& more) {
  json keys = {{"optimizer", "adam"},
               {"weight_decay", 0.1},
               {"lr", 0.003},
               {"lr_decay_style", "cosine"},
               {"lr_warmup_iters", 2},
               {"clip_grad", 1.0},
               {"train_iters", 6},
               {"start_weight_decay", 0.02},
               {"end_weight_decay", 0.2},
               {"weight_decay_incr_style", "linear"},
               {"hidden_dropout", 0.1},
               {"attention_dropout", 0.1},
               {"global_batch_size", 8}};
  keys.update(more);
  return keys;
}

// A layout: its degrees in Megatron's words.
struct Layout {
  std::string name;
  int64_t ranks = 1;
  json keys = json::object();
  std::string precision = "fp64";
};
void PrintTo(const Layout& layout, std::ostream* out) {
  *out << layout.name;
}

Experiment experiment_on(const TemporaryDirectory& directory, const Layout& layout,
                         const json& more = json::object()) {
  json keys = demanding_keys(layout.keys);
  keys.update(more);
  keys["bf16"] = layout.precision == "bf16";
  keys["fp16"] = layout.precision == "fp16";
  return testing::m0_experiment(directory, "D1", layout.ranks, keys,
                                {{"precision", layout.precision}});
}

json with(json keys, const json& more) {
  keys.update(more);
  return keys;
}

json zero_keys(int64_t stage, int64_t sets = 1) {
  json keys = testing::zero_keys({.stage = stage, .dp = 4, .replicate = sets});
  keys.erase("global_batch_size");
  return keys;
}

json tensor_keys(int64_t tp) {
  return {{"tensor_model_parallel_size", tp}, {"sequence_parallel", true}};
}

const json kPipeline = {{"pipeline_model_parallel_size", 2}};
const json kInterleaved = with(kPipeline, {{"num_layers_per_virtual_pipeline_stage", 1}});
// Two pipeline ranks with the same stages, both with a tied table, and two shards of each.
const json kTwins =
    with(with(kPipeline, zero_keys(1)),
         {{"pp_algorithm", "dualpipe"}, {"untie_embeddings_and_output_weights", false}});
const json kHalfMeans = {{"initial_loss_scale", 65536},
                         {"loss_scale_window", 2},
                         {"use_precision_aware_optimizer", true},
                         {"exp_avg_dtype", "fp16"},
                         {"exp_avg_sq_dtype", "fp16"}};

class Resumed : public ::testing::TestWithParam<Layout> {};

// Field case B24: losses, norms, rates, weights, moments and counts of six steps straight, and of
// three, a save, other ranks and three more.
TEST_P(Resumed, IsTheRunThatWasNotInterrupted) {
  const TemporaryDirectory directory;
  const Experiment experiment = experiment_on(directory, GetParam());
  const Outcome straight = run(experiment, 6, directory / "straight");
  const Outcome first = run(experiment, 3, directory / "first");
  const Outcome second = run(experiment, 3, directory / "second", {.from = first.checkpoint});
  expect_same(last(straight.steps, 3), second.steps);
  EXPECT_EQ(difference(straight.checkpoint, second.checkpoint), "");
  EXPECT_EQ(counts_of(straight.checkpoint), counts_of(second.checkpoint));
  const Outcome again = run(experiment, 0, directory / "again", {.from = first.checkpoint});
  EXPECT_EQ(difference(first.checkpoint, again.checkpoint), "") << "saved as it was loaded";
  EXPECT_NE(difference(first.checkpoint, straight.checkpoint), "") << "steps change nothing";
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, Resumed,
    ::testing::Values(
        Layout{"one_rank", 1, json::object(), "fp32"}, Layout{"dp2", 2, json::object(), "fp32"},
        Layout{"zero1", 4, zero_keys(1), "fp32"}, Layout{"zero2_bf16", 4, zero_keys(2), "bf16"},
        Layout{"zero3", 4, zero_keys(3), "fp32"},
        Layout{"zero3_two_sets_bf16", 4, zero_keys(3, 2), "bf16"},
        Layout{"zero1_two_sets", 4, zero_keys(1, 2), "fp32"},
        Layout{"zero1_overlap", 4,
               with(zero_keys(1), {{"overlap_grad_reduce", true}, {"overlap_param_gather", true}}),
               "bf16"},
        Layout{"tp2_sp_bf16", 2, tensor_keys(2), "bf16"}, Layout{"pp2", 2, kPipeline, "fp32"},
        Layout{"pp2_vpp2", 2, kInterleaved, "fp32"}, Layout{"twins_tied", 4, kTwins, "bf16"},
        Layout{"pp2_ahead", 2, with(kPipeline, {{"enable_optimizer_post_validation", true}}),
               "fp32"},
        Layout{"fp16_means", 4, with(zero_keys(1), kHalfMeans), "fp16"},
        Layout{"fp16_means_of_one", 1, kHalfMeans, "fp16"}),
    [](const auto& instance) { return instance.param.name; });

// The layouts of one run before and after its save.
struct Move {
  Layout from, to;
  json model = json::object();
};
void PrintTo(const Move& move, std::ostream* out) {
  *out << move.from.name << " to " << move.to.name;
}

class Moved : public ::testing::TestWithParam<Move> {};

// Field cases B10, B11, B28, B46: three steps in one layout, three in another, against six of one
// rank that saves nothing in between.
TEST_P(Moved, GoesOnAsOneRankDoes) {
  const TemporaryDirectory directory;
  const Move& move = GetParam();
  const json keys = with(move.model, {{"hidden_dropout", 0.0}, {"attention_dropout", 0.0}});
  const Outcome one = run(experiment_on(directory, {}, keys), 6, directory / "one");
  const Outcome first = run(experiment_on(directory, move.from, keys), 3, directory / "first");
  const Outcome second = run(experiment_on(directory, move.to, keys), 3, directory / "second",
                             {.from = first.checkpoint});
  expect_same(last(one.steps, 3), second.steps, 1e-9);
  EXPECT_EQ(difference(one.checkpoint, second.checkpoint, 1e-9), "");
  EXPECT_EQ(counts_of(one.checkpoint), counts_of(second.checkpoint));
  const auto tensors = tensors_of(second.checkpoint);
  EXPECT_EQ(tensors.at("model.embed_tokens.weight").size(0), 101);
  EXPECT_EQ(tensors.contains("lm_head.weight"),
            !move.model.contains("untie_embeddings_and_output_weights"));
}

const Layout kOne = {"one"};
const Layout kTp2Zero1 = {"dp2_tp2_zero1", 4, with(zero_keys(1), tensor_keys(2))};
const Layout kTp4 = {"tp4", 4, tensor_keys(4)};
const Layout kZero3Of8 = {"zero3_of_8", 8, zero_keys(3)};
const Layout kZero3Of5 = {"zero3_of_5", 5, zero_keys(3)};
const Layout kTp2Zero3 = {"tp2_zero3", 8, with(zero_keys(3), tensor_keys(2))};
// Batches that 3, 4, 5 and 8 ranks share.
const json kBatch40 = {{"global_batch_size", 40}};
const json kTied = {{"untie_embeddings_and_output_weights", false}};
const json kBatch12 = {{"global_batch_size", 12}};

INSTANTIATE_TEST_SUITE_P(
    Layouts, Moved,
    ::testing::Values(
        Move{kZero3Of8, kZero3Of5, kBatch40}, Move{kTp2Zero3, kZero3Of5, kBatch40},
        Move{kZero3Of5, kTp2Zero3, kBatch40}, Move{kTp2Zero1, kOne}, Move{kTp2Zero1, kTp4},
        Move{kTp2Zero1, {"pp4", 4, {{"pipeline_model_parallel_size", 4}}}},
        Move{kTp2Zero1, {"pp2_vpp2", 2, kInterleaved}},
        Move{kTp2Zero1, {"zero3_of_3", 3, zero_keys(3)}, kBatch12},
        Move{kTp4, kOne, {{"num_query_groups", 1}}}, Move{{"twins", 4, kTwins}, kTp4, kTied},
        Move{kTp2Zero3, {"twins", 4, kTwins}, kTied}, Move{kTp4, {"tp2", 2, tensor_keys(2)}},
        Move{{"zero2_two_sets", 4, zero_keys(2, 2)}, {"pp2", 2, kPipeline}}),
    [](const auto& instance) {
      return instance.param.from.name + "_to_" + instance.param.to.name;
    });

// Field case B24: no moments are there to load.
TEST(SavedRun, MayHaveSkippedAllItsSteps) {
  const TemporaryDirectory directory;
  const Experiment experiment = experiment_on(directory, {"", 2, json::object(), "fp16"},
                                              {{"initial_loss_scale", 1099511627776.0}});
  const Outcome first = run(experiment, 2, directory / "first");
  for (const StepResult& step : first.steps) EXPECT_TRUE(step.is_skipped);
  EXPECT_EQ(counts_of(first.checkpoint).optimizer_steps, 0);
  EXPECT_EQ(counts_of(first.checkpoint).stepped_samples, 0);
  EXPECT_EQ(counts_of(first.checkpoint).consumed_samples, 16);
  const Outcome straight = run(experiment, 4, directory / "straight");
  const Outcome second = run(experiment, 2, directory / "second", {.from = first.checkpoint});
  expect_same(last(straight.steps, 2), second.steps);
  EXPECT_EQ(difference(straight.checkpoint, second.checkpoint), "");
}

TEST(SavedRun, LendsItsWeightsToANewOne) {
  const TemporaryDirectory directory;
  const Experiment experiment = experiment_on(directory, kTp2Zero1);
  const Outcome first = run(experiment, 3, directory / "first");
  const Outcome second =
      run(experiment, 0, directory / "second",
          {.from = first.checkpoint, .restores = {.states = false, .run = false}});
  EXPECT_EQ(counts_of(second.checkpoint).iteration, 0);
  EXPECT_EQ(counts_of(second.checkpoint).optimizer_steps, 0);
  const auto before = tensors_of(first.checkpoint), after = tensors_of(second.checkpoint);
  for (const auto& [name, values] : before) {
    const bool is_state = name.find('/') != std::string::npos;
    EXPECT_TRUE(is_state ? after.at(name).abs().max().item<double>() == 0.0
                         : at::equal(after.at(name), values))
        << name;
  }
}

// The weights of steps, not those that the model computes with, go from precision to precision.
TEST(SavedRun, GoesOnInAnotherPrecision) {
  const TemporaryDirectory directory;
  const Outcome fp32 =
      run(experiment_on(directory, {"", 4, zero_keys(1), "fp32"}), 2, directory / "fp32");
  const Outcome bf16 = run(experiment_on(directory, {"", 4, zero_keys(3), "bf16"}), 0,
                           directory / "bf16", {.from = fp32.checkpoint});
  EXPECT_EQ(difference(fp32.checkpoint, bf16.checkpoint), "");
}

#ifdef SEVENFOLD_FAULTS
// Planted: what the comparisons above must see.
TEST(SavedRun, ShowsFaultsOfLoading) {
  const TemporaryDirectory directory;
  const Experiment experiment = experiment_on(directory, {"", 4, zero_keys(3), "fp32"});
  const Outcome straight = run(experiment, 4, directory / "straight");
  const Outcome first = run(experiment, 2, directory / "first");
  for (const Fault fault : {Fault::kRestoredStatesDropped, Fault::kRestoredShardMisplaced}) {
    const Outcome second = run(experiment, 2, directory / "second",
                               {.from = first.checkpoint, .faults = FaultSet().enable(fault)});
    EXPECT_NE(difference(straight.checkpoint, second.checkpoint), "");
  }
}
#endif

}  // namespace
}  // namespace sevenfold
