#include "sevenfold/config/rules/pipeline/selection.h"

#include "sevenfold/config/rules/rules.h"

namespace sevenfold::config {
namespace {

constexpr const char* kChunks = "num_virtual_stages_per_pipeline_rank";

const Algorithm* named(const Parameters& parameters, const std::string& key) {
  const std::string name = parameters.string(key);
  const Algorithm* algorithm = look_up_algorithm(name);
  if (algorithm == nullptr)
    raise_rule("schedule.name", "config: {}: no schedule is called so; {}", parameters.where(key),
               algorithms_near(name));
  return algorithm;
}

const char* of_memory_setup(const std::string& setup) {
  return setup == "min" ? "v-min" : setup == "zb" ? "v-zb" : "v-half";
}

// The runtime of patch_zero_bubble has keys of its own.
Selection select_zero_bubble(const Parameters& parameters) {
  if (parameters.boolean("enable_1f1b_v")) {
    for (const char* key : {"zero_bubble_v_schedule", "enable_zero_bubble"})
      if (parameters.boolean(key) && parameters.is_users(key))
        raise_rule("schedule.one",
                   "config: {}: {} is set too, and each names a schedule; use {}=false",
                   parameters.where("enable_1f1b_v"), parameters.where(key), key);
    return {&find_algorithm("1f1b-v"), parameters.where("enable_1f1b_v"), true};
  }
  if (parameters.boolean("zero_bubble_v_schedule"))
    return {&find_algorithm(of_memory_setup(parameters.string("zero_bubble_v_schedule_mem_setup"))),
            parameters.where("zero_bubble_v_schedule"), true};
  if (!parameters.boolean("enable_zero_bubble")) return {};
  const bool is_one_piece = parameters.optional_integer(kChunks).value_or(1) == 1;
  return {&find_algorithm(is_one_piece ? "zero-bubble-heuristic" : "zb-interleaved"),
          parameters.where("patch_zero_bubble"), false};
}

}  // namespace

Selection select_schedule(const Parameters& parameters) {
  const Algorithm* of_primus = named(parameters, "pp_algorithm");
  if (parameters.boolean("patch_zero_bubble")) return select_zero_bubble(parameters);
  if (!parameters.boolean("patch_primus_pipeline")) return {};
  return {of_primus, parameters.where("pp_algorithm"), false};
}

void check_pieces(const Selection& selection, int64_t pieces) {
  const int64_t least = selection.algorithm->min_chunks;
  const int64_t most = selection.algorithm->max_chunks;
  if (least <= pieces && pieces <= most) return;
  const std::string needed = least == most    ? std::to_string(least)
                             : pieces < least ? fmt::format("{} or more", least)
                                              : fmt::format("at most {}", most);
  raise_rule("schedule.chunks",
             "config: {}: this schedule needs {} piece{} of the model per pipeline rank, and there "
             "are {}; use {}={}",
             selection.where, needed, needed == "1" ? "" : "s", pieces, kChunks,
             needed == "1" ? "null" : std::to_string(pieces < least ? least : most));
}

}  // namespace sevenfold::config
