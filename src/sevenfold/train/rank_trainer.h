#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sevenfold/checkpoint/checkpoint.h"
#include "sevenfold/checkpoint/save.h"
#include "sevenfold/config/config.h"
#include "sevenfold/dist/rank_context.h"
#include "sevenfold/model/model.h"
#include "sevenfold/optim/optimizer.h"
#include "sevenfold/parallel/data/gradient_reducer.h"
#include "sevenfold/parallel/data/layer_weights.h"
#include "sevenfold/param/flat_storage.h"
#include "sevenfold/param/start_values.h"
#include "sevenfold/pipeline/chunk.h"
#include "sevenfold/pipeline/executor.h"
#include "sevenfold/pipeline/tables.h"
#include "sevenfold/train/batch_loader.h"
#include "sevenfold/train/optimizer_step.h"
#include "sevenfold/train/run_position.h"
#include "sevenfold/train/step_result.h"

namespace sevenfold {

// Places of an evaluation in the stream of validation samples.
struct EvaluationRange {
  int64_t first = 0;
  int64_t num_samples = 0;
};

struct ValidationResult {
  // Mean over the unmasked tokens of the samples read; depends on neither batches nor layout.
  double loss = 0.0;
  int64_t trained_tokens = 0;
  int64_t samples = 0;  // read by all ranks together
};

// What of a checkpoint a run begins from, beside weights.
struct RestoreOptions {
  bool states = true;  // of the optimizer
  bool run = true;     // the counts: the run goes on from its step
};

// One rank's part of a training run: model, gradients, optimizer and data. The trainer of the
// simulated cluster, of `verify` and of the tests is this one.
class RankTrainer {
 public:
  // config, data and rank outlive the trainer. All ranks read one stream. tables: of config, what
  // ranks of one process share; null: the trainer makes its own. Collective over all ranks.
  RankTrainer(const Config& config, const SampleStream& data, RankContext& rank,
              std::shared_ptr<const PipelineTables> tables = nullptr);

  // The training step after position(). Same report on every rank.
  StepResult step();

  // The halves of step(): gradients of the global batch on the ranks that own them (times the loss
  // scale), then norm, clipping, optimizer and the gathering of weights. Where loss or norm are not
  // finite on any rank, all leave the weights as they are: the step is skipped, or throws Error if
  // the run checks for that (never with dynamic loss scaling, whose overflows are expected).
  void compute_gradients();
  StepResult apply_gradients();

  // With post validation instead of apply_gradients(), the same bits without waiting for later
  // pipeline stages: OptimizerStep::take_ahead. The step stays open until the next
  // compute_gradients(), whose first forwards run before, or settle(); what it did is then in
  // take_settled(). No evaluation while a step is open.
  void apply_ahead();
  void settle();
  // Of the step that was settled since the last call; nothing if none was.
  std::optional<StepResult> take_settled() { return std::exchange(settled_, std::nullopt); }

  // An open step counts; should it be skipped, stepped_samples goes back.
  const RunPosition& position() const { return position_; }

  // One evaluation of the run: eval_iters global batches, or all samples with full_validation.
  ValidationResult validate(const SampleSource& data);
  // The next one reads the batches behind these. Follows each validation of the schedule, also one
  // that was left out, and no other: so all runs to a step have the same next one.
  void pass_validation();
  // Loss over the places first .. first + num_samples - 1 of the stream that the experiment's
  // loader reads from `data`, each read once by one dp rank. The last micro batch may be short, and
  // no rank waits for another. Collective; the same on all ranks.
  ValidationResult evaluate(const SampleSource& data, const EvaluationRange& range);

  // For a checkpoint: the elements that this rank writes, so that all ranks together write each
  // element once, and where the run stands. Views: the next step changes them. No step is open.
  std::vector<TensorPart> saved_parts(bool with_states) const;
  RunState run_state() const { return update_.run_state(); }
  // Before the first step. Collective. Throws DataError where the checkpoint lacks something.
  void restore(const Checkpoint& checkpoint, const RestoreOptions& options = {});

  const std::vector<Parameter*>& parameters() const { return parameters_; }
  // Unmasked tokens of each micro batch of the last step, on this rank.
  const std::vector<int64_t>& microbatch_tokens() const { return microbatch_tokens_; }
  const Optimizer& optimizer() const { return update_.optimizer(); }
  // Of this rank.
  int64_t parameter_bytes() const;
  // Logical parameters of all ranks together, counted where they lie. Collective.
  int64_t count_parameters() const;
  // What this rank did in the last step.
  const Execution& execution() const { return execution_; }
  const std::vector<Bucket>& buckets() const { return buckets_; }
  LayerWeights& weights() { return weights_; }
  // Whether each data-parallel rank owns a shard of what steps are taken on (ZeRO), not a copy.
  bool is_sharded() const { return config_.parallel.zero != ZeroStage::kNone; }

 private:
  std::vector<Microbatch> read_step(int64_t num_microbatches) const;
  // Over the dp ranks. Collective.
  void count_tokens(const std::vector<Microbatch>& microbatches);
  double local_tokens() const;
  void seed_losses(std::vector<Microbatch>& microbatches) const;
  void begin_step(std::vector<Microbatch>& microbatches);
  bool settle_open_step();
  void start_weights();
  void start_weight(const Parameter& parameter, const StartOptions& options);
  void restore_weight(const Parameter& parameter, const Checkpoint& checkpoint);
  void restore_states(const Parameter& parameter, const Checkpoint& checkpoint);
  Piece owned_piece(const Parameter& parameter) const;
  // Collective over the dp and cp ranks.
  StepLoss sum_loss() const;
  PipelineRank pipeline_rank();

  const Config& config_;
  RankContext& rank_;
  at::ScalarType dtype_;
  std::shared_ptr<const PipelineTables> tables_;
  RankStages stages_;
  std::vector<ModelPart> parts_;        // of stages_
  std::vector<Parameter*> parameters_;  // in model order
  std::vector<Bucket> buckets_;
  LayerWeights weights_;
  GradientReducer reducer_;
  std::deque<Chunk> chunks_;  // by the schedule's number
  Execution execution_;
  BatchLoader loader_;
  RunPosition position_;
  OptimizerStep update_;
  std::optional<StepResult> settled_;
  at::Tensor trained_tokens_;  // of the global batch, fp64 scalar
  std::vector<int64_t> microbatch_tokens_;
};

at::ScalarType model_dtype(Precision precision);

}  // namespace sevenfold
