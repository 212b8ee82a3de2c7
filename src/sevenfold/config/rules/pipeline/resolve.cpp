#include "sevenfold/config/rules/pipeline/cut.h"
#include "sevenfold/config/rules/pipeline/limits.h"
#include "sevenfold/config/rules/pipeline/selection.h"
#include "sevenfold/config/rules/rules.h"

namespace sevenfold::config {
namespace {

constexpr const char* kPp = "pipeline_model_parallel_size";
constexpr const char* kLayout = "pipeline_model_parallel_layout";
constexpr const char* kPerChunk = "num_layers_per_virtual_pipeline_stage";
constexpr const char* kChunks = "num_virtual_stages_per_pipeline_rank";

// Megatron derives its own schedule from the pieces.
const Algorithm& algorithm_for(const Selection& selection, int64_t pieces) {
  if (selection.algorithm != nullptr) return *selection.algorithm;
  return find_algorithm(pieces > 1 ? "1f1b-interleaved" : "1f1b");
}

void note_derived(Parameters& parameters, int64_t pieces) {
  constexpr const char* kDerived = "virtual_pipeline_model_parallel_size";
  const auto asked = parameters.optional_integer(kDerived);
  if (asked && *asked != pieces)
    parameters.notice(fmt::format("{}: derived, not an input, so it is ignored; use {}",
                                  parameters.where(kDerived), kChunks));
}

void check_overlap(const Parameters& parameters, int64_t pp, int64_t pieces) {
  if (pieces == 1 || pp > 2 || parameters.boolean("overlap_p2p_comm")) return;
  raise_rule("pipeline.overlap",
             "config: {}: {} pieces per rank need more than 2 stages then, and {} is {}; use "
             "overlap_p2p_comm=true or {}=4",
             parameters.where("overlap_p2p_comm"), pieces, kPp, pp, kPp);
}

// The figures that it leaves unknown while ranks go on.
bool resolve_post_validation(const Parameters& parameters, int64_t pp) {
  constexpr const char* kKey = "enable_optimizer_post_validation";
  if (!parameters.boolean(kKey)) return false;
  if (pp == 1)
    raise_rule("pipeline.post_validation",
               "config: {}: it spares pipeline stages the wait for each other, and {} is 1; use "
               "{}=2 or more, or {}=false",
               parameters.where(kKey), kPp, kPp, kKey);
  for (const char* figure : {"log_params_norm", "log_num_zeros_in_grad"})
    if (parameters.boolean(figure))
      raise_rule("pipeline.post_validation",
                 "config: {}: {}=true sums over all stages in every step, and with it none is to "
                 "wait for the others; use {}=false, or {}=false",
                 parameters.where(kKey), figure, figure, kKey);
  return true;
}

// The two pieces of a rank of a bidirectional placement are twins: the cut makes one.
void check_twins(const Parameters& parameters, const Algorithm& algorithm, int64_t pieces) {
  if (algorithm.placement != Placement::kBidirectional || pieces == 1) return;
  for (const char* key : {kLayout, kPerChunk})
    if (!parameters.is_null(key))
      raise_rule("pipeline.twins",
                 "config: {}: it makes {} pieces per rank, and the two pieces of a rank of {} are "
                 "copies of two of the {} stages; use {}=null, or as many stages as ranks",
                 parameters.where(key), pieces, algorithm.name, kPp, key);
}

// The pieces that the keys ask for, or that the schedule has.
int64_t pieces_of(const Parameters& parameters, const Selection& selection, int64_t pp) {
  const auto asked = pieces_asked(parameters, pp);
  if (!selection.table) {
    const bool follows = selection.sets_pieces && selection.algorithm->default_chunks > 0;
    return asked.value_or(follows ? selection.algorithm->default_chunks : 1);
  }
  const Schedule& table = *selection.table;
  const int64_t pieces = table.num_stages / table.num_ranks();
  if (table.num_ranks() == pp && asked.value_or(pieces) == pieces) return pieces;
  raise_rule("schedule.file",
             "config: {}: it is for {} ranks with {} piece{} each, and there are {} with {}; use "
             "{}={} and {}={}",
             selection.where, table.num_ranks(), pieces, pieces == 1 ? "" : "s", pp,
             asked.value_or(pieces), kPp, table.num_ranks(), kChunks, pieces);
}

Placement placement_of(const Selection& selection, const Algorithm& algorithm) {
  const Placement placement = selection.table ? selection.table->placement : algorithm.placement;
  // `auto` may place several pieces of a rank in a loop or in a V; unequal ranks are cut for a
  // loop.
  return placement == Placement::kLinear ? Placement::kLoop : placement;
}

}  // namespace

PipelineConfig resolve_pipeline(Parameters& parameters, const SevenfoldBlock& block,
                                const MeshShape& mesh) {
  check_cut_keys(parameters, mesh.pp);
  PipelineConfig pipeline;
  const int64_t layers = parameters.integer("num_layers");
  // The model rules refuse a number of layers that makes no sense.
  if (layers < 1 || layers > kMaxSize) return pipeline;
  Selection selection = select_schedule(parameters, block, mesh.pp);
  if (mesh.pp == 1) selection = {};
  const int64_t pieces = pieces_of(parameters, selection, mesh.pp);
  const Algorithm& algorithm = algorithm_for(selection, pieces);
  check_pieces(algorithm, selection.where.empty() ? parameters.where(kChunks) : selection.where,
               pieces);
  check_twins(parameters, algorithm, pieces);
  const Placement placement = placement_of(selection, algorithm);
  const bool has_twins = placement == Placement::kBidirectional;
  pipeline.algorithm = algorithm.name;
  if (selection.table) pipeline.schedule_file = *block.schedule_file;
  pipeline.num_chunks = has_twins ? 2 : pieces;
  pipeline.stages = cut_layers(parameters, {mesh.pp, has_twins ? 1 : pieces, placement});
  resolve_limits(parameters, selection, mesh.pp, pipeline);
  pipeline.post_validation = resolve_post_validation(parameters, mesh.pp);
  note_derived(parameters, pieces);
  check_overlap(parameters, mesh.pp, pieces);
  return pipeline;
}

}  // namespace sevenfold::config
