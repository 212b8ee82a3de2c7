#include "sevenfold/schedule/search/problem.h"

#include <algorithm>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

constexpr Op kKinds[] = {Op::kForward, Op::kBackwardInput, Op::kBackwardWeight};

size_t at(PassId pass) {
  return static_cast<size_t>(pass);
}

// Passes of one micro batch in the order in which each needs the one before it.
std::vector<PassId> chain_of(const PassProblem& problem, int64_t microbatch) {
  std::vector<PassId> chain;
  for (int64_t stage = 0; stage < problem.num_stages; ++stage)
    chain.push_back(problem.id(Op::kForward, stage, microbatch));
  for (int64_t stage = problem.num_stages - 1; stage >= 0; --stage)
    chain.push_back(problem.id(Op::kBackwardInput, stage, microbatch));
  return chain;
}

void link(PassProblem& problem, PassId first, PassId second, double hop) {
  problem.before[at(second)] = first;
  problem.after[at(first)] = second;
  problem.hop[at(second)] = hop;
}

void link_microbatch(PassProblem& problem, int64_t microbatch, double link_time) {
  const std::vector<PassId> chain = chain_of(problem, microbatch);
  for (size_t i = 1; i < chain.size(); ++i) {
    const bool crosses = problem.rank[at(chain[i - 1])] != problem.rank[at(chain[i])];
    link(problem, chain[i - 1], chain[i], crosses ? link_time : 0);
  }
  if (!problem.splits_backward) return;
  for (int64_t stage = 0; stage < problem.num_stages; ++stage) {
    const PassId input = problem.id(Op::kBackwardInput, stage, microbatch);
    const PassId weight = problem.id(Op::kBackwardWeight, stage, microbatch);
    problem.before[at(weight)] = input;
    problem.also_after[at(input)] = weight;
  }
}

}  // namespace

PassProblem::PassProblem(const ScheduleRequest& request, Placement where, int64_t num_chunks,
                         bool splits)
    : placement(where),
      num_ranks(request.num_ranks),
      num_stages(request.num_ranks * num_chunks),
      num_microbatches(request.num_microbatches),
      splits_backward(splits),
      memory(request.max_memory) {
  const std::vector<PassCosts> stages = stage_costs(request.costs, num_ranks, num_stages);
  const auto count = static_cast<size_t>((splits ? 3 : 2) * num_stages * num_microbatches);
  const double kept = request.costs.weight_memory;
  before = after = also_before = also_after = std::vector<PassId>(count, kNoPass);
  rank.resize(count);
  hop.resize(count);
  taken.resize(count);
  freed.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const Pass one = pass(static_cast<PassId>(i));
    const PassCosts& stage = stages[static_cast<size_t>(one.stage)];
    duration.push_back(pass_time(one.op, stage));
    rank[i] = static_cast<int32_t>(site_of(placement, num_ranks, one.stage, 0).rank);
    if (one.op == Op::kForward) taken[i] = stage.activation;
    if (one.op == Op::kBackward) freed[i] = stage.activation;
    if (one.op == Op::kBackwardInput) freed[i] = stage.activation * (1 - kept);
    if (one.op == Op::kBackwardWeight) freed[i] = stage.activation * kept;
  }
  for (int64_t m = 0; m < num_microbatches; ++m) link_microbatch(*this, m, request.costs.link);
}

PassProblem PassProblem::mirrored() const {
  PassProblem mirror = *this;
  const auto count = static_cast<PassId>(duration.size());
  mirror.before = mirror.after = mirror.also_before = mirror.also_after =
      std::vector<PassId>(duration.size(), kNoPass);
  std::fill(mirror.hop.begin(), mirror.hop.end(), 0.0);
  std::swap(mirror.taken, mirror.freed);
  for (PassId pass = 0; pass < count; ++pass) {
    if (before[at(pass)] == kNoPass) continue;
    if (kind(pass) != 2) {
      link(mirror, pass, before[at(pass)], hop[at(pass)]);
    } else {
      mirror.after[at(pass)] = before[at(pass)];
      mirror.also_before[at(before[at(pass)])] = pass;
    }
  }
  return mirror;
}

PassId PassProblem::id(Op op, int64_t stage, int64_t microbatch) const {
  const int64_t index = op == Op::kForward ? 0 : op == Op::kBackwardWeight ? 2 : 1;
  return static_cast<PassId>((index * num_stages + stage) * num_microbatches + microbatch);
}

Pass PassProblem::pass(PassId id) const {
  const int64_t row = id / num_microbatches;
  Pass result;
  result.op = kKinds[row / num_stages];
  if (result.op == Op::kBackwardInput && !splits_backward) result.op = Op::kBackward;
  result.stage = row % num_stages;
  result.chunk = site_of(placement, num_ranks, result.stage, 0).chunk;
  result.microbatch = id % num_microbatches;
  return result;
}

PassOrder sequential_order(const PassProblem& problem) {
  PassOrder order(static_cast<size_t>(problem.num_ranks));
  for (int64_t m = 0; m < problem.num_microbatches; ++m)
    for (const PassId pass : chain_of(problem, m)) {
      std::vector<PassId>& list = order[static_cast<size_t>(problem.rank[at(pass)])];
      list.push_back(pass);
      const PassId weight = problem.also_after[at(pass)];
      if (weight != kNoPass) list.push_back(weight);
    }
  return order;
}

PassOrder reversed(PassOrder order) {
  for (std::vector<PassId>& list : order) std::reverse(list.begin(), list.end());
  return order;
}

PassOrder numbered(const PassProblem& problem, const PassOrder& order, const PassProblem& target) {
  const int64_t given = problem.num_microbatches;
  std::vector<int64_t> seen(problem.duration.size() / static_cast<size_t>(given), 0);
  PassOrder result;
  for (const std::vector<PassId>& list : order) {
    result.emplace_back();
    for (const PassId pass : list) {
      const int64_t step = pass / given;  // kind and stage
      const int64_t microbatch = seen[static_cast<size_t>(step)]++;
      result.back().push_back(static_cast<PassId>(step * target.num_microbatches + microbatch));
    }
  }
  return result;
}

Schedule to_schedule(const PassProblem& problem, const PassOrder& order, const char* algorithm) {
  Schedule schedule;
  schedule.algorithm = algorithm;
  schedule.num_stages = problem.num_stages;
  schedule.num_microbatches = problem.num_microbatches;
  schedule.placement = problem.placement;
  for (const std::vector<PassId>& list : numbered(problem, order, problem)) {
    std::vector<Row> rows;
    for (const PassId id : list) {
      const Pass pass = problem.pass(id);
      rows.push_back(
          {.op = pass.op, .stage = pass.stage, .chunk = pass.chunk, .microbatch = pass.microbatch});
    }
    schedule.rows.push_back(std::move(rows));
  }
  return schedule;
}

PassOrder to_order(const PassProblem& problem, const Schedule& schedule) {
  SEVENFOLD_CHECK(schedule.num_stages == problem.num_stages &&
                  schedule.placement == problem.placement);
  PassOrder order;
  for (const std::vector<Row>& rows : schedule.rows) {
    std::vector<PassId> list;
    for (const Row& row : rows) list.push_back(problem.id(row.op, row.stage, row.microbatch));
    order.push_back(std::move(list));
  }
  return order;
}

}  // namespace sevenfold
