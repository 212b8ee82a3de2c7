#include "sevenfold/cli/schedule/figures.h"

#include <fmt/format.h>

#include "sevenfold/schedule/render/words.h"

namespace sevenfold::cli {
namespace {

using json = nlohmann::ordered_json;

json operation_json(const Row& row, const RowSpan& span) {
  json operation = {{"op", op_name(row.op)}, {"stage", row.stage},
                    {"chunk", row.chunk},    {"microbatch", row.microbatch},
                    {"flow", row.flow},      {"start", span.start},
                    {"end", span.end}};
  if (row.op == Op::kForwardBackward)
    operation["backward"] = {{"stage", row.backward.stage},
                             {"chunk", row.backward.chunk},
                             {"microbatch", row.backward.microbatch},
                             {"flow", row.backward.flow}};
  return operation;
}

}  // namespace

json figures_json(const MeasuredSchedule& one) {
  const Simulation& figures = one.simulation;
  return {{"algorithm", one.schedule.algorithm},
          {"placement", placement_name(one.schedule.placement)},
          {"stages", one.schedule.num_ranks()},
          {"chunks", one.schedule.num_chunks()},
          {"microbatches", one.schedule.num_microbatches},
          {"weight_copies", one.schedule.num_copies()},
          {"makespan", figures.makespan},
          {"longest", figures.longest},
          {"bubble_rate", figures.bubble_rate()},
          {"bubble_rate_longest", figures.bubble_rate_longest()},
          {"busy", figures.busy},
          {"peak_activation_memory", figures.peak_activation}};
}

json schedule_json(const MeasuredSchedule& one) {
  json document = figures_json(one);
  json& ranks = document["operations"] = json::array();
  for (size_t rank = 0; rank < one.schedule.rows.size(); ++rank) {
    json list = json::array();
    for (size_t i = 0; i < one.schedule.rows[rank].size(); ++i)
      list.push_back(operation_json(one.schedule.rows[rank][i], one.simulation.spans[rank][i]));
    ranks.push_back(std::move(list));
  }
  return document;
}

void print_figures(const MeasuredSchedule& one) {
  const Simulation& figures = one.simulation;
  const Schedule& schedule = one.schedule;
  fmt::print("{}: {}, {}, {} ({} placement{})\n", schedule.algorithm,
             counted(schedule.num_ranks(), "rank", "ranks"),
             counted(schedule.num_microbatches, "micro batch", "micro batches"),
             counted(schedule.num_stages, "stage", "stages"), placement_name(schedule.placement),
             schedule.num_copies() == 2 ? ", two copies of the weights" : "");
  fmt::print("makespan     {:g}   bubble {:.2f}%   (a step with a barrier)\n", figures.makespan,
             100 * figures.bubble_rate());
  fmt::print("longest rank {:g}   bubble {:.2f}%   (an optimizer step without one)\n",
             figures.longest, 100 * figures.bubble_rate_longest());
  const double most = figures.max_peak_activation();
  fmt::print("peak memory  {:g} micro batch{} of one rank's layers; per rank:", most,
             most == 1 ? "" : "es");
  for (const double peak : figures.peak_activation) fmt::print(" {:g}", peak);
  fmt::print("\n");
}

}  // namespace sevenfold::cli
