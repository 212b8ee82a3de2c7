// The evaluations of RankTrainer.

#include <ATen/ATen.h>

#include <algorithm>

#include "sevenfold/core/error.h"
#include "sevenfold/dist/timeline.h"
#include "sevenfold/train/rank_trainer.h"
#include "sevenfold/train/token_loss.h"

namespace sevenfold {

// As Megatron: one stream of validation samples runs through training.
ValidationResult RankTrainer::validate(const SampleSource& data) {
  if (config_.run.full_validation) return evaluate(data, {.num_samples = data.num_samples()});
  return evaluate(data, {.first = position_.consumed_valid_samples,
                         .num_samples = config_.run.eval_iters * config_.batch.global_batch_size});
}

void RankTrainer::pass_validation() {
  if (config_.run.full_validation) return;
  position_.consumed_valid_samples += config_.run.eval_iters * config_.batch.global_batch_size;
}

ValidationResult RankTrainer::evaluate(const SampleSource& data, const EvaluationRange& range) {
  SEVENFOLD_CHECK(range.num_samples > 0, "an evaluation without samples");
  SEVENFOLD_CHECK(!update_.is_open(), "an evaluation of weights that may be taken back");
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
  weights_.free_all();  // of twins only one runs: a table that its other end reads is left whole
  const at::Tensor over_stages = sum.reshape({1}).clone();
  rank_.group("pp").all_reduce(over_stages).wait();
  const TokenLoss loss =
      TokenLoss{over_stages.item<double>(), tokens}.over(rank_.group("dp-cp"), rank_.group("dp"));
  const at::Tensor read = at::full({1}, samples, at::TensorOptions().dtype(at::kDouble));
  rank_.group("dp").all_reduce(read).wait();
  return {.loss = loss.mean(),
          .trained_tokens = static_cast<int64_t>(loss.tokens),
          .samples = static_cast<int64_t>(read.item<double>())};
}

}  // namespace sevenfold
