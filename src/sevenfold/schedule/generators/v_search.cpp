#include "sevenfold/schedule/generators/v_search.h"

#include <algorithm>
#include <random>

#include "sevenfold/core/error.h"
#include "sevenfold/schedule/search/lower_bound.h"

namespace sevenfold {
namespace {

constexpr int64_t kMaxDrawnSeeds = 150;
// Small problems are done with sooner: effort per pass of the problem, some thousand trials.
constexpr int64_t kEffortPerPass = 40'000;

// A block with offsets from 1 to 3 slots and an interval of 5.5 to 7.
VBlock drawn_block(int64_t num_ranks, std::mt19937_64& random) {
  const auto draw = [&](uint64_t count) { return static_cast<double>(random() % count); };
  VOffsets offsets;
  for (double& offset : offsets.forward) offset = 1 + draw(5) / 2;
  for (double& offset : offsets.backward) offset = 1 + draw(5) / 2;
  offsets.gaps[0] = 1 + draw(4);
  offsets.gaps[1] = 1 + draw(6);
  offsets.gaps[2] = 1 + draw(4);
  return v_block(num_ranks, offsets, 5.5 + draw(4) / 2);
}

double least_memory(const PassProblem& problem) {
  return peak_of(problem, sequential_order(problem));
}

}  // namespace

double usual_memory(const PassProblem& problem) {
  return std::max(static_cast<double>(problem.num_ranks), least_memory(problem));
}

void check_memory(const char* algorithm, const PassProblem& problem) {
  const double least = least_memory(problem);
  if (least <= problem.memory) return;
  raise<ConfigError>(
      "schedule: {} cannot hold less than {} activations, one micro batch at a time; the limit is "
      "{}",
      algorithm, least, problem.memory);
}

Schedule v_block_schedule(const char* algorithm, const ScheduleRequest& request,
                          const VBlock& block) {
  PassProblem problem(request, Placement::kVee, 2, true);
  const PassOrder seed = repeated(problem, block);
  problem.memory = peak_of(problem, seed);
  const double enough = lower_bound(problem, Objective::kMakespan);
  return to_schedule(
      problem, improved(problem, {seed}, Objective::kMakespan, {kBlockEffort, enough}), algorithm);
}

PassOrder v_search(const PassProblem& problem, Objective objective,
                   std::vector<PassOrder> more_seeds) {
  std::vector<PassOrder> seeds = std::move(more_seeds);
  const int64_t ranks = problem.num_ranks;
  for (const VBlock& block : {v_zb_block(ranks), v_half_block(ranks), v_min_block(ranks)})
    seeds.push_back(repeated(problem, block));
  seeds.push_back(sequential_order(problem));
  std::mt19937_64 random(1);
  const auto size = static_cast<int64_t>(problem.duration.size());
  const int64_t drawn = std::min(kMaxDrawnSeeds, kSearchEffort / (100 * size));
  for (int64_t i = 0; i < drawn; ++i)
    seeds.push_back(repeated(problem, drawn_block(ranks, random)));
  const int64_t effort = std::min(kSearchEffort, kEffortPerPass * size);
  return improved(problem, seeds, objective, {effort, lower_bound(problem, objective)});
}

}  // namespace sevenfold
