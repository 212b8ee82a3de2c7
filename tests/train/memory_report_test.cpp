#include "sevenfold/train/memory_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sevenfold/dist/allocator.h"
#include "sevenfold/dist/threads/cluster.h"
#include "sevenfold/train/rank_trainer.h"
#include "train/experiments.h"

namespace sevenfold {
namespace {

using nlohmann::json;
using testing::TemporaryDirectory;

constexpr CategoryBytes kBoundary = {100, 200, 300, 4, 0};

RankMemory rank_memory(int64_t rank, int64_t stage, int64_t activations_at_peak) {
  return {.rank = rank,
          .stage = stage,
          .boundary = kBoundary,
          .peak = {100, 200, 300, activations_at_peak, 8},
          .peak_moment = "forward of micro batch 0, head"};
}

TEST(MemoryReport, NamesWhatTheRankDid) {
  EXPECT_EQ(describe_moment({}, 4), "start");
  EXPECT_EQ(describe_moment({.work = "optimizer"}, 4), "optimizer");
  EXPECT_EQ(describe_moment({.work = "backward", .microbatch = 3, .layer = 6}, 8),
            "backward of micro batch 3, layer 5");
  EXPECT_EQ(describe_moment({.work = "forward", .microbatch = 0, .layer = 0}, 4),
            "forward of micro batch 0, embedding");
  EXPECT_EQ(describe_moment({.work = "forward", .microbatch = 0, .layer = 5}, 4),
            "forward of micro batch 0, head");
}

TEST(MemoryReport, TakesTheFullestRankOfEachStage) {
  const std::vector<RankMemory> stages =
      fullest_of_stages({rank_memory(0, 0, 10), rank_memory(1, 0, 30), rank_memory(2, 1, 70),
                         rank_memory(3, 1, 70), rank_memory(4, 0, 30)});
  ASSERT_EQ(stages.size(), 2U);
  EXPECT_EQ(stages[0].rank, 1) << "the first of two that are as full";
  EXPECT_EQ(stages[1].rank, 2);
}

// Every rank of a mesh with stages learns what all others measured.
TEST(MemoryReport, IsTheSameOnAllRanks) {
  run_ranks(Mesh({.tp = 2, .pp = 2}), {}, [](RankContext& rank) {
    rank.memory.counters()->enter({.work = "backward", .microbatch = rank.rank, .layer = 2});
    rank.memory.add(MemoryCategory::kGradients, 1000 * (rank.rank + 1));
    rank.memory.remove(MemoryCategory::kGradients, 400);
    const std::vector<RankMemory> all = gather_memory(memory_of(rank, 4), rank);
    ASSERT_EQ(all.size(), 4U);
    for (int64_t i = 0; i < 4; ++i) {
      const RankMemory& memory = all[static_cast<size_t>(i)];
      EXPECT_EQ(memory.rank, i);
      EXPECT_EQ(memory.stage, i / 2);
      EXPECT_EQ(memory.boundary, (CategoryBytes{0, 1000 * (i + 1) - 400, 0, 0, 0}));
      EXPECT_EQ(memory.peak, (CategoryBytes{0, 1000 * (i + 1), 0, 0, 0}));
      EXPECT_EQ(memory.peak_moment, "backward of micro batch " + std::to_string(i) + ", layer 1");
    }
    const auto stages = fullest_of_stages(all);
    EXPECT_EQ(stages[0].rank, 1);
    EXPECT_EQ(stages[1].rank, 3);
    rank.memory.remove(MemoryCategory::kGradients, 1000 * (rank.rank + 1) - 400);
  });
}

TEST(MemoryReport, SaysTheSameInWordsAndInJson) {
  const MemoryReport report = memory_report({rank_memory(0, 0, 2048)}, {5000, 9000});
  EXPECT_EQ(report.rest, 5000 - 604);
  const std::vector<std::string> lines = to_lines(report);
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_THAT(lines[1], ::testing::MatchesRegex(
                            " *stage +rank +when +parameters +gradients +optimizer +activations "
                            "+communication +total"));
  EXPECT_THAT(lines[2], ::testing::MatchesRegex(
                            " *0 +0 +step boundary +100 B +200 B +300 B +4 B +0 B +604 B"));
  EXPECT_THAT(lines[3],
              ::testing::MatchesRegex(" *0 +0 +peak +100 B +200 B +300 B +2.0 KiB +8 B +2.6 "
                                      "KiB  in forward of micro batch 0, head"));
  EXPECT_EQ(lines[2].size(), lines[1].size()) << "columns";
  const json document = json::parse(to_json(report));
  const json& stage = document["stages"][0];
  EXPECT_EQ(stage["step_boundary"], (json{{"total", 604},
                                          {"parameters", 100},
                                          {"gradients", 200},
                                          {"optimizer", 300},
                                          {"activations", 4},
                                          {"communication", 0}}));
  EXPECT_EQ(stage["peak"]["total"], 2656);
  EXPECT_EQ(stage["peak_moment"], "forward of micro batch 0, head");
  EXPECT_EQ(document["process"],
            (json{{"resident", 5000}, {"most_resident", 9000}, {"rest", 4396}}));
}

TEST(MemoryReport, AsksTheSystem) {
  const ProcessMemory process = process_memory();
  EXPECT_GT(process.resident, 1 << 20);
  EXPECT_GE(process.most_resident, process.resident);
}

// What a rank of M0 holds between steps, byte for byte as docs/memory.md counts it, and where the
// most is in use: at the head, whose logits are larger than a layer's activations here.
TEST(MemoryReport, CountsEveryByteOfAStep) {
  install_allocator();
  constexpr int64_t kParameters = 43'616, kAngles = 32 * 8, kScalars = 2 * 8;
  for (const auto& [precision, weight, full, states] :
       {std::tuple("fp64", 8, 8, 16), std::tuple("fp32", 4, 4, 8), std::tuple("bf16", 2, 4, 12)}) {
    const TemporaryDirectory directory;
    const testing::Experiment experiment = testing::m0_experiment(
        directory, "D1", 2, {{"optimizer", "adam"}, {"bf16", std::string("bf16") == precision}},
        {{"precision", precision}});
    const SampleStream samples(experiment.config, *experiment.data);
    run_ranks(Mesh(experiment.config.mesh), {},
              [&, weight = weight, full = full, states = states](RankContext& rank) {
                RankTrainer trainer(experiment.config, samples, rank);
                for (int step = 0; step < 2; ++step) {
                  trainer.step();
                  const RankMemory memory = memory_of(rank, experiment.config.model.num_layers);
                  EXPECT_EQ(memory.boundary,
                            (CategoryBytes{kParameters * weight, kParameters * full,
                                           kParameters * states, kAngles * full + kScalars, 0}));
                  EXPECT_THAT(memory.peak_moment,
                              ::testing::MatchesRegex("backward of micro batch [0-3], .*"));
                }
              });
  }
}

}  // namespace
}  // namespace sevenfold
