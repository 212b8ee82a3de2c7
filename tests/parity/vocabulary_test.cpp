// A vocabulary that is not a multiple of make_vocab_size_divisible_by: padded rows exist in no
// parameter and in no softmax.

#include <gtest/gtest.h>

#include <cmath>

#include "model/model_fixture.h"
#include "sevenfold/train/batch_loader.h"
#include "train/experiments.h"

namespace sevenfold {
namespace {

// A head without weights knows nothing, so the loss is the logarithm of the number of words that it
// chooses from: ln 104 = 4.644 would be that of the padded vocabulary.
TEST(Vocabulary, WithPaddingHasItsOwnNumberOfWordsInTheSoftmax) {
  const testing::TemporaryDirectory directory;
  const testing::Experiment experiment =
      testing::m0_experiment(directory, "D3", 1, {{"make_vocab_size_divisible_by", 8}});
  testing::BoundModel model(experiment.config.model);
  EXPECT_EQ(model.weight("lm_head.weight").size(0), 101);
  model.weight("lm_head.weight").zero_();
  const SampleStream samples(experiment.config, *experiment.data);
  const BatchLoader loader(experiment.config, samples, {}, at::kDouble);
  double loss = 0.0;
  int64_t trained_tokens = 0;
  for (Microbatch& microbatch : loader.step(0, experiment.config.batch.num_microbatches)) {
    loss += model.loss(microbatch);
    trained_tokens += microbatch.trained_tokens;
  }
  EXPECT_EQ(trained_tokens, 126);
  EXPECT_NEAR(loss / 126, std::log(101.0), 1e-12);
}

}  // namespace
}  // namespace sevenfold
