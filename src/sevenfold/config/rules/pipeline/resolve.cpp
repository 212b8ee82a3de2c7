#include "sevenfold/config/rules/pipeline/cut.h"
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

}  // namespace

PipelineConfig resolve_pipeline(Parameters& parameters, const MeshShape& mesh) {
  check_cut_keys(parameters, mesh.pp);
  PipelineConfig pipeline;
  const int64_t layers = parameters.integer("num_layers");
  // The model rules refuse a number of layers that makes no sense.
  if (layers < 1 || layers > kMaxSize) return pipeline;
  Selection selection = select_schedule(parameters);
  if (mesh.pp == 1) selection = {};
  const int64_t pieces =
      pieces_asked(parameters, mesh.pp)
          .value_or(selection.sets_pieces ? selection.algorithm->default_chunks : 1);
  const Algorithm& algorithm = algorithm_for(selection, pieces);
  check_pieces({&algorithm, selection.algorithm ? selection.where : parameters.where(kChunks)},
               pieces);
  check_twins(parameters, algorithm, pieces);
  const bool has_twins = algorithm.placement == Placement::kBidirectional;
  const CutShape shape{mesh.pp, has_twins ? 1 : pieces, algorithm.placement};
  pipeline.algorithm = algorithm.name;
  pipeline.num_chunks = has_twins ? 2 : pieces;
  pipeline.stages = cut_layers(parameters, shape);
  note_derived(parameters, pieces);
  check_overlap(parameters, mesh.pp, pieces);
  return pipeline;
}

}  // namespace sevenfold::config
