#include "sevenfold/config/rules/rules.h"

// What tensor and sequence parallelism cut must divide (guide, chapters 4 and 5). Rows of the
// vocabulary need not: the parts then differ by one row.

namespace sevenfold::config {
namespace {

constexpr const char* kTp = "tensor_model_parallel_size";

void check_head_split(const Parameters& parameters, const ModelConfig& model, int64_t tp) {
  if (model.num_attention_heads % tp != 0)
    raise_rule("heads.divisible", "config: {} does not divide num_attention_heads={}; use {}",
               parameters.where(kTp), model.num_attention_heads,
               divisor_list(model.num_attention_heads));
  if (model.num_query_groups % tp != 0 && tp % model.num_query_groups != 0)
    raise_rule(
        "groups.divisible",
        "config: {} is neither a divisor nor a multiple of num_query_groups={}; use {}, or a "
        "multiple of {} that divides num_attention_heads={}",
        parameters.where(kTp), model.num_query_groups, divisor_list(model.num_query_groups),
        model.num_query_groups, model.num_attention_heads);
}

void check_feed_forward_split(const Parameters& parameters, const ModelConfig& model, int64_t tp) {
  if (model.ffn_hidden_size % tp != 0)
    raise_rule("ffn.divisible",
               "config: {} does not divide ffn_hidden_size={}; use ffn_hidden_size={}, or another "
               "degree",
               parameters.where(kTp), model.ffn_hidden_size,
               nearest_multiples(model.ffn_hidden_size, tp));
}

// Each rank is to have rows of the tables: a layout with ranks that hold none is a mistake.
void check_vocabulary_split(const Parameters& parameters, const ModelConfig& model, int64_t tp) {
  if (model.vocab_size < tp)
    raise_rule("vocabulary.ranks",
               "config: {} is more than vocab_size={}: some ranks would hold no row of the "
               "embedding; use at most {}",
               parameters.where(kTp), model.vocab_size, model.vocab_size);
}

void check_sequence_split(const Parameters& parameters, const ModelConfig& model,
                          const MeshShape& mesh) {
  const int64_t unit = mesh.tp * mesh.cp;
  if (model.seq_length % unit != 0)
    raise_rule("sequence.tensor",
               "config: {} is not a multiple of {} {} x context_parallel_size {} = {}, the parts "
               "that sequence_parallel=true makes of it; use seq_length={}, or "
               "sequence_parallel=false",
               parameters.where("seq_length"), kTp, mesh.tp, mesh.cp, unit,
               nearest_multiples(model.seq_length, unit));
}

void warn_of_nodes(Parameters& parameters, const MeshShape& mesh) {
  const Mesh layout(mesh);
  if (layout.crosses_nodes(Axis::kTp))
    parameters.notice(fmt::format(
        "{}: tensor-parallel groups span nodes of {} ranks; every layer waits for its collectives, "
        "so keep the degree within a node",
        parameters.where(kTp), mesh.ranks_per_node));
}

}  // namespace

ParallelConfig resolve_parallel(Parameters& parameters, const ModelConfig& model,
                                const MeshShape& mesh) {
  ParallelConfig parallel;
  parallel.sequence = parameters.boolean("sequence_parallel");
  parallel.tensor_overlap = parameters.boolean("async_tensor_model_parallel_allreduce");
  check_head_split(parameters, model, mesh.tp);
  check_feed_forward_split(parameters, model, mesh.tp);
  check_vocabulary_split(parameters, model, mesh.tp);
  if (parallel.sequence) check_sequence_split(parameters, model, mesh);
  warn_of_nodes(parameters, mesh);
  return parallel;
}

}  // namespace sevenfold::config
