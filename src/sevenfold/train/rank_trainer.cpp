#include "sevenfold/train/rank_trainer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "sevenfold/core/error.h"
#include "sevenfold/optim/clipping.h"
#include "sevenfold/optim/learning_rate.h"
#include "sevenfold/param/start_values.h"
#include "sevenfold/pipeline/executor.h"
#include "sevenfold/schedule/generators/one_f_one_b.h"

namespace sevenfold {
namespace {

at::Tensor scalar(double value) {
  return at::full({1}, value, at::TensorOptions().dtype(at::kDouble));
}

BatchPlace batch_place(const RankContext& rank) {
  return {rank.coordinates[static_cast<size_t>(Axis::kDp)], rank.mesh->shape().dp};
}

// Loss and norm are the same on every rank, so all ranks leave together, before any weight is
// changed.
void check_finite(const StepResult& result, int64_t iteration) {
  if (std::isfinite(result.loss) && std::isfinite(result.gradient_norm)) return;
  raise<Error>(
      "train: iteration {}: the loss is {} and the gradient norm {}; the run ends before the "
      "weights "
      "are changed (lower lr, or go on with check_for_nan_in_loss_and_grad=false)",
      iteration + 1, result.loss, result.gradient_norm);
}

}  // namespace

at::ScalarType model_dtype(Precision precision) {
  switch (precision) {
    case Precision::kFp64:
      return at::kDouble;
    case Precision::kFp32:
      return at::kFloat;
    default:
      raise<InternalError>("no engine for precision {} yet", precision_name(precision));
  }
}

RankTrainer::RankTrainer(const Config& config, const SampleSource& data, RankContext& rank)
    : config_(config),
      rank_(rank),
      dtype_(model_dtype(config.run.precision)),
      model_(build_model(config.model,
                         {.dtype = dtype_, .seed = config.run.seed, .faults = rank.faults})),
      parameters_(model_.all_parameters()),
      buckets_(build_buckets(model_.layer_parameters(), rank, dtype_,
                             config.run.gradient_bucket_elements)),
      reducer_(buckets_, rank),
      chunk_(model_.layers, reducer_, rank.faults),
      schedule_(one_f_one_b(config.mesh.pp, config.batch.num_microbatches)),
      loader_(config, data, batch_place(rank), dtype_, rank.faults) {
  start_weights();
  optimizer_ = make_optimizer(config.optimizer, parameters_);
}

void RankTrainer::start_weights() {
  StartOptions options{.kind = config_.run.start,
                       .seed = config_.run.seed,
                       .init_method_std = config_.model.init_method_std,
                       .num_layers = config_.model.num_layers};
  if (rank_.faults.has(Fault::kStartPerRank) && rank_.rank > 0) {
    options.kind = StartKind::kInit;
    options.seed += static_cast<uint64_t>(rank_.rank);
  }
  for (Parameter* parameter : parameters_)
    fill_start_values(*parameter, options,
                      local_slice(parameter->spec(), *rank_.mesh, rank_.coordinates));
}

StepResult RankTrainer::step(int64_t iteration) {
  compute_gradients(iteration);
  return apply_gradients(iteration);
}

void RankTrainer::compute_gradients(int64_t iteration) {
  std::vector<Microbatch> microbatches = loader_.step(consumed(iteration));
  seed_losses(microbatches);
  for (Bucket& bucket : buckets_) bucket.gradients.zero_();
  chunk_.reset_loss();
  const auto stage = static_cast<size_t>(rank_.coordinates[static_cast<size_t>(Axis::kPp)]);
  execute(schedule_.rows[stage], chunk_, microbatches, rank_.faults);
  reducer_.finish();
}

// Every micro batch is seeded with one over the unmasked tokens of the *global* batch: the loss is
// a mean over tokens, whatever the micro batches, the accumulation and the ranks. A batch without
// any has loss 0.
void RankTrainer::seed_losses(std::vector<Microbatch>& microbatches) {
  double local = 0.0;
  microbatch_tokens_.clear();
  for (const Microbatch& microbatch : microbatches) {
    local += static_cast<double>(microbatch.trained_tokens);
    microbatch_tokens_.push_back(microbatch.trained_tokens);
  }
  trained_tokens_ = scalar(local);
  rank_.group("dp").all_reduce(trained_tokens_).wait();
  const at::Tensor seed = trained_tokens_.clamp_min(1.0).reciprocal().squeeze(0);
  const auto ranks = static_cast<double>(config_.mesh.dp);
  for (Microbatch& microbatch : microbatches) {
    microbatch.loss_seed = seed;
    if (rank_.faults.has(Fault::kMeanPerMicrobatch)) {
      const double tokens = std::max(1.0, static_cast<double>(microbatch.trained_tokens));
      microbatch.loss_seed =
          scalar(1.0 / (tokens * ranks * static_cast<double>(microbatches.size()))).squeeze(0);
    }
    if (rank_.faults.has(Fault::kMeanPerRank))
      microbatch.loss_seed = scalar(1.0 / (std::max(1.0, local) * ranks)).squeeze(0);
  }
}

std::vector<Parameter*> RankTrainer::norm_parameters() const {
  std::vector<Parameter*> counted = parameters_;
  if (rank_.faults.has(Fault::kTiedTableCountedTwice) && config_.model.tied_embeddings)
    counted.push_back(parameters_.front());
  return counted;
}

StepResult RankTrainer::apply_gradients(int64_t iteration) {
  StepResult result = sum_loss();
  result.learning_rate = learning_rate(config_.learning_rate, consumed(iteration));
  result.gradient_norm = gradient_norm(norm_parameters(), rank_);
  if (rank_.faults.has(Fault::kNormOfLocalGradient))
    for (Bucket& bucket : buckets_) rank_.group("dp-cp").all_reduce(bucket.gradients).wait();
  if (config_.run.check_for_nan) check_finite(result, iteration);
  result.clip_factor = clip_factor(result.gradient_norm, config_.optimizer.clip_grad);
  scale_gradients(parameters_, result.clip_factor);
  const bool skips =
      rank_.faults.has(Fault::kReplicaNotUpdated) && rank_.rank == rank_.mesh->world_size() - 1;
  if (!skips) optimizer_->step(result.learning_rate);
  return result;
}

StepResult RankTrainer::sum_loss() {
  const at::Tensor loss = chunk_.loss_sum().reshape({1}).clone();
  if (!rank_.faults.has(Fault::kLossNotSummed)) rank_.group("dp-cp").all_reduce(loss).wait();
  const double trained_tokens = trained_tokens_.item<double>();
  return {.loss = loss.item<double>() / std::max(1.0, trained_tokens),
          .trained_tokens = static_cast<int64_t>(trained_tokens),
          .tokens = config_.batch.global_batch_size * config_.model.seq_length};
}

ValidationResult RankTrainer::evaluate(const SampleSource& data, int64_t num_samples) {
  SEVENFOLD_CHECK(num_samples > 0);
  const BatchPlace place = batch_place(rank_);
  const BatchLoader loader(config_, data, place, dtype_, rank_.faults);
  const int64_t micro = config_.batch.micro_batch_size;
  at::Tensor loss = at::zeros({}, at::TensorOptions().dtype(at::kDouble));
  double tokens = 0.0;
  // Micro batch m goes to rank m mod dp; the last one may be short, and no rank waits for another.
  for (int64_t first = place.dp_rank * micro; first < num_samples; first += place.dp_size * micro) {
    const Microbatch microbatch = loader.range(first, std::min(first + micro, num_samples));
    loss = loss + chunk_.evaluate(microbatch);
    tokens += static_cast<double>(microbatch.trained_tokens);
  }
  const at::Tensor sums = at::cat({loss.reshape({1}), scalar(tokens)});
  rank_.group("dp-cp").all_reduce(sums).wait();
  const double* values = sums.data_ptr<double>();
  return {.loss = values[0] / std::max(1.0, values[1]),
          .trained_tokens = static_cast<int64_t>(values[1]),
          .samples = num_samples};
}

int64_t RankTrainer::parameter_bytes() const {
  int64_t bytes = 0;
  for (const Bucket& bucket : buckets_) bytes += static_cast<int64_t>(bucket.weights.nbytes());
  return bytes;
}

int64_t RankTrainer::gradient_bytes() const {
  int64_t bytes = 0;
  for (const Bucket& bucket : buckets_) bytes += static_cast<int64_t>(bucket.gradients.nbytes());
  return bytes;
}

}  // namespace sevenfold
