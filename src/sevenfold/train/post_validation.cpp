#include "sevenfold/train/post_validation.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

// The ranks of the world that form this rank's group, in its order.
std::vector<int64_t> members_of(const RankContext& rank, const std::string& group) {
  if (group == "world") {
    std::vector<int64_t> all(static_cast<size_t>(rank.mesh->world_size()));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  for (const auto& [name, groups] : rank.mesh->standard_groups()) {
    if (name != group) continue;
    for (const RankGroup& one : groups)
      if (std::find(one.ranks.begin(), one.ranks.end(), rank.rank) != one.ranks.end())
        return one.ranks;
  }
  raise<InternalError>("rank {} is in no group {}", rank.rank, group);
}

// Of a state: a square sum for each rank of the world, then these counts and the loss. Each adds up
// over stages, in their order.
enum Place : int64_t { kNotFinite, kLoss, kWaits, kNumPlaces };

at::Tensor new_state(int64_t world) {
  const MemoryScope scope(MemoryCategory::kCommunication);
  return at::zeros({world + kNumPlaces}, at::TensorOptions().dtype(at::kDouble));
}

}  // namespace

PostValidation::PostValidation(RankContext& rank, const std::string& norm_group)
    : rank_(rank), norm_ranks_(members_of(rank, norm_group)) {}

PipelineState PostValidation::begin(double squares, double loss_sum) {
  const int64_t world = rank_.mesh->world_size();
  partial_ = new_state(world);
  auto* values = partial_.data_ptr<double>();
  values[rank_.rank] = squares;
  values[world + kNotFinite] = std::isfinite(squares) && std::isfinite(loss_sum) ? 0.0 : 1.0;
  // The ranks of a stage count apart; the loss they know already.
  rank_.group("tp-dp-cp").all_reduce(partial_.narrow(0, 0, world + kNotFinite + 1)).wait();
  values[world + kLoss] = loss_sum;
  Communicator& pipeline = rank_.group("pp");
  if (pipeline.rank() > 0) {
    const at::Tensor before = new_state(world);
    pipeline.exchange({}, {{pipeline.rank() - 1, before}}).wait();
    partial_ = before.add_(partial_);
  }
  return read(partial_);
}

void PostValidation::pass_on(bool steps) {
  Communicator& pipeline = rank_.group("pp");
  const int64_t last = pipeline.size() - 1;
  if (!steps) partial_.data_ptr<double>()[rank_.mesh->world_size() + kWaits] += 1.0;
  if (pipeline.rank() < last)
    passing_on_ = pipeline.exchange({{pipeline.rank() + 1, partial_}}, {});
  full_ = pipeline.rank() == last ? partial_ : new_state(rank_.mesh->world_size());
  coming_back_ = pipeline.broadcast(full_, last);
}

PipelineState PostValidation::finish() {
  passing_on_.wait();
  coming_back_.wait();
  PipelineState state = read(full_);
  if (rank_.faults.has(Fault::kPartialNormForFull))
    state.gradient_norm = read(partial_).gradient_norm;
  partial_ = full_ = at::Tensor();
  return state;
}

PipelineState PostValidation::read(const at::Tensor& state) const {
  const auto* values = state.data_ptr<double>();
  const auto* rest = values + rank_.mesh->world_size();
  double squares = 0.0;
  for (const int64_t rank : norm_ranks_) squares += values[rank];
  return {.loss_sum = rest[kLoss],
          .gradient_norm = std::sqrt(squares),
          .is_finite = rest[kNotFinite] == 0.0,
          .has_all_stepped = rest[kWaits] == 0.0};
}

}  // namespace sevenfold
