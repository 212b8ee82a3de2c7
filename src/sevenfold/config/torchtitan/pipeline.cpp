#include "sevenfold/config/rules/pipeline/selection.h"
#include "sevenfold/config/torchtitan/parts.h"
#include "sevenfold/config/torchtitan/stages.h"

namespace sevenfold::config {
namespace {

constexpr const char* kSchedule = "parallelism.pipeline_parallel_schedule";
constexpr const char* kCsv = "parallelism.pipeline_parallel_schedule_csv";
constexpr const char* kPp = "parallelism.pipeline_parallel_degree";

// What says how a step runs: an algorithm, or a table.
struct Choice {
  const Algorithm* algorithm = nullptr;
  std::optional<Schedule> table;
  std::string where;

  bool has_twins() const {
    return algorithm != nullptr && algorithm->placement == Placement::kBidirectional;
  }
  // Stages of a rank, least and most. TorchTitan gives schedules of several stages two at least.
  std::pair<int64_t, int64_t> limits() const {
    if (table)
      return {table->num_stages / table->num_ranks(), table->num_stages / table->num_ranks()};
    if (has_twins() || algorithm->max_chunks == 1) return {1, 1};
    return {algorithm->chooses ? 1 : 2, algorithm->max_chunks};
  }
};

// A table does what that of the sevenfold block does.
void use_csv(Draft& draft) {
  const Value& path = draft.own.at(kCsv);
  if (path.is_null() || path.text.empty()) return;
  SevenfoldBlock& block = draft.to.block;
  for (const char* key : {"schedule", "schedule_file"})
    if (block.written.find(key) != nullptr)
      raise_rule("schedule.one", "config: {}: {} is set too, and each names a schedule; keep one",
                 draft.own.where(kCsv), block.where(key));
  block.schedule_file = path.text;
  block.wheres["schedule_file"] = draft.own.where(kCsv);
}

Choice choose(Draft& draft) {
  const std::string name = draft.own.string(kSchedule);
  Choice choice{.algorithm = look_up_algorithm(name), .where = draft.own.where(kSchedule)};
  if (choice.algorithm == nullptr)
    raise_rule("schedule.name", "config: {}: no schedule is called so; {}", choice.where,
               algorithms_near(name));
  draft.set("pp_algorithm", Value::of(name), kSchedule);
  use_csv(draft);
  const SevenfoldBlock& block = draft.to.block;
  if (block.schedule_file) {
    choice = {.table = read_schedule_file(block), .where = block.where("schedule_file")};
  } else if (block.schedule) {
    choice.where = block.where("schedule");
    choice.algorithm = look_up_algorithm(*block.schedule);
    if (choice.algorithm == nullptr)
      raise_rule("schedule.name", "config: {}: no schedule is called so; {}", choice.where,
                 algorithms_near(*block.schedule));
  }
  return choice;
}

void check_stages(const Choice& choice, const StageSizes& stages, int64_t pp) {
  const auto num_stages = static_cast<int64_t>(stages.layers.size());
  if (num_stages % pp != 0)
    raise_rule("pipeline.stages", "config: {}: {} not a multiple of {}={}; use {} stages",
               stages.where,
               num_stages == 1 ? "1 stage is" : fmt::format("{} stages are", num_stages), kPp, pp,
               nearest_multiples(num_stages, pp));
  if (choice.table && choice.table->num_ranks() != pp)
    raise_rule("schedule.file", "config: {}: it is for {} ranks, and there are {}; use {}={}",
               choice.where, choice.table->num_ranks(), pp, kPp, choice.table->num_ranks());
  const auto [least, most] = choice.limits();
  const int64_t of_rank = num_stages / pp;
  if (least <= of_rank && of_rank <= most) return;
  const int64_t wanted = of_rank < least ? least : most;
  raise_rule("schedule.chunks",
             "config: {}: this schedule has {}{} stage{} per pipeline rank, and {} makes {}; make "
             "{} stages in all",
             choice.where, wanted,
             least == most     ? ""
             : of_rank < least ? " or more"
                               : " at most",
             wanted == 1 ? "" : "s", stages.where, of_rank, wanted * pp);
}

void warn_of_bubbles(Draft& draft, int64_t num_stages) {
  const int64_t micro = draft.to.parameters.integer("micro_batch_size");
  const int64_t num_microbatches = draft.own.integer("training.local_batch_size") / micro;
  if (num_microbatches < num_stages)
    draft.own.notice(
        fmt::format("{}: {} micro batches for {} stages: ranks stand idle much of the time",
                    draft.own.where("training.local_batch_size"), num_microbatches, num_stages));
}

}  // namespace

void translate_pipeline(Draft& draft, const Degrees& degrees) {
  const int64_t layers = draft.to.parameters.integer("num_layers");
  if (degrees.pp == 1) {
    // Nothing runs in stages, but a name that means nothing is wrong anyway.
    if (look_up_algorithm(draft.own.string(kSchedule)) == nullptr) choose(draft);
    return;
  }
  const Choice choice = choose(draft);
  const StageSizes stages = stage_sizes(draft.own, layers, degrees.pp * choice.limits().first);
  check_stages(choice, stages, degrees.pp);
  const auto num_stages = static_cast<int64_t>(stages.layers.size());
  draft.set("patch_primus_pipeline", Value::of(true), kSchedule);
  Value list;
  list.kind = ValueKind::kList;
  for (const int64_t size : stages.layers) list.list.push_back(Value::of(size));
  draft.set("decoder_pipeline_manual_split_list", std::move(list), stages.key);
  if (!choice.has_twins() && num_stages > degrees.pp)
    draft.set("num_virtual_stages_per_pipeline_rank", Value::of(num_stages / degrees.pp),
              stages.key);
  warn_of_bubbles(draft, num_stages);
}

}  // namespace sevenfold::config
