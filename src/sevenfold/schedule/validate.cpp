#include "sevenfold/schedule/validate.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "sevenfold/schedule/communication.h"
#include "sevenfold/schedule/replay.h"
#include "sevenfold/schedule/simulate.h"

namespace sevenfold {
namespace {

using Fault = std::optional<std::string>;

// What has been seen of one stage and micro batch. (In a bidirectional schedule a stage lies on two
// ranks, but each micro batch meets it on one of them.)
struct Seen {
  bool forward = false;
  bool backward_input = false;
  bool backward_weight = false;
};

std::string place_text(int64_t rank, size_t position) {
  return fmt::format("rank {}, row {}", rank, position);
}

Fault fault_of_shape(const Schedule& schedule) {
  const int64_t ranks = schedule.num_ranks();
  const int64_t stages = schedule.num_stages;
  if (ranks < 1) return "it has no ranks";
  if (schedule.num_microbatches < 1)
    return fmt::format("it has {} micro batches", schedule.num_microbatches);
  const bool fits = schedule.placement == Placement::kLoop  ? stages >= ranks && stages % ranks == 0
                    : schedule.placement == Placement::kVee ? stages == 2 * ranks
                                                            : stages == ranks;
  if (fits) return std::nullopt;
  return fmt::format("{} stages do not lie on {} ranks in the {} placement", stages, ranks,
                     placement_name(schedule.placement));
}

Fault fault_of_place(const Schedule& schedule, int64_t rank, const Pass& pass) {
  if (pass.stage < 0 || pass.stage >= schedule.num_stages)
    return fmt::format("there are {} stages", schedule.num_stages);
  if (pass.microbatch < 0 || pass.microbatch >= schedule.num_microbatches)
    return fmt::format("there are {} micro batches", schedule.num_microbatches);
  const bool both_ways = schedule.placement == Placement::kBidirectional;
  const int64_t flow = both_ways && pass.microbatch >= schedule.num_microbatches / 2 ? 1 : 0;
  if (pass.flow != flow) return fmt::format("the micro batch belongs to flow {}", flow);
  const StageSite site = site_of(schedule.placement, schedule.num_ranks(), pass.stage, flow);
  if (site.rank != rank || site.chunk != pass.chunk)
    return fmt::format("the stage is chunk {} of rank {} in the {} placement", site.chunk,
                       site.rank, placement_name(schedule.placement));
  return std::nullopt;
}

// Marks the pass; a fault if it comes twice or before what it follows on its own rank.
Fault mark(Seen& seen, Op op) {
  const auto first_time = [](bool& flag) { return !std::exchange(flag, true); };
  switch (op) {
    case Op::kForward:
      return first_time(seen.forward) ? Fault() : "its forward ran before";
    case Op::kBackwardWeight:
      if (!seen.backward_input) return "its B has not run";
      return first_time(seen.backward_weight) ? Fault() : "its weight gradient was made before";
    default:
      break;
  }
  if (!seen.forward) return "its F has not run";
  if (!first_time(seen.backward_input)) return "its backward ran before";
  if (op == Op::kBackward) seen.backward_weight = true;
  return std::nullopt;
}

Fault fault_of_rows(const Schedule& schedule) {
  std::vector<Seen> seen(static_cast<size_t>(schedule.num_stages * schedule.num_microbatches));
  const auto seen_of = [&](int64_t stage, int64_t microbatch) -> Seen& {
    return seen[static_cast<size_t>(stage * schedule.num_microbatches + microbatch)];
  };
  for (int64_t rank = 0; rank < schedule.num_ranks(); ++rank) {
    const std::vector<Row>& rows = schedule.rows[static_cast<size_t>(rank)];
    for (size_t position = 0; position < rows.size(); ++position)
      for (const Pass& pass : passes_of(rows[position])) {
        Fault fault = fault_of_place(schedule, rank, pass);
        if (!fault) fault = mark(seen_of(pass.stage, pass.microbatch), pass.op);
        if (fault)
          return fmt::format("{}: {}: {}", place_text(rank, position), describe(pass), *fault);
      }
  }
  for (int64_t stage = 0; stage < schedule.num_stages; ++stage)
    for (int64_t microbatch = 0; microbatch < schedule.num_microbatches; ++microbatch) {
      const Seen& one = seen_of(stage, microbatch);
      if (one.forward && one.backward_input && one.backward_weight) continue;
      return fmt::format("{} of stage {} and micro batch {} is nowhere",
                         !one.forward          ? "F"
                         : !one.backward_input ? "B or BW"
                                               : "W",
                         stage, microbatch);
    }
  return std::nullopt;
}

Fault fault_of_liveness(const Schedule& schedule) {
  const Replay run = replay(schedule, {});
  if (run.stuck.empty()) return find_deadlock(schedule, actions_of(schedule));
  std::string text = "ranks wait for each other: ";
  for (const StuckRank& stuck : run.stuck) {
    const Row& row = schedule.rows[static_cast<size_t>(stuck.place.rank)][stuck.place.position];
    text += fmt::format("{}rank {} before {} for {}", &stuck == run.stuck.data() ? "" : "; ",
                        stuck.place.rank, describe(row), describe(stuck.missing));
  }
  return text;
}

}  // namespace

Fault find_fault(const Schedule& schedule) {
  Fault fault = fault_of_shape(schedule);
  if (!fault) fault = fault_of_rows(schedule);
  if (!fault) fault = fault_of_liveness(schedule);
  return fault;
}

Fault find_excess(const Schedule& schedule, const ScheduleCosts& costs, double max_memory) {
  const std::vector<PassCosts> stages =
      stage_costs(costs, schedule.num_ranks(), schedule.num_stages);
  for (int64_t rank = 0; rank < schedule.num_ranks(); ++rank) {
    const double peak =
        peak_activation(schedule.rows[static_cast<size_t>(rank)], stages, costs.weight_memory);
    if (peak > max_memory * (1 + 1e-12))
      return fmt::format("rank {} holds {} activation{} at once, the limit is {}", rank, peak,
                         peak == 1 ? "" : "s", max_memory);
  }
  return std::nullopt;
}

}  // namespace sevenfold
