#include "sevenfold/train/rank_trainer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "sevenfold/config/batch_schedule.h"
#include "sevenfold/core/error.h"
#include "sevenfold/dist/timeline.h"
#include "sevenfold/pipeline/recomputation.h"

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
      loader_(config, data, batch_place(rank), gradient_type(dtype_), rank.faults),
      update_(config, rank, parameters_, buckets_, weights_, position_) {
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
  const at::Tensor stepped = optimizer().full_weight(parameter);
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
  count_tokens(microbatches);
  PipelineRank on = pipeline_rank();
  const bool is_ahead = update_.is_open();
  if (is_ahead) {
    on.confirms_weights = [&] {
      const bool stood = settle_open_step();  // reads the gradients of the step before
      if (!stood) begin_step(microbatches);
      reducer_.begin_step();
      return stood;
    };
  }
  begin_step(microbatches);
  if (!is_ahead) reducer_.begin_step();
  execution_ = execute(tables_->of(count), on, microbatches);
  reducer_.finish();
}

// Before the first forward: also of a second run, whose loss scale may be another.
void RankTrainer::begin_step(std::vector<Microbatch>& microbatches) {
  seed_losses(microbatches);
  for (Chunk& chunk : chunks_) chunk.reset_loss();
}

std::vector<Microbatch> RankTrainer::read_step(int64_t num_microbatches) const {
  const WorkSpan span(rank_.timeline, "read data");
  const MomentScope moment("read data");
  return loader_.step(position_.consumed_samples, num_microbatches);
}

void RankTrainer::count_tokens(const std::vector<Microbatch>& microbatches) {
  microbatch_tokens_.clear();
  for (const Microbatch& microbatch : microbatches)
    microbatch_tokens_.push_back(microbatch.trained_tokens);
  trained_tokens_ = scalar(local_tokens());
  rank_.group("dp").all_reduce(trained_tokens_).wait();
}

double RankTrainer::local_tokens() const {
  return static_cast<double>(
      std::accumulate(microbatch_tokens_.begin(), microbatch_tokens_.end(), int64_t{0}));
}

// Every micro batch is seeded with one over the unmasked tokens of the *global* batch: the loss is
// a mean over tokens, whatever the micro batches, the accumulation and the ranks. A batch without
// any has loss 0. The loss scale is part of the seed and divided out in the norm and the optimizer.
void RankTrainer::seed_losses(std::vector<Microbatch>& microbatches) const {
  const double scale = update_.loss_scale();
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
      microbatch.loss_seed = scalar(scale / (std::max(1.0, local_tokens()) * ranks)).squeeze(0);
  }
}

// Ranks without a head add nothing.
StepLoss RankTrainer::sum_loss() const {
  const at::Tensor loss = scalar(0.0);
  for (const Chunk& chunk : chunks_) loss.add_(chunk.loss_sum());
  if (!rank_.faults.has(Fault::kLossNotSummed)) rank_.group("dp-cp").all_reduce(loss).wait();
  return {.sum = loss.item<double>(),
          .trained_tokens = static_cast<int64_t>(trained_tokens_.item<double>()),
          .global_batch_size = global_batch_size(config_.batch, position_.consumed_samples)};
}

StepResult RankTrainer::apply_gradients() {
  if (!config_.pipeline.post_validation) return update_.take(sum_loss());
  apply_ahead();
  settle();
  return *take_settled();
}

void RankTrainer::apply_ahead() {
  update_.take_ahead(sum_loss());
}

void RankTrainer::settle() {
  if (update_.is_open()) settle_open_step();
}

bool RankTrainer::settle_open_step() {
  const OptimizerStep::Settled settled = update_.settle();
  settled_ = settled.result;
  return settled.stood;
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
