// What ZeRO keeps and sends, against the formulas of docs/data_parallelism.md.

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <mutex>

#include "parity/zero_cases.h"
#include "sevenfold/dist/allocator.h"
#include "sevenfold/dist/threads/cluster.h"
#include "sevenfold/train/proof/verify.h"
#include "sevenfold/train/rank_trainer.h"

namespace sevenfold {
namespace {

using testing::Sets;
using testing::TemporaryDirectory;
using testing::zero_experiment;
using testing::ZeroCase;

constexpr int64_t kTable = 101 * 32;
constexpr int64_t kUntied = 43'616, kTied = 40'384;  // parameters of M0
constexpr int64_t kDecoder = (kUntied - 2 * kTable - 32) / 4;

// Elements of each bucket: one in all and a tied table's, or with stage 3 those of a layer.
std::vector<int64_t> bucket_sizes(const ZeroCase& c) {
  if (c.stage < 3 && c.bucket_elements > 1)
    return c.tied ? std::vector<int64_t>{kTied - kTable, kTable} : std::vector<int64_t>{kUntied};
  std::vector<int64_t> sizes(4, kDecoder);
  for (const int64_t size : {c.tied ? 32 : kTable + 32, kTable}) sizes.push_back(size);
  return sizes;
}

// What rank `rank` owns of all of them.
int64_t shard_elements(const ZeroCase& c, int64_t rank) {
  const int64_t ranks = c.dp / c.replicate, part = rank % ranks;
  int64_t elements = 0;
  for (const int64_t size : bucket_sizes(c))
    elements += size * (part + 1) / ranks - size * part / ranks;
  return elements;
}

struct Bytes {
  int64_t weight = 4, gradient = 4, states = 2;  // of an element; number of states
};

class ZeroLedger : public ::testing::TestWithParam<ZeroCase> {
 protected:
  void on_ranks(const nlohmann::json& keys, const std::string& precision,
                const std::function<void(RankContext&, RankTrainer&)>& body) {
    install_allocator();
    const TemporaryDirectory directory;
    const testing::Experiment experiment =
        zero_experiment(directory, GetParam(), keys, {{"precision", precision}});
    const SampleStream samples(experiment.config, *experiment.data);
    run_ranks(Mesh(experiment.config.mesh), {}, [&](RankContext& rank) {
      RankTrainer trainer(experiment.config, samples, rank);
      body(rank, trainer);
    });
  }

  // Bytes of all ranks together in a step of a bf16 run whose gradients are sent in this many.
  void expect_sent(const nlohmann::json& keys, int64_t gradient_bytes);

  // Weights whole but in stage 3; gradients before stage 2; states of the shard from stage 1 on.
  void expect_resident(const RankContext& rank, const Bytes& bytes) {
    const ZeroCase& c = GetParam();
    const int64_t whole = c.tied ? kTied : kUntied, shard = shard_elements(c, rank.rank);
    EXPECT_EQ(rank.memory.live(MemoryCategory::kParameters),
              (c.stage == 3 ? shard : whole) * bytes.weight);
    EXPECT_EQ(rank.memory.live(MemoryCategory::kGradients),
              (c.stage >= 2 ? shard : whole) * bytes.gradient);
    EXPECT_EQ(rank.memory.live(MemoryCategory::kOptimizer),
              (c.stage == 0 ? whole : shard) * bytes.gradient * bytes.states);
    EXPECT_EQ(rank.memory.live(MemoryCategory::kCommunication), 0);
  }
};

TEST_P(ZeroLedger, HoldsExactlyTheBytesOfTheFormulaAtTheStepBoundary) {
  for (const auto& [precision, bytes] :
       std::map<std::string, Bytes>{{"fp32", {4, 4, 2}}, {"bf16", {2, 4, 3}}, {"fp64", {8, 8, 2}}})
    on_ranks({{"optimizer", "adam"}, {"bf16", precision == "bf16"}}, precision,
             [&, bytes = bytes](RankContext& rank, RankTrainer& trainer) {
               for (int step = 0; step < 2; ++step) {
                 trainer.step();
                 expect_resident(rank, bytes);
               }
             });
}

struct Sent {
  int64_t operations = 0;
  int64_t bytes = 0;
};

// All ranks together: (n - 1) times what a reduce-scatter or an all-gather moves, n ranks a set;
// between R sets 2 (R - 1) times what an all-reduce of the shards does.
TEST_P(ZeroLedger, SendsExactlyTheBytesOfTheFormulaInAStep) {
  expect_sent({{"optimizer", "adam"}, {"bf16", true}}, 4);
}

TEST_P(ZeroLedger, SendsHalfTheGradientBytesInBf16) {
  expect_sent({{"optimizer", "adam"}, {"bf16", true}, {"grad_reduce_in_bf16", true}}, 2);
}

void ZeroLedger::expect_sent(const nlohmann::json& keys, int64_t gradient_bytes) {
  const ZeroCase& c = GetParam();
  std::mutex mutex;
  std::map<std::pair<std::string, std::string>, Sent> sent;
  on_ranks(keys, "bf16", [&](RankContext& rank, RankTrainer& trainer) {
    trainer.step();
    rank.traffic.clear();
    trainer.step();
    EXPECT_EQ(rank.memory.live(MemoryCategory::kCommunication), 0);
    const std::lock_guard<std::mutex> lock(mutex);
    for (const auto& [where, entry] : rank.traffic.entries()) {
      sent[where].operations += entry.operations;
      sent[where].bytes += entry.bytes_sent;
    }
  });
  constexpr int64_t kLoss = 8;  // its sum, in fp64
  const std::string shards = c.replicate > 1 ? "dp-shard-cp" : "dp-cp";
  const int64_t elements = c.tied ? kTied : kUntied;
  const auto buckets = static_cast<int64_t>(bucket_sizes(c).size());
  const int64_t ranks = c.dp / c.replicate, others = (ranks - 1) * c.replicate;
  const int64_t reductions = c.stage == 0 ? 0 : c.stage == 1 ? 1 : c.accumulation;
  const int64_t gathers = c.stage == 0 ? 0 : c.stage < 3 ? 1 : c.accumulation * (c.reshard ? 2 : 1);
  const int64_t all_reduced = c.stage == 0 ? 2 * (c.dp - 1) * elements * gradient_bytes : 0;
  EXPECT_EQ((sent[{"dp-cp", "all_reduce"}].bytes), 2 * (c.dp - 1) * kLoss + all_reduced);
  EXPECT_EQ((sent[{shards, "reduce_scatter"}].bytes),
            reductions * others * elements * gradient_bytes);
  EXPECT_EQ((sent[{shards, "all_gather"}].bytes), gathers * others * elements * 2);
  EXPECT_EQ((sent[{"dp-replicate", "all_reduce"}].bytes),
            2 * (c.replicate - 1) * elements * gradient_bytes);
  if (ranks == 1) return;
  EXPECT_EQ((sent[{"dp-cp", "all_reduce"}].operations), c.dp * (1 + (c.stage == 0 ? buckets : 0)));
  EXPECT_EQ((sent[{shards, "reduce_scatter"}].operations), c.dp * reductions * buckets);
  EXPECT_EQ((sent[{shards, "all_gather"}].operations), c.dp * gathers * buckets);
}

std::vector<ZeroCase> ledger_cases() {
  std::vector<ZeroCase> cases;
  for (const int64_t stage : {0, 1, 2, 3})
    for (const int64_t dp : {1, 2, 3, 4, 8})
      for (const bool tied : {false, true})
        cases.push_back({.stage = stage, .dp = dp, .accumulation = 2, .tied = tied});
  for (const int64_t stage : {1, 2, 3}) {
    cases.push_back({.stage = stage, .dp = 6, .accumulation = 3, .tied = true, .replicate = 2});
    cases.push_back({.stage = stage, .dp = 2, .accumulation = 2, .replicate = 2});
    cases.push_back({.stage = stage, .dp = 3, .accumulation = 2, .tied = true, .recomputed = 1});
  }
  cases.push_back({.stage = 3, .dp = 3, .accumulation = 4, .tied = true, .reshard = false});
  for (const int64_t stage : {1, 2})
    cases.push_back({.stage = stage, .dp = 3, .tied = true, .overlap = true});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Stages, ZeroLedger, ::testing::ValuesIn(ledger_cases()),
                         [](const auto& instance) { return instance.param.name(); });

// One bucket of gradients at a time, and a tied table's beside it.
class LentBuckets : public ZeroLedger {};

TEST_P(LentBuckets, AreTheLargestAtThePeakAndTheTiedTable) {
  on_ranks(nlohmann::json::object(), "fp32", [&](RankContext& rank, RankTrainer& trainer) {
    trainer.step();
    rank.memory.reset_peaks();
    trainer.step();
    constexpr int64_t kBookkeeping = 256;  // sums of losses, tokens and squares
    const int64_t largest = (kDecoder + (GetParam().tied ? kTable : 0)) * 4;
    EXPECT_GE(rank.memory.peak(MemoryCategory::kCommunication), largest);
    EXPECT_LE(rank.memory.peak(MemoryCategory::kCommunication), largest + kBookkeeping);
  });
}

// ZeRO-3: the weights of two layers, and the gradients of one; of a tied table both all along.
class GatheredLayers : public ZeroLedger {};

TEST_P(GatheredLayers, AreTwoAtThePeakAndTheTiedTable) {
  on_ranks(nlohmann::json::object(), "fp32", [&](RankContext& rank, RankTrainer& trainer) {
    trainer.step();
    rank.memory.reset_peaks();
    trainer.step();
    constexpr int64_t kBookkeeping = 256;  // sums of losses, tokens and squares
    const int64_t largest = (3 * kDecoder + (GetParam().tied ? 2 * kTable : 0)) * 4;
    EXPECT_GE(rank.memory.peak(MemoryCategory::kCommunication), largest);
    EXPECT_LE(rank.memory.peak(MemoryCategory::kCommunication), largest + kBookkeeping);
  });
}

INSTANTIATE_TEST_SUITE_P(
    Tables, GatheredLayers,
    ::testing::Values(ZeroCase{.stage = 3, .dp = 2, .accumulation = 2},
                      ZeroCase{.stage = 3, .dp = 2, .accumulation = 2, .recomputed = 1},
                      ZeroCase{.stage = 3, .dp = 2, .accumulation = 2, .recomputed = 3},
                      ZeroCase{.stage = 3, .dp = 2, .accumulation = 2, .tied = true},
                      ZeroCase{.stage = 3, .dp = 2, .tied = true, .recomputed = 3}),
    [](const auto& instance) { return instance.param.name(); });

INSTANTIATE_TEST_SUITE_P(
    Tables, LentBuckets,
    ::testing::Values(
        ZeroCase{.stage = 2, .dp = 2, .accumulation = 2, .bucket_elements = 1},
        ZeroCase{.stage = 2, .dp = 2, .accumulation = 2, .tied = true, .bucket_elements = 1}),
    [](const auto& instance) { return instance.param.name(); });

// A real step with clipping (field case B06): every rank reports the norm of one rank and clips by
// the same factor.
TEST(ZeroClipping, UsesTheGlobalNormOnEveryRank) {
  install_allocator();
  const auto step_of = [](int64_t stage, int64_t dp, int64_t replicate = 1) {
    const TemporaryDirectory directory;
    const testing::Experiment experiment = zero_experiment(
        directory,
        {.stage = stage, .dp = dp, .accumulation = 12 / dp, .tied = true, .replicate = replicate},
        {{"clip_grad", 0.5}});
    const SampleStream samples(experiment.config, *experiment.data);
    std::vector<StepResult> results(static_cast<size_t>(dp));
    run_ranks(Mesh(experiment.config.mesh), {}, [&](RankContext& rank) {
      RankTrainer trainer(experiment.config, samples, rank);
      results[static_cast<size_t>(rank.rank)] = trainer.step();
    });
    return results;
  };
  const StepResult one = step_of(0, 1)[0];
  EXPECT_LT(one.clip_factor, 1.0);
  for (const int64_t stage : {1, 2, 3})
    for (const auto& [dp, replicate] : Sets{{2, 1}, {3, 1}, {4, 1}, {4, 2}}) {
      const std::vector<StepResult> results = step_of(stage, dp, replicate);
      EXPECT_NEAR(results[0].gradient_norm, one.gradient_norm, 1e-9 * one.gradient_norm);
      for (const StepResult& result : results) {
        EXPECT_EQ(result.gradient_norm, results[0].gradient_norm);
        EXPECT_EQ(result.clip_factor, results[0].clip_factor);
      }
    }
}

}  // namespace
}  // namespace sevenfold
