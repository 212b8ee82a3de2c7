#include "sevenfold/train/optimizer_step.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "sevenfold/config/batch_schedule.h"
#include "sevenfold/core/error.h"
#include "sevenfold/dist/timeline.h"
#include "sevenfold/optim/clipping.h"
#include "sevenfold/optim/learning_rate.h"

namespace sevenfold {
namespace {

at::Tensor scalar(double value) {
  return at::full({1}, value, at::TensorOptions().dtype(at::kDouble));
}

double mean_loss(double sum, int64_t tokens) {
  return sum / std::max(1.0, static_cast<double>(tokens));
}

}  // namespace

OptimizerStep::OptimizerStep(const Config& config, RankContext& rank,
                             const std::vector<Parameter*>& parameters,
                             std::vector<Bucket>& buckets, LayerWeights& weights,
                             RunPosition& position)
    : config_(config),
      rank_(rank),
      parameters_(parameters),
      buckets_(buckets),
      weights_(weights),
      position_(position),
      optimizer_(make_optimizer(config.optimizer, parameters)),
      loss_scale_(config.run.precision, config.run.loss_scale) {
  if (!config.pipeline.post_validation) return;
  copies_.emplace(*optimizer_, parameters, rank.faults);
  validation_.emplace(rank, norm_group());
}

RunState OptimizerStep::run_state() const {
  SEVENFOLD_CHECK(!is_open(), "a step is open");
  const LossScale::State scale = loss_scale_.state();
  return {.iteration = position_.iteration,
          .consumed_samples = position_.consumed_samples,
          .stepped_samples = position_.stepped_samples,
          .consumed_valid_samples = position_.consumed_valid_samples,
          .optimizer_steps = optimizer_->num_steps(),
          .loss_scale = scale.value,
          .steps_without_overflow = scale.steps_without_overflow,
          .overflows_left = scale.overflows_left};
}

void OptimizerStep::go_on_from(const RunState& run) {
  SEVENFOLD_CHECK(!is_open(), "a step is open");
  position_ = {.iteration = run.iteration,
               .consumed_samples = run.consumed_samples,
               .stepped_samples = run.stepped_samples,
               .consumed_valid_samples = run.consumed_valid_samples};
  optimizer_->set_num_steps(run.optimizer_steps);
  loss_scale_.restore({.value = run.loss_scale,
                       .steps_without_overflow = run.steps_without_overflow,
                       .overflows_left = run.overflows_left});
}

std::vector<Parameter*> OptimizerStep::norm_parameters() const {
  std::vector<Parameter*> counted = parameters_;
  if (rank_.faults.has(Fault::kTiedTableCountedTwice) && config_.model.tied_embeddings)
    for (Parameter* parameter : parameters_)
      if (parameter->name() == "model.embed_tokens.weight") counted.push_back(parameter);
  return counted;
}

std::string OptimizerStep::norm_group() const {
  const bool stays_local =
      rank_.faults.has(Fault::kShardNormNotSummed) || rank_.faults.has(Fault::kNormOfLocalGradient);
  if (!is_sharded() || stays_local) return "tp-pp";
  return rank_.mesh->shape().dp_replicate > 1 ? "one-replica" : "world";
}

// Planted: the sums that were left out before the norm.
void OptimizerStep::sum_late() const {
  if (!rank_.faults.has(Fault::kNormOfLocalGradient) ||
      config_.parallel.zero >= ZeroStage::kGradients)
    return;
  for (Bucket& bucket : buckets_) rank_.group("dp-cp").all_reduce(bucket.gradients).wait();
}

StepResult OptimizerStep::result_of(const StepLoss& loss) const {
  return {.learning_rate = learning_rate(config_.learning_rate, position_.stepped_samples),
          .trained_tokens = loss.trained_tokens,
          .tokens = loss.global_batch_size * config_.model.seq_length,
          .global_batch_size = loss.global_batch_size,
          .loss_scale = loss_scale_.value()};
}

StepResult OptimizerStep::take(const StepLoss& loss) {
  const WorkSpan span(rank_.timeline, "apply gradients");
  const MomentScope moment("apply gradients");
  StepResult result = result_of(loss);
  const at::Tensor sum = scalar(loss.sum);
  if (!rank_.faults.has(Fault::kLossNotSummed)) rank_.group("pp").all_reduce(sum).wait();
  result.loss = mean_loss(sum.item<double>(), loss.trained_tokens);
  result.gradient_norm = gradient_norm(norm_parameters(), rank_, norm_group()) / result.loss_scale;
  sum_late();
  const bool is_finite = agree_whether_finite(result);
  conclude(result, is_finite);
  return result;
}

// Ranks must agree on a step or its end, and on what they say of it, even where only one of them
// has seen the overflow.
bool OptimizerStep::agree_whether_finite(StepResult& result) const {
  const bool is_finite = std::isfinite(result.loss) && std::isfinite(result.gradient_norm);
  const at::Tensor overflows = scalar(is_finite ? 0.0 : 1.0);
  rank_.group("world").all_reduce_max(overflows).wait();
  const bool all_finite = overflows.item<double>() == 0.0;
  if (is_finite && !all_finite) result.gradient_norm = std::numeric_limits<double>::infinity();
  return all_finite;
}

void OptimizerStep::check_finite(const StepResult& result, bool is_finite) const {
  if (is_finite || !config_.run.check_for_nan || loss_scale_.is_dynamic()) return;
  raise<Error>(
      "train: iteration {}: the loss is {} and the gradient norm {}; the run ends before the "
      "weights are changed ({}, or go on with check_for_nan_in_loss_and_grad=false, which skips "
      "such steps)",
      position_.iteration + 1, result.loss, result.gradient_norm,
      config_.run.precision == Precision::kFp16
          ? fmt::format("use a loss_scale below {}, or null for one that adapts",
                        config_.run.loss_scale.constant)
          : "lower lr");
}

// With loss and norm known to all.
void OptimizerStep::conclude(StepResult& result, bool is_finite) {
  check_finite(result, is_finite);
  result.is_skipped = !is_finite;
  result.clip_factor = clip_factor(result.gradient_norm, config_.optimizer.clip_grad);
  if (config_.run.log_num_zeros)
    result.num_zeros = zeros_in_gradient(parameters_, rank_, norm_group());
  if (is_finite) {
    step_optimizer(result);
    weights_.stepped();
  }
  if (config_.run.log_params_norm)
    result.weight_norm = weight_norm(parameters_, *optimizer_, rank_, norm_group());
  advance(result, !is_finite);
}

void OptimizerStep::advance(const StepResult& result, bool overflowed) {
  loss_scale_.update(overflowed);
  ++position_.iteration;
  position_.consumed_samples += result.global_batch_size;
}

void OptimizerStep::step_optimizer(const StepResult& result) {
  const WorkSpan span(rank_.timeline, "optimizer");
  const MomentScope moment("optimizer");
  const double decay = weight_decay(config_.optimizer, position_.stepped_samples,
                                    run_samples(config_.run, config_.batch));
  position_.stepped_samples += result.global_batch_size;
  const Communicator& owners =
      rank_.group(is_sharded() ? shard_group(rank_.mesh->shape()) : "dp-cp");
  const bool skips =
      (rank_.faults.has(Fault::kReplicaNotUpdated) && rank_.rank == rank_.mesh->world_size() - 1) ||
      (rank_.faults.has(Fault::kLastShardNotUpdated) && owners.rank() == owners.size() - 1);
  if (skips) return;
  optimizer_->step({.lr = result.learning_rate,
                    .weight_decay = decay,
                    .gradient_scale = result.clip_factor / result.loss_scale});
}

bool OptimizerStep::fill(StepResult& result, const PipelineState& state) const {
  result.loss = mean_loss(state.loss_sum, result.trained_tokens);
  result.gradient_norm = state.gradient_norm / result.loss_scale;
  const bool is_finite = std::isfinite(result.loss) && std::isfinite(result.gradient_norm);
  if (is_finite && !state.is_finite) result.gradient_norm = std::numeric_limits<double>::infinity();
  result.clip_factor = clip_factor(result.gradient_norm, config_.optimizer.clip_grad);
  return is_finite && state.is_finite;
}

void OptimizerStep::take_ahead(const StepLoss& loss) {
  SEVENFOLD_CHECK(validation_ && !open_, "no post validation, or a step is open");
  const WorkSpan span(rank_.timeline, "apply gradients");
  const MomentScope moment("apply gradients");
  OpenStep open{.result = result_of(loss), .loss_scale = loss_scale_, .position = position_};
  const double squares = local_gradient_squares(norm_parameters(), rank_);
  const bool is_finite = fill(open.result, validation_->begin(squares, loss.sum));
  sum_late();
  open.is_taken = is_finite && open.result.clip_factor == 1.0;
  validation_->pass_on(open.is_taken);
  if (open.is_taken) {
    copies_->take();
    step_optimizer(open.result);
    weights_.stepped();
  }
  advance(open.result, /*overflowed=*/false);
  open_ = std::move(open);
}

OptimizerStep::Settled OptimizerStep::settle() {
  SEVENFOLD_CHECK(is_open(), "no step is open");
  const WorkSpan span(rank_.timeline, "validate step");
  const MomentScope moment("validate step");
  OpenStep open = *std::exchange(open_, std::nullopt);
  const PipelineState all = validation_->finish();
  const bool is_finite = fill(open.result, all);
  // A norm of more stages is no smaller, so whoever did not step was right.
  if (all.has_all_stepped && is_finite && open.result.clip_factor == 1.0)
    return {.result = open.result, .stood = true};
  take_back(open);
  conclude(open.result, is_finite);
  if (open.is_taken && !is_finite) weights_.stepped();
  return {.result = open.result, .stood = false};
}

void OptimizerStep::take_back(const OpenStep& open) {
  loss_scale_ = open.loss_scale;
  position_ = open.position;
  if (!open.is_taken) return;
  weights_.finish();
  copies_->restore();
}

}  // namespace sevenfold
