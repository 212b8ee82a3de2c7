#include <ATen/ATen.h>

#include <algorithm>

#include "sevenfold/core/error.h"
#include "sevenfold/optim/update_kernels.h"
#include "sevenfold/train/rank_trainer.h"

// What a RankTrainer puts into checkpoints and takes out of them.

namespace sevenfold {
namespace {

// It is the weight that steps are taken on, and is written as that.
constexpr std::string_view kMasterWeight = "master_weight";

// The ranks that own the same elements of everything; of one rank where each owns others.
std::string group_of_copies(const Config& config, const RankContext& rank) {
  if (config.parallel.zero == ZeroStage::kNone) return "dp-cp";
  return rank.mesh->shape().dp_replicate > 1 ? "dp-replicate" : "";
}

// Each of the owners writes a run of what all hold.
ElementRange run_to_write(int64_t elements, const Communicator* copies) {
  if (copies == nullptr) return {0, elements};
  return {elements * copies->rank() / copies->size(),
          elements * (copies->rank() + 1) / copies->size()};
}

float largest(const at::Tensor& values) {
  return values.numel() == 0 ? 0.0F : values.abs().max().item<float>();
}

}  // namespace

Piece RankTrainer::owned_piece(const Parameter& parameter) const {
  return {local_slice(parameter.spec(), *rank_.mesh, rank_.coordinates), parameter.owned()};
}

std::vector<TensorPart> RankTrainer::saved_parts(bool with_states) const {
  SEVENFOLD_CHECK(!update_.is_open(), "a step is open");
  const std::string group = group_of_copies(config_, rank_);
  const Communicator* copies = group.empty() ? nullptr : &rank_.group(group);
  std::vector<TensorPart> parts;
  for (const Parameter* parameter : parameters_) {
    if (!counts_in_norm(parameter->spec(), *rank_.mesh, rank_.coordinates)) continue;
    const ElementRange run = run_to_write(parameter->owned().size(), copies);
    const auto add = [&](std::string name, const at::Tensor& owned, std::optional<float> unit) {
      Piece piece = owned_piece(*parameter);
      piece.range = {piece.range.begin + run.begin, piece.range.begin + run.end};
      parts.push_back({.name = std::move(name),
                       .shape = parameter->spec().global_shape,
                       .piece = std::move(piece),
                       .values = owned.narrow(0, run.begin, run.size()),
                       .unit = unit});
    };
    add(parameter->name(), optimizer().full_weight(*parameter), {});
    if (!with_states) continue;
    for (const OptimizerState& state : optimizer().states(*parameter)) {
      if (state.name == kMasterWeight) continue;
      add(state_name(parameter->name(), state.name), state.tensor,
          state.unit == nullptr ? std::nullopt : std::optional(*state.unit));
    }
  }
  return parts;
}

void RankTrainer::restore(const Checkpoint& checkpoint, const RestoreOptions& options) {
  for (const Parameter* parameter : parameters_) {
    restore_weight(*parameter, checkpoint);
    if (options.states && !rank_.faults.has(Fault::kRestoredStatesDropped))
      restore_states(*parameter, checkpoint);
  }
  if (options.run) {
    RunState run = checkpoint.index().run;
    if (!options.states) run.optimizer_steps = 0;  // states that are new correct their bias anew
    update_.go_on_from(run);
  }
  weights_.stepped();
}

void RankTrainer::restore_weight(const Parameter& parameter, const Checkpoint& checkpoint) {
  const at::Tensor stepped = optimizer().full_weight(parameter);
  Piece piece = owned_piece(parameter);
  if (rank_.faults.has(Fault::kRestoredShardMisplaced)) piece.range = {0, piece.size()};
  checkpoint.read({parameter.name(), parameter.spec().global_shape, piece, stepped});
  if (parameter.weight_type() != stepped.scalar_type())
    parameter.owned_weight().copy_(stepped);  // rounded
}

void RankTrainer::restore_states(const Parameter& parameter, const Checkpoint& checkpoint) {
  const Piece piece = owned_piece(parameter);
  const auto read = [&](std::string_view name, const at::Tensor& values) {
    return checkpoint.read(
        {state_name(parameter.name(), name), parameter.spec().global_shape, piece, values});
  };
  for (const OptimizerState& state : optimizer().states(parameter)) {
    if (state.name == kMasterWeight) continue;
    if (state.unit == nullptr) {
      read(state.name, state.tensor);
      continue;
    }
    const at::Tensor values = at::empty(state.tensor.sizes(), at::kFloat);
    const auto unit = read(state.name, values);
    *state.unit = unit ? *unit : fp16_unit(largest(values));
    state.tensor.copy_(values / *state.unit);
  }
}

}  // namespace sevenfold
