// Recomputation: the same bits as without, in every precision, with dropout and in parallel
// layouts; and what it sends.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "parity/tensor_cases.h"
#include "sevenfold/dist/allocator.h"
#include "sevenfold/dist/ring_bytes.h"
#include "sevenfold/dist/threads/cluster.h"
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

struct Kind {
  const char* name;
  json keys;
};

std::vector<Kind> kinds() {
  return {
      {"each_layer", full("uniform", 1)},
      {"groups_of_three", full("uniform", 3)},
      {"first_two", full("block", 2)},
      {"named", {{"recompute_granularity", "full"}, {"recompute_layer_ids", json::array({1, 3})}}}};
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
  EXPECT_NE(experiment.config.recompute.layers, RecomputedLayers::kNone);
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

INSTANTIATE_TEST_SUITE_P(Kinds, Recomputation,
                         ::testing::Combine(::testing::ValuesIn(layouts()),
                                            ::testing::ValuesIn(kinds()),
                                            ::testing::Values(Precision::kFp32, Precision::kBf16)),
                         name_of);

// Against one rank that keeps everything.
TEST(RecomputationLayouts, ComputeWhatOneRankComputes) {
  install_allocator();
  for (const Layout& layout : layouts())
    for (const Kind& kind : kinds()) {
      const TemporaryDirectory directory;
      const testing::Experiment experiment = tensor_experiment(directory, layout.tensor, kind.keys);
      const VerifyReport report =
          verify_layout(proof_config(experiment.config), *experiment.data, {});
      EXPECT_TRUE(report.pass) << layout.name << ", " << kind.name << ": " << report.failure();
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

}  // namespace
}  // namespace sevenfold
