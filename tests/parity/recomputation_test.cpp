// Recomputation: the same bits as without, in every precision, with dropout and in parallel
// layouts; and what it sends.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "parity/tensor_cases.h"
#include "sevenfold/dist/allocator.h"
#include "sevenfold/dist/ring_bytes.h"
#include "sevenfold/dist/threads/cluster.h"
#include "sevenfold/parallel/tensor/input_share.h"
#include "sevenfold/pipeline/chunk.h"
#include "sevenfold/train/proof/layout_trace.h"
#include "sevenfold/train/proof/verify.h"
#include "sevenfold/train/rank_trainer.h"

namespace sevenfold {
namespace {

using nlohmann::json;
using testing::TemporaryDirectory;
using testing::tensor_experiment;
using testing::TensorCase;

json full(const char* method, int64_t num_layers) {
  return {{"recompute_granularity", "full"},
          {"recompute_method", method},
          {"recompute_num_layers", num_layers}};
}

json parts(const json& modules) {
  return {{"recompute_granularity", "selective"}, {"recompute_modules", modules}};
}

struct Kind {
  const char* name;
  json keys;
};

std::vector<Kind> kinds() {
  return {
      {"each_layer", full("uniform", 1)},
      {"groups_of_three", full("uniform", 3)},
      {"first_two", full("block", 2)},
      {"named", {{"recompute_granularity", "full"}, {"recompute_layer_ids", json::array({1, 3})}}},
      {"attention", parts({"core_attn"})},
      {"norms", parts({"layernorm"})},
      {"activation", parts({"moe_act"})},
      {"feed_forward", parts({"mlp"})},
      {"parts", parts({"core_attn", "layernorm", "mlp"})}};
}

struct Layout {
  const char* name;
  TensorCase tensor;
};

std::vector<Layout> layouts() {
  return {{"gpt_one_rank", {.model = "gpt", .groups = 4, .dropout = 0.1, .tp = 1}},
          {"llama_tp2_sp",
           {.model = "qk_norm", .groups = 2, .dropout = 0.1, .tp = 2, .sequence = true}},
          {"gpt_tp2_dp2", {.model = "gpt_tied", .groups = 4, .dropout = 0.1, .tp = 2, .dp = 2}}};
}

using Case = std::tuple<Layout, Kind, Precision>;

class Recomputation : public ::testing::TestWithParam<Case> {};

// AdamW with clipping: a bit that differs anywhere spreads to every weight.
TEST_P(Recomputation, DoesNotChangeABit) {
  install_allocator();
  const auto& [layout, kind, precision] = GetParam();
  const TemporaryDirectory directory;
  json keys = kind.keys;
  keys.update({{"optimizer", "adam"}, {"clip_grad", 0.5}, {"lr", 0.01}});
  testing::Experiment experiment = tensor_experiment(directory, layout.tensor, keys);
  experiment.config.run.precision = precision;
  const LayoutTrace again = trace_layout(experiment.config, *experiment.data, {.steps = 2});
  experiment.config.recompute = {};
  const LayoutTrace kept = trace_layout(experiment.config, *experiment.data, {.steps = 2});
  ASSERT_EQ(kept.steps.size(), 2U);
  for (size_t step = 0; step < kept.steps.size(); ++step) {
    EXPECT_EQ(again.steps[step].loss, kept.steps[step].loss);
    EXPECT_EQ(again.steps[step].gradient_norm, kept.steps[step].gradient_norm);
    EXPECT_GT(kept.steps[step].gradient_norm, 0.0);
    for (const auto& [name, gradient] : kept.gradients[step])
      EXPECT_TRUE(at::equal(again.gradients[step].at(name), gradient)) << name;
  }
  for (const auto& [name, weight] : kept.final_weights)
    EXPECT_TRUE(at::equal(again.final_weights.at(name), weight)) << name;
}

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  const auto& [layout, kind, precision] = info.param;
  return std::string(layout.name) + "_" + kind.name + "_" + std::string(precision_name(precision));
}

// Inputs in shares: with tensor parallelism and without sequence parallelism only.
std::vector<Kind> kinds_of(const Layout& layout) {
  std::vector<Kind> result = kinds();
  if (layout.tensor.tp == 1 || layout.tensor.sequence) return result;
  for (Kind shared : {Kind{"shared_inputs", full("uniform", 1)},
                      Kind{"shared_inputs_of_groups", full("uniform", 3)}}) {
    shared.keys["distribute_saved_activations"] = true;
    result.push_back(shared);
  }
  return result;
}

std::vector<Case> cases() {
  std::vector<Case> result;
  for (const Layout& layout : layouts())
    for (const Kind& kind : kinds_of(layout))
      for (const Precision precision : {Precision::kFp32, Precision::kBf16})
        result.emplace_back(layout, kind, precision);
  return result;
}

INSTANTIATE_TEST_SUITE_P(Kinds, Recomputation, ::testing::ValuesIn(cases()), name_of);

// Against one rank that keeps everything.
TEST(RecomputationLayouts, ComputeWhatOneRankComputes) {
  install_allocator();
  for (const Layout& layout : layouts())
    for (const Kind& kind : kinds_of(layout)) {
      const TemporaryDirectory directory;
      const testing::Experiment experiment = tensor_experiment(directory, layout.tensor, kind.keys);
      const VerifyReport report =
          verify_layout(proof_config(experiment.config), *experiment.data, {});
      EXPECT_TRUE(report.pass) << layout.name << ", " << kind.name << ": " << report.failure();
    }
}

// Operations of the tensor-parallel group in one step, by their name.
std::map<std::string, int64_t> operations(const testing::Experiment& experiment,
                                          const Config& config) {
  std::map<std::string, int64_t> counts;
  const SampleStream samples(config, *experiment.data);
  run_ranks(Mesh(config.mesh), {}, [&](RankContext& rank) {
    RankTrainer trainer(config, samples, rank);
    rank.traffic.clear();
    trainer.compute_gradients();
    if (rank.rank != 0) return;
    for (const auto& [key, entry] : rank.traffic.entries())
      if (key.first == "tp") counts[key.second] = entry.operations;
  });
  return counts;
}

// The feed-forward part has one pair of collectives; attention's core and norms have none.
TEST(RecomputationTraffic, OfPartsIsThatOfTheFeedForwardPart) {
  install_allocator();
  for (const bool feed_forward : {false, true}) {
    const TemporaryDirectory directory;
    const testing::Experiment experiment =
        tensor_experiment(directory, {.model = "llama", .tp = 2, .sequence = true},
                          parts(feed_forward ? json{"mlp"} : json{"core_attn", "layernorm"}));
    Config without = experiment.config;
    without.recompute = {};
    std::map<std::string, int64_t> expected = operations(experiment, without);
    const int64_t more = without.batch.num_microbatches * without.model.num_layers;
    if (feed_forward)
      for (const char* name : {"all_gather", "reduce_scatter"}) expected[name] += more;
    EXPECT_EQ(operations(experiment, experiment.config), expected);
  }
}

// The collectives of a layer's forward run once more for each layer that is recomputed: two
// all-reduces, or with sequence parallelism two all-gathers and two reduce-scatters.
TEST(RecomputationTraffic, IsTheForwardOfTheRecomputedLayers) {
  install_allocator();
  constexpr int64_t kTp = 4, kRecomputed = 3;
  for (const bool sequence : {false, true}) {
    const TemporaryDirectory directory;
    const testing::Experiment experiment = tensor_experiment(
        directory, {.model = "llama", .groups = 4, .tp = kTp, .sequence = sequence},
        full("block", kRecomputed));
    Config without = experiment.config;
    without.recompute = {};
    const SampleStream samples(experiment.config, *experiment.data);
    run_ranks(Mesh(experiment.config.mesh), {}, [&](RankContext& rank) {
      const auto sent = [&](const Config& config) {
        RankTrainer trainer(config, samples, rank);
        rank.traffic.clear();
        trainer.compute_gradients();
        return rank.traffic.entries();
      };
      const auto kept = sent(without), again = sent(experiment.config);
      const Config& config = experiment.config;
      const int64_t more = config.batch.num_microbatches * kRecomputed * 2;
      const int64_t elements =
          config.batch.micro_batch_size * config.model.seq_length * config.model.hidden_size;
      const int64_t whole = ring_bytes::all_reduce(elements, 8, kTp, rank.rank);
      const int64_t part = (kTp - 1) * elements / kTp * 8;
      ASSERT_EQ(again.size(), kept.size());
      for (const auto& [key, entry] : again) {
        const bool is_repeated = key.first == "tp" && key.second != "all_reduce_max" &&
                                 (key.second == "all_reduce") != sequence;
        EXPECT_EQ(entry.operations - kept.at(key).operations, is_repeated ? more : 0) << key.second;
        EXPECT_EQ(entry.bytes_sent - kept.at(key).bytes_sent,
                  is_repeated ? more * (sequence ? part : whole) : 0)
            << key.second;
      }
    });
  }
}

// Bytes of activations that a forward pass of `layers` decoder layers leaves alive on a rank.
int64_t kept_bytes(const Config& config, int64_t layers, RankContext& rank) {
  ModelConfig model = config.model;
  model.num_layers = layers;
  const at::ScalarType type = model_dtype(config.run.precision);
  const ModelPart part =
      build_model(model, {.dtype = type, .tensor = {.group = &rank.group("tp")}});
  std::vector<Bucket> buckets = build_buckets(part.layer_parameters(), rank, type, 1 << 20);
  LayerWeights weights(buckets, rank);
  GradientReducer reducer(buckets, rank);
  Chunk chunk(part.layers, weights, reducer, {},
              recomputation_plan(config.recompute, {.position = 1, .count = layers}),
              config.recompute.shares_inputs ? &rank.group("tp") : nullptr);
  Microbatch microbatch;
  microbatch.inputs_BT = at::zeros({3, 7}, at::kLong);
  microbatch.labels_BT = at::ones({3, 7}, at::kLong);
  microbatch.mask_BT = at::ones({3, 7}, gradient_type(type));
  const int64_t before = rank.memory.live(MemoryCategory::kActivations);
  chunk.forward(microbatch, {});
  return rank.memory.live(MemoryCategory::kActivations) - before;
}

// b s h elements a layer, or of those the rank's share; here 3 x 7 x 32 do not divide by 5.
TEST(SharedInputs, AreKeptOncePerTensorParallelGroup) {
  install_allocator();
  constexpr int64_t kRanks = 5, kElements = 3 * 7 * 32;
  const TemporaryDirectory directory;
  Config config = tensor_experiment(directory, {.model = "gpt", .tp = 1}).config;
  config.model.num_attention_heads = config.model.num_query_groups = kRanks;
  config.model.ffn_hidden_size = 8 * kRanks;
  config.mesh.tp = kRanks;
  for (const auto& [precision, bytes] :
       {std::pair(Precision::kFp32, 4), std::pair(Precision::kBf16, 2)})
    for (const bool shares : {false, true}) {
      config.run.precision = precision;
      config.recompute = {
          .layers = RecomputedLayers::kUniform, .num_layers = 1, .shares_inputs = shares};
      run_ranks(Mesh(config.mesh), {}, [&, bytes = bytes](RankContext& rank) {
        const int64_t share = kElements * (rank.rank + 1) / kRanks - kElements * rank.rank / kRanks;
        EXPECT_EQ(kept_bytes(config, 5, rank) - kept_bytes(config, 2, rank),
                  3 * (shares ? share : kElements) * bytes);
      });
    }
}

// Whole while its layers run again, and not before or after.
TEST(SharedInputs, AreWholeInCommunicationMemory) {
  install_allocator();
  constexpr int64_t kRanks = 5, kElements = 3 * 7 * 32;
  for (const auto& [type, bytes] : {std::pair(at::kFloat, 4), std::pair(at::kBFloat16, 2)})
    run_ranks(Mesh({.tp = kRanks, .etp = kRanks}), {},
              [type = type, bytes = bytes](RankContext& rank) {
                const at::Tensor input = at::randn({3, 7, 32}).to(type);
                const InputShare share(input, rank.group("tp"));
                EXPECT_EQ(rank.memory.live(MemoryCategory::kCommunication), 0);
                EXPECT_EQ(share.whole().sizes(), input.sizes());
                EXPECT_EQ(rank.memory.peak(MemoryCategory::kCommunication), kElements * bytes);
                EXPECT_EQ(rank.memory.live(MemoryCategory::kCommunication), 0);
              });
}

// One all-gather for each input and micro batch more than recomputation without shares.
TEST(SharedInputs, AreGatheredOnceInBackward) {
  install_allocator();
  constexpr int64_t kTp = 4;
  const TemporaryDirectory directory;
  json keys = full("uniform", 2);
  keys["distribute_saved_activations"] = true;
  const testing::Experiment experiment =
      tensor_experiment(directory, {.model = "llama", .groups = 4, .tp = kTp}, keys);
  const Config& config = experiment.config;
  const SampleStream samples(config, *experiment.data);
  run_ranks(Mesh(config.mesh), {}, [&](RankContext& rank) {
    RankTrainer trainer(config, samples, rank);
    rank.traffic.clear();
    trainer.compute_gradients();
    const int64_t inputs = config.batch.num_microbatches * config.model.num_layers / 2;
    const int64_t elements =
        config.batch.micro_batch_size * config.model.seq_length * config.model.hidden_size;
    const TrafficEntry& gathers = rank.traffic.entries().at({"tp", "all_gather"});
    EXPECT_EQ(gathers.operations, inputs);
    EXPECT_EQ(gathers.bytes_sent, inputs * (kTp - 1) * elements / kTp * 8);
  });
}

}  // namespace
}  // namespace sevenfold
