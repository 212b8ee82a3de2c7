#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sevenfold/checkpoint/index.h"
#include "sevenfold/config/config.h"
#include "sevenfold/dist/rank_context.h"
#include "sevenfold/optim/optimizer.h"
#include "sevenfold/optim/step_copies.h"
#include "sevenfold/parallel/data/layer_weights.h"
#include "sevenfold/param/flat_storage.h"
#include "sevenfold/train/loss_scale.h"
#include "sevenfold/train/post_validation.h"
#include "sevenfold/train/run_position.h"
#include "sevenfold/train/step_result.h"

namespace sevenfold {

// What follows from the gradients of a step, on one rank: norm, clipping, the optimizer, the loss
// scale and the position of the run. Two forms that give the same bits:
//
//   take        all ranks learn loss and norm first: nobody steps before the last backward pass of
//               the slowest pipeline stage
//   take_ahead  each rank steps at once where the stages up to its own neither clip nor overflow,
//               after copying what the step changes (StepCopies). settle(), later, learns the
//               figures of all stages (PostValidation); if they clip or overflow after all, it
//               restores the copies and takes or skips the step as `take` would have.
//
// In between, weights, loss scale and position are those of a step that stands.
class OptimizerStep {
 public:
  // Everything outlives the object. parameters: in model order; weights: of `buckets`.
  OptimizerStep(const Config& config, RankContext& rank, const std::vector<Parameter*>& parameters,
                std::vector<Bucket>& buckets, LayerWeights& weights, RunPosition& position);

  const Optimizer& optimizer() const { return *optimizer_; }
  double loss_scale() const { return loss_scale_.value(); }

  // The counts that the next step depends on, of position and loss scale too. No step is open.
  RunState run_state() const;
  // Goes on from there, once weights and states are those of that run.
  void go_on_from(const RunState& run);

  // Gradients are summed over the ranks that share them. Collective over all ranks. Throws Error if
  // loss or norm are not finite and the run checks for that; the weights are then as before.
  StepResult take(const StepLoss& loss);

  // Collective over the ranks of the stage; needs post validation in the configuration. Gradients
  // stay as they are until settle().
  void take_ahead(const StepLoss& loss);
  bool is_open() const { return open_.has_value(); }
  struct Settled {
    StepResult result;
    bool stood = true;  // the call has changed no weights, on any rank
  };
  // Ends the step of take_ahead(). Collective over all ranks; throws as take().
  Settled settle();

 private:
  // A step that may be taken back, and where it began.
  struct OpenStep {
    StepResult result;
    bool is_taken = false;  // on this rank
    LossScale loss_scale;
    RunPosition position;
  };

  StepResult result_of(const StepLoss& loss) const;
  // Loss, norm and clip factor of the state; whether they are finite on all ranks.
  bool fill(StepResult& result, const PipelineState& state) const;
  std::vector<Parameter*> norm_parameters() const;
  // Over which figures of owned elements are summed.
  std::string norm_group() const;
  void sum_late() const;
  // Whether loss and norm are finite on all ranks; where only others' are not, the norm becomes
  // infinite. Collective.
  bool agree_whether_finite(StepResult& result) const;
  void check_finite(const StepResult& result, bool is_finite) const;
  void conclude(StepResult& result, bool is_finite);
  void advance(const StepResult& result, bool overflowed);
  void step_optimizer(const StepResult& result);
  void take_back(const OpenStep& open);
  bool is_sharded() const { return config_.parallel.zero != ZeroStage::kNone; }

  const Config& config_;
  RankContext& rank_;
  const std::vector<Parameter*>& parameters_;
  std::vector<Bucket>& buckets_;
  LayerWeights& weights_;
  RunPosition& position_;
  std::unique_ptr<Optimizer> optimizer_;
  LossScale loss_scale_;
  // With post validation.
  std::optional<StepCopies> copies_;
  std::optional<PostValidation> validation_;
  std::optional<OpenStep> open_;
};

}  // namespace sevenfold
