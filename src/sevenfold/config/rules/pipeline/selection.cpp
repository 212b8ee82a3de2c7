#include "sevenfold/config/rules/pipeline/selection.h"

#include <fstream>

#include "sevenfold/config/rules/pipeline/cut.h"
#include "sevenfold/config/rules/rules.h"
#include "sevenfold/schedule/csv.h"

namespace sevenfold::config {
namespace {

constexpr const char* kChunks = "num_virtual_stages_per_pipeline_rank";

const Algorithm* named(const std::string& name, const std::string& where) {
  const Algorithm* algorithm = look_up_algorithm(name);
  if (algorithm == nullptr)
    raise_rule("schedule.name", "config: {}: no schedule is called so; {}", where,
               algorithms_near(name));
  return algorithm;
}

Selection of_zero_bubble(const Parameters& parameters, const char* name, const char* key,
                         bool sets_pieces) {
  return {.source = ScheduleSource::kZeroBubble,
          .algorithm = &find_algorithm(name),
          .where = parameters.where(key),
          .sets_pieces = sets_pieces};
}

const char* of_memory_setup(const std::string& setup) {
  return setup == "min" ? "v-min" : setup == "zb" ? "v-zb" : "v-half";
}

// The runtime of patch_zero_bubble has keys of its own.
Selection select_zero_bubble(const Parameters& parameters, int64_t pp) {
  if (parameters.boolean("enable_1f1b_v")) {
    for (const char* key : {"zero_bubble_v_schedule", "enable_zero_bubble"})
      if (parameters.boolean(key) && parameters.is_users(key))
        raise_rule("schedule.one",
                   "config: {}: {} is set too, and each names a schedule; use {}=false",
                   parameters.where("enable_1f1b_v"), parameters.where(key), key);
    return of_zero_bubble(parameters, "1f1b-v", "enable_1f1b_v", true);
  }
  if (parameters.boolean("zero_bubble_v_schedule")) {
    const std::string setup = parameters.string("zero_bubble_v_schedule_mem_setup");
    return of_zero_bubble(parameters, of_memory_setup(setup), "zero_bubble_v_schedule", true);
  }
  if (!parameters.boolean("enable_zero_bubble")) return {};
  const bool is_one_piece = pieces_asked(parameters, pp).value_or(1) == 1;
  return of_zero_bubble(parameters, is_one_piece ? "zero-bubble-heuristic" : "zb-interleaved",
                        "patch_zero_bubble", false);
}

Selection select_own(const SevenfoldBlock& block) {
  if (block.schedule && block.schedule_file)
    raise_rule(
        "schedule.one",
        "config: {}: sevenfold.schedule_file is set too, and each names a schedule; keep one",
        block.where("schedule"));
  Selection selection{.source = ScheduleSource::kSevenfold, .sets_pieces = true};
  selection.where = block.where(block.schedule ? "schedule" : "schedule_file");
  if (block.schedule)
    selection.algorithm = named(*block.schedule, selection.where);
  else
    selection.table = read_schedule_file(block);
  return selection;
}

}  // namespace

Schedule read_schedule_file(const SevenfoldBlock& block) {
  std::ifstream file(*block.schedule_file);
  if (!file)
    raise_rule("schedule.file",
               "config: {}: it cannot be read; set the path of a table that `sevenfold schedule "
               "--csv` or PyTorch wrote",
               block.where("schedule_file"));
  return read_csv(file, *block.schedule_file);
}

Selection select_schedule(const Parameters& parameters, const SevenfoldBlock& block, int64_t pp) {
  const std::string where = parameters.where("pp_algorithm");
  const Algorithm* of_primus = named(parameters.string("pp_algorithm"), where);
  if (block.schedule || block.schedule_file) return select_own(block);
  if (parameters.boolean("patch_zero_bubble")) return select_zero_bubble(parameters, pp);
  if (!parameters.boolean("patch_primus_pipeline")) return {};
  return {.source = ScheduleSource::kPrimus, .algorithm = of_primus, .where = where};
}

void check_pieces(const Algorithm& algorithm, const std::string& where, int64_t pieces) {
  const int64_t least = algorithm.min_chunks;
  const int64_t most = algorithm.max_chunks;
  if (least <= pieces && pieces <= most) return;
  const std::string needed = least == most    ? std::to_string(least)
                             : pieces < least ? fmt::format("{} or more", least)
                                              : fmt::format("at most {}", most);
  raise_rule("schedule.chunks",
             "config: {}: this schedule needs {} piece{} of the model per pipeline rank, and there "
             "are {}; use {}={}",
             where, needed, needed == "1" ? "" : "s", pieces, kChunks,
             needed == "1" ? "null" : std::to_string(pieces < least ? least : most));
}

}  // namespace sevenfold::config
