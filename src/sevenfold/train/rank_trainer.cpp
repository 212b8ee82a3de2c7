#include "sevenfold/train/rank_trainer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sevenfold/config/batch_schedule.h"
#include "sevenfold/core/error.h"
#include "sevenfold/dist/timeline.h"
#include "sevenfold/optim/clipping.h"
#include "sevenfold/optim/learning_rate.h"
#include "sevenfold/pipeline/recomputation.h"
#include "sevenfold/train/token_loss.h"

namespace sevenfold {
namespace {

at::Tensor scalar(double value) {
  return at::full({1}, value, at::TensorOptions().dtype(at::kDouble));
}

TensorParallel tensor_parallel(const Config& config, const RankContext& rank) {
  if (rank.faults.has(Fault::kTensorIgnored)) return {};
  return {.group = &rank.group("tp"),
          .sequence = config.parallel.sequence,
          .overlap = config.parallel.tensor_overlap,
          .faults = rank.faults};
}

// With ZeRO-3 a bucket is gathered and freed as a layer is.
int64_t bucket_elements(const Config& config) {
  return config.parallel.zero == ZeroStage::kParameters ? 1 : config.run.gradient_bucket_elements;
}

BatchPlace batch_place(const RankContext& rank) {
  return {rank.coordinates[static_cast<size_t>(Axis::kDp)], rank.mesh->shape().dp};
}

int64_t pipeline_coordinate(const RankContext& rank) {
  return rank.coordinates[static_cast<size_t>(Axis::kPp)];
}

}  // namespace

at::ScalarType model_dtype(Precision precision) {
  switch (precision) {
    case Precision::kFp64:
      return at::kDouble;
    case Precision::kFp32:
      return at::kFloat;
    case Precision::kBf16:
      return at::kBFloat16;
    case Precision::kFp16:
      return at::kHalf;
  }
  raise<InternalError>("train: unknown precision {}", static_cast<int>(precision));
}

RankTrainer::RankTrainer(const Config& config, const SampleStream& data, RankContext& rank,
                         std::shared_ptr<const PipelineTables> tables)
    : config_(config),
      rank_(rank),
      dtype_(model_dtype(config.run.precision)),
      tables_(tables ? std::move(tables) : std::make_shared<const PipelineTables>(config)),
      stages_(tables_->rank_stages(pipeline_coordinate(rank), rank.faults)),
      parts_(build_stages(config.model,
                          {.dtype = dtype_,
                           .seed = config.run.seed,
                           .tensor = tensor_parallel(config, rank),
                           .recompute = config.recompute,
                           .faults = rank.faults},
                          stages_.stages)),
      parameters_(parameters_of(parts_)),
      buckets_(build_buckets(layer_parameters_of(parts_), rank, dtype_, bucket_elements(config),
                             config.parallel.zero, layer_ranges(parts_))),
      weights_(buckets_, rank,
               {.stage = config.parallel.zero,
                .overlap = config.parallel.overlap_gather,
                .reshard_after_forward = config.parallel.reshard_after_forward}),
      reducer_(buckets_, rank, config.parallel.zero,
               config.parallel.reduces_in_bf16 && dtype_ == at::kBFloat16),
      optimizer_(make_optimizer(config.optimizer, parameters_)),
      loader_(config, data, batch_place(rank), gradient_type(dtype_), rank.faults),
      loss_scale_(config.run.precision, config.run.loss_scale) {
  for (const size_t part : stages_.part_of_chunk) {
    const StageLayers& layers = stages_.stages[part].layers;
    chunks_.emplace_back(
        parts_[part].layers, weights_, reducer_, rank.faults,
        recomputation_plan(config.recompute, {.position = layers.has_embedding ? 1U : 0U,
                                              .first_id = layers.first_layer,
                                              .count = layers.num_layers}),
        config.recompute.shares_inputs ? &rank.group("tp") : nullptr,
        layer_ranges(parts_)[part].begin);
  }
  start_weights();
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
  for (const Parameter* parameter : parameters_) start_weight(*parameter, options);
}

// A value is a function of its own index: a shard is filled by filling all of its parameter.
void RankTrainer::start_weight(const Parameter& parameter, const StartOptions& options) {
  const at::Tensor stepped = optimizer_->full_weight(parameter);
  const bool is_read_here =
      parameter.is_readable() && parameter.weight_type() == stepped.scalar_type();
  const at::Tensor values =
      is_read_here ? parameter.weight() : at::empty(parameter.sizes(), stepped.options());
  fill_start_values(values, parameter, options,
                    local_slice(parameter.spec(), *rank_.mesh, rank_.coordinates));
  if (is_read_here) return;
  const ElementRange owned = parameter.owned();
  stepped.copy_(values.view({-1}).narrow(0, owned.begin, owned.size()));
  if (parameter.is_readable()) {
    parameter.weight().copy_(values);  // rounded
  } else {
    parameter.owned_weight().copy_(stepped);
  }
}

PipelineRank RankTrainer::pipeline_rank() {
  PipelineRank result{.reducer = &reducer_, .rank = &rank_};
  for (Chunk& chunk : chunks_) result.chunks.push_back(&chunk);
  const int64_t parts = config_.parallel.sequence ? config_.mesh.tp : 1;
  result.boundary_tokens = config_.model.seq_length / parts;
  result.boundary_hidden = config_.model.hidden_size;
  result.dtype = dtype_;
  return result;
}

StepResult RankTrainer::step() {
  compute_gradients();
  return apply_gradients();
}

void RankTrainer::compute_gradients() {
  const int64_t count = num_microbatches(config_, position_.consumed_samples);
  std::vector<Microbatch> microbatches = read_step(count);
  seed_losses(microbatches);
  reducer_.begin_step();
  for (Chunk& chunk : chunks_) chunk.reset_loss();
  execution_ = execute(tables_->of(count), pipeline_rank(), microbatches);
  reducer_.finish();
}

std::vector<Microbatch> RankTrainer::read_step(int64_t num_microbatches) const {
  const WorkSpan span(rank_.timeline, "read data");
  const MomentScope moment("read data");
  return loader_.step(position_.consumed_samples, num_microbatches);
}

// Every micro batch is seeded with one over the unmasked tokens of the *global* batch: the loss is
// a mean over tokens, whatever the micro batches, the accumulation and the ranks. A batch without
// any has loss 0. The loss scale is part of the seed and divided out in the norm and the optimizer.
void RankTrainer::seed_losses(std::vector<Microbatch>& microbatches) {
  double local = 0.0;
  microbatch_tokens_.clear();
  for (const Microbatch& microbatch : microbatches) {
    local += static_cast<double>(microbatch.trained_tokens);
    microbatch_tokens_.push_back(microbatch.trained_tokens);
  }
  trained_tokens_ = scalar(local);
  rank_.group("dp").all_reduce(trained_tokens_).wait();
  const double scale = loss_scale_.value();
  const at::Tensor seed = trained_tokens_.clamp_min(1.0).reciprocal().mul_(scale).squeeze(0);
  const auto ranks = static_cast<double>(config_.mesh.dp);
  for (Microbatch& microbatch : microbatches) {
    microbatch.loss_seed = seed;
    if (rank_.faults.has(Fault::kMeanPerMicrobatch)) {
      const double tokens = std::max(1.0, static_cast<double>(microbatch.trained_tokens));
      microbatch.loss_seed =
          scalar(scale / (tokens * ranks * static_cast<double>(microbatches.size()))).squeeze(0);
    }
    if (rank_.faults.has(Fault::kLossScaledTwice) && config_.mesh.pp > 1)
      microbatch.loss_seed = seed / static_cast<double>(microbatches.size());
    if (rank_.faults.has(Fault::kMeanPerRank))
      microbatch.loss_seed = scalar(scale / (std::max(1.0, local) * ranks)).squeeze(0);
  }
}

std::vector<Parameter*> RankTrainer::norm_parameters() const {
  std::vector<Parameter*> counted = parameters_;
  if (rank_.faults.has(Fault::kTiedTableCountedTwice) && config_.model.tied_embeddings)
    for (Parameter* parameter : parameters_)
      if (parameter->name() == "model.embed_tokens.weight") counted.push_back(parameter);
  return counted;
}

std::string RankTrainer::norm_group() const {
  const bool stays_local =
      rank_.faults.has(Fault::kShardNormNotSummed) || rank_.faults.has(Fault::kNormOfLocalGradient);
  if (!is_sharded() || stays_local) return "tp-pp";
  return rank_.mesh->shape().dp_replicate > 1 ? "one-replica" : "world";
}

StepResult RankTrainer::apply_gradients() {
  const WorkSpan span(rank_.timeline, "apply gradients");
  const MomentScope moment("apply gradients");
  StepResult result = sum_loss();
  result.loss_scale = loss_scale_.value();
  result.learning_rate = learning_rate(config_.learning_rate, position_.stepped_samples);
  result.gradient_norm = gradient_norm(norm_parameters(), rank_, norm_group()) / result.loss_scale;
  if (rank_.faults.has(Fault::kNormOfLocalGradient) && !reducer_.reduces_every_microbatch())
    for (Bucket& bucket : buckets_) rank_.group("dp-cp").all_reduce(bucket.gradients).wait();
  const bool is_finite = agree_whether_finite(result);
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
  loss_scale_.update(!is_finite);
  ++position_.iteration;
  position_.consumed_samples += result.global_batch_size;
  return result;
}

// Ranks must agree on a step or its end, and on what they say of it, even where only one of them
// has seen the overflow.
bool RankTrainer::agree_whether_finite(StepResult& result) const {
  const bool is_finite = std::isfinite(result.loss) && std::isfinite(result.gradient_norm);
  const at::Tensor overflows = scalar(is_finite ? 0.0 : 1.0);
  rank_.group("world").all_reduce_max(overflows).wait();
  const bool all_finite = overflows.item<double>() == 0.0;
  if (is_finite && !all_finite) result.gradient_norm = std::numeric_limits<double>::infinity();
  return all_finite;
}

void RankTrainer::check_finite(const StepResult& result, bool is_finite) const {
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

void RankTrainer::step_optimizer(const StepResult& result) {
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

// Ranks without a head add nothing, and hear the loss over the pipeline.
StepResult RankTrainer::sum_loss() {
  const at::Tensor loss = scalar(0.0);
  for (const Chunk& chunk : chunks_) loss.add_(chunk.loss_sum());
  if (!rank_.faults.has(Fault::kLossNotSummed)) {
    rank_.group("dp-cp").all_reduce(loss).wait();
    rank_.group("pp").all_reduce(loss).wait();
  }
  const double trained_tokens = trained_tokens_.item<double>();
  const int64_t samples = global_batch_size(config_.batch, position_.consumed_samples);
  return {.loss = loss.item<double>() / std::max(1.0, trained_tokens),
          .trained_tokens = static_cast<int64_t>(trained_tokens),
          .tokens = samples * config_.model.seq_length,
          .global_batch_size = samples};
}

// As Megatron: one stream of validation samples runs through training.
ValidationResult RankTrainer::validate(const SampleSource& data) {
  if (config_.run.full_validation) return evaluate(data, {.num_samples = data.num_samples()});
  const int64_t samples = config_.run.eval_iters * config_.batch.global_batch_size;
  const ValidationResult result =
      evaluate(data, {.first = position_.consumed_valid_samples, .num_samples = samples});
  position_.consumed_valid_samples += samples;
  return result;
}

ValidationResult RankTrainer::evaluate(const SampleSource& data, const EvaluationRange& range) {
  SEVENFOLD_CHECK(range.num_samples > 0, "an evaluation without samples");
  const WorkSpan span(rank_.timeline, "evaluate");
  const MomentScope moment("evaluate");
  const BatchPlace place = batch_place(rank_);
  Config config = config_;
  // Cyclic order reads other samples in other layouts; the figure is to be the same in all.
  config.data.loader = LoaderKind::kSingle;
  const SampleStream stream(config, data);
  const BatchLoader loader(config, stream, place, gradient_type(dtype_), rank_.faults);
  const int64_t micro = config_.batch.micro_batch_size;
  const int64_t end = range.first + range.num_samples;
  at::Tensor sum = at::zeros({}, at::TensorOptions().dtype(at::kDouble));
  double tokens = 0.0, samples = 0.0;
  std::vector<Microbatch> group;  // one for each pipeline rank, so that all work
  const auto run_group = [&] {
    const auto count = static_cast<int64_t>(group.size());
    if (count > 0)
      sum = sum + execute(tables_->forward_only(count), pipeline_rank(), group).evaluation_loss;
    group.clear();
  };
  // Every data-parallel rank gathers weights as often as the others: one that has no samples left
  // runs the first again, unseen.
  const bool gathers = config_.parallel.zero == ZeroStage::kParameters;
  for (int64_t round = range.first; round < end; round += place.dp_size * micro) {
    const int64_t at = round + place.dp_rank * micro;
    const bool has_samples = at < end;
    if (!has_samples && !gathers) break;
    Microbatch& microbatch =
        group.emplace_back(has_samples ? loader.range(at, std::min(at + micro, end))
                                       : loader.range(range.first, range.first + 1));
    microbatch.index = static_cast<int64_t>(group.size()) - 1;
    if (has_samples) {
      tokens += static_cast<double>(microbatch.trained_tokens);
      samples += static_cast<double>(microbatch.inputs_BT.size(0));
    } else {
      microbatch.mask_BT.zero_();
    }
    if (static_cast<int64_t>(group.size()) == config_.mesh.pp) run_group();
  }
  run_group();
  const at::Tensor over_stages = sum.reshape({1}).clone();
  rank_.group("pp").all_reduce(over_stages).wait();
  const TokenLoss loss =
      TokenLoss{over_stages.item<double>(), tokens}.over(rank_.group("dp-cp"), rank_.group("dp"));
  const at::Tensor read = scalar(samples);
  rank_.group("dp").all_reduce(read).wait();
  return {.loss = loss.mean(),
          .trained_tokens = static_cast<int64_t>(loss.tokens),
          .samples = static_cast<int64_t>(read.item<double>())};
}

int64_t RankTrainer::parameter_bytes() const {
  int64_t bytes = 0;
  for (const Bucket& bucket : buckets_)
    bytes += static_cast<int64_t>(
        (bucket.weights.defined() ? bucket.weights : bucket.owned_weights).nbytes());
  return bytes;
}

int64_t RankTrainer::count_parameters() const {
  double elements = 0.0;
  for (const Parameter* parameter : parameters_)
    if (counts_in_norm(parameter->spec(), *rank_.mesh, rank_.coordinates))
      elements += static_cast<double>(parameter->num_elements());
  const at::Tensor total = scalar(elements);
  rank_.group("tp-pp").all_reduce(total).wait();
  return static_cast<int64_t>(total.item<double>());
}

}  // namespace sevenfold
