#pragma once

#include <memory>
#include <vector>

#include "sevenfold/config/config.h"
#include "sevenfold/dist/rank_context.h"
#include "sevenfold/model/model.h"
#include "sevenfold/optim/optimizer.h"
#include "sevenfold/parallel/data/gradient_reducer.h"
#include "sevenfold/param/flat_storage.h"
#include "sevenfold/pipeline/chunk.h"
#include "sevenfold/schedule/ir.h"
#include "sevenfold/train/batch_loader.h"

namespace sevenfold {

struct StepResult {
  double loss = 0.0;           // mean over the unmasked tokens of the global batch
  double gradient_norm = 0.0;  // of the global gradient, before clipping
  double clip_factor = 1.0;
  double learning_rate = 0.0;  // the rate this step used
  int64_t trained_tokens = 0;  // unmasked tokens of the global batch
  int64_t tokens = 0;          // all tokens of the global batch
};

struct ValidationResult {
  double loss =
      0.0;  // mean over the unmasked tokens of the samples read; independent of batches and layout
  int64_t trained_tokens = 0;
  int64_t samples = 0;
};

// One rank's part of a training run: model, gradients, optimizer and data. The trainer of the
// simulated cluster, of `verify` and of the tests is this one.
class RankTrainer {
 public:
  // config, data and rank outlive the trainer. Collective over all ranks.
  RankTrainer(const Config& config, const SampleSource& data, RankContext& rank);

  // One training step; `iteration` counts from 0. Same report on every rank.
  StepResult step(int64_t iteration);

  // The halves of step(): gradients of the global batch on every rank, then norm, clipping and
  // optimizer. Throws Error, with the weights unchanged, when loss or norm are not finite and the
  // run checks for that.
  void compute_gradients(int64_t iteration);
  StepResult apply_gradients(int64_t iteration);

  // Loss over samples 0 .. num_samples-1 of `data`, each read once by one dp rank.
  ValidationResult evaluate(const SampleSource& data, int64_t num_samples);

  const std::vector<Parameter*>& parameters() const { return parameters_; }
  // Unmasked tokens of each micro batch of the last step, on this rank.
  const std::vector<int64_t>& microbatch_tokens() const { return microbatch_tokens_; }
  const Optimizer& optimizer() const { return *optimizer_; }
  // Of this rank.
  int64_t parameter_bytes() const;
  int64_t gradient_bytes() const;

 private:
  void seed_losses(std::vector<Microbatch>& microbatches);
  void start_weights();
  // The parts of the result that follow from the forward passes. Collective.
  StepResult sum_loss();
  std::vector<Parameter*> norm_parameters() const;
  int64_t consumed(int64_t iteration) const { return iteration * config_.batch.global_batch_size; }

  const Config& config_;
  RankContext& rank_;
  at::ScalarType dtype_;
  ModelPart model_;
  std::vector<Parameter*> parameters_;
  std::vector<Bucket> buckets_;
  GradientReducer reducer_;
  Chunk chunk_;
  Schedule schedule_;
  std::unique_ptr<Optimizer> optimizer_;
  BatchLoader loader_;
  at::Tensor trained_tokens_;  // of the global batch, fp64 scalar
  std::vector<int64_t> microbatch_tokens_;
};

at::ScalarType model_dtype(Precision precision);

}  // namespace sevenfold
