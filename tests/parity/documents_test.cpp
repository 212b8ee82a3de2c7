// reset_position_ids and reset_attention_mask: a document in a packed sample is computed as if it
// stood alone, in every layout.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "model/model_fixture.h"
#include "sevenfold/dist/allocator.h"
#include "sevenfold/train/batch_loader.h"
#include "sevenfold/train/proof/verify.h"
#include "train/experiments.h"

namespace sevenfold {
namespace {

using testing::TemporaryDirectory;

enum class Kind { kLlama, kGpt };

testing::Experiment documents_experiment(const TemporaryDirectory& directory, Kind kind,
                                         int64_t ranks) {
  const nlohmann::json keys = {
      {"micro_batch_size", 2}, {"reset_position_ids", true}, {"reset_attention_mask", true}};
  if (kind == Kind::kGpt) return testing::g0_experiment(directory, "D1", ranks, 0.0, keys);
  return testing::m0_experiment(directory, "D1", ranks, keys);
}

class Documents : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override { install_allocator(); }
};

// Tokens first .. end-1 of a row as a sequence of their own.
Microbatch cut(const Microbatch& packed, int64_t row, int64_t first, int64_t end) {
  const auto piece = [&](const at::Tensor& x) {
    return x.narrow(0, row, 1).narrow(1, first, end - first).contiguous();
  };
  Microbatch alone;
  alone.inputs_BT = piece(packed.inputs_BT);
  alone.labels_BT = piece(packed.labels_BT);
  alone.mask_BT = piece(packed.mask_BT);
  return alone;
}

double sum_over_documents(testing::BoundModel& model, const Microbatch& packed, int64_t* count) {
  double sum = 0.0;
  for (int64_t row = 0; row < packed.inputs_BT.size(0); ++row) {
    int64_t first = 0;
    for (int64_t t = 0; t < packed.inputs_BT.size(1); ++t) {
      const bool is_last = t + 1 == packed.inputs_BT.size(1);
      if (!is_last && packed.inputs_BT[row][t].item<int64_t>() != 0) continue;
      sum += model.loss(cut(packed, row, first, t + 1));
      first = t + 1;
      ++*count;
    }
  }
  return sum;
}

TEST_P(Documents, OfAPackedSampleAreComputedAsIfAlone) {
  const TemporaryDirectory directory;
  const testing::Experiment experiment = documents_experiment(directory, GetParam(), 1);
  testing::BoundModel model(experiment.config.model);
  const SampleStream samples(experiment.config, *experiment.data);
  const BatchLoader loader(experiment.config, samples, {}, at::kDouble);
  int64_t documents = 0;
  for (const Microbatch& packed : loader.step(0, experiment.config.batch.num_microbatches)) {
    const double alone = sum_over_documents(model, packed, &documents);
    EXPECT_NEAR(model.loss(packed), alone, 1e-12 * alone);
  }
  EXPECT_GT(documents, 12);  // more than the 8 samples: some are packed
}

TEST_P(Documents, OfDataParallelRanksEqualOneRank) {
  const TemporaryDirectory directory;
  const testing::Experiment experiment = documents_experiment(directory, GetParam(), 2);
  const VerifyReport report = verify_layout(proof_config(experiment.config), *experiment.data, {});
  EXPECT_TRUE(report.pass) << report.failure();
}

INSTANTIATE_TEST_SUITE_P(Kinds, Documents, ::testing::Values(Kind::kLlama, Kind::kGpt),
                         [](const auto& instance) {
                           return instance.param == Kind::kGpt ? "gpt" : "llama";
                         });

}  // namespace
}  // namespace sevenfold
