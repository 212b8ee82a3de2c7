// Bytes at the step boundary of a model of 24 million parameters, as docs/data_parallelism.md lists
// them: bf16 weights, fp32 gradients, AdamW with fp32 master weights.

#include <gtest/gtest.h>

#include <array>

#include "parity/zero_cases.h"
#include "sevenfold/dist/allocator.h"
#include "sevenfold/dist/threads/cluster.h"
#include "sevenfold/train/rank_trainer.h"

namespace sevenfold {
namespace {

using testing::TemporaryDirectory;
using testing::ZeroCase;

constexpr int64_t kHidden = 512, kFfn = 1408, kLayers = 6, kVocabulary = 5000;
constexpr int64_t kLayer = 4 * kHidden * kHidden + 3 * kHidden * kFfn + 2 * kHidden;
constexpr int64_t kTable = kVocabulary * kHidden;
constexpr int64_t kParameters = kLayers * kLayer + 2 * kTable + kHidden;
static_assert(kParameters == 24'394'240);

testing::Experiment experiment_of(const TemporaryDirectory& directory, const ZeroCase& c) {
  return zero_experiment(directory, c,
                         {{"hidden_size", kHidden},
                          {"ffn_hidden_size", kFfn},
                          {"num_layers", kLayers},
                          {"num_attention_heads", 8},
                          {"num_query_groups", 8},
                          {"vocab_size", kVocabulary},
                          {"optimizer", "adam"},
                          {"lr", 1e-4},
                          {"bf16", true}},
                         {{"precision", "bf16"}});
}

// Elements that `rank` owns: of one bucket, or with stage 3 of one per layer.
int64_t owned_elements(int64_t stage, int64_t rank, int64_t ranks) {
  const auto part = [&](int64_t elements) {
    return elements * (rank + 1) / ranks - elements * rank / ranks;
  };
  if (stage == 0) return kParameters;
  if (stage < 3) return part(kParameters);
  return kLayers * part(kLayer) + part(kTable) + part(kTable + kHidden);
}

// The table of the page: rank 0, without ZeRO and in stages 1 to 3.
using Row = std::array<int64_t, 4>;
const std::map<int64_t, Row> kTotals = {
    {1, {439'096'320, 439'096'320, 439'096'320, 439'096'320}},
    {2, {439'096'320, 292'730'880, 243'942'400, 219'548'160}},
    {4, {439'096'320, 219'548'160, 146'365'440, 109'774'080}},
    {8, {439'096'320, 182'956'800, 97'576'960, 54'887'040}},
};

TEST(ZeroMemory, IsTheFormulaToTheByteAndSavesTheSharesOfTheOthers) {
  install_allocator();
  for (const auto& [ranks, totals] : kTotals)
    for (const int64_t stage : {0, 1, 2, 3}) {
      const TemporaryDirectory directory;
      const testing::Experiment experiment =
          experiment_of(directory, {.stage = stage, .dp = ranks});
      const SampleStream samples(experiment.config, *experiment.data);
      run_ranks(Mesh(experiment.config.mesh), {}, [&](RankContext& rank) {
        RankTrainer trainer(experiment.config, samples, rank);
        trainer.step();
        const int64_t owned = owned_elements(stage, rank.rank, ranks);
        const int64_t weights = (stage == 3 ? owned : kParameters) * 2;
        const int64_t gradients = (stage >= 2 ? owned : kParameters) * 4;
        EXPECT_EQ(rank.memory.live(MemoryCategory::kParameters), weights);
        EXPECT_EQ(rank.memory.live(MemoryCategory::kGradients), gradients);
        EXPECT_EQ(rank.memory.live(MemoryCategory::kOptimizer), owned * 12);
        EXPECT_EQ(rank.memory.live(MemoryCategory::kCommunication), 0);
        if (rank.rank == 0) {
          EXPECT_EQ(weights + gradients + owned * 12, totals[static_cast<size_t>(stage)])
              << "stage " << stage << ", " << ranks << " ranks";
        }
        const double saved = 1.0 - static_cast<double>(owned) / static_cast<double>(kParameters);
        const double others = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
        if (stage > 0) {
          EXPECT_GE(saved, others - 0.01);
        }
      });
    }
}

}  // namespace
}  // namespace sevenfold
