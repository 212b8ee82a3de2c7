#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sevenfold/config/load.h"
#include "sevenfold/config/parameters.h"
#include "sevenfold/config/rule_error.h"
#include "sevenfold/config/sevenfold_block.h"

namespace sevenfold::config {

// The most that a size or a count of steps, samples or layers may be: products of two fit in 64
// bits.
inline constexpr int64_t kMaxSize = int64_t{1} << 31;
// The most elements of all weights together, and of a tensor of one micro batch: their bytes, sent
// twice around a ring, fit in 64 bits.
inline constexpr int64_t kMaxElements = int64_t{1} << 53;

// Each reads its keys, checks their rules (RuleError) and gives the part of Config that it owns.
// What is accepted without effect, or not there yet, is left in the Parameters as notices and
// unsupported values.

// Values that Primus and Megatron change on their own before anything reads them. `directory`: the
// run's folder.
void apply_fix_ups(Parameters& parameters, const SevenfoldBlock& block,
                   const std::string& directory);

// The number of ranks that the command line or the sevenfold block asks for.
struct WorldRequest {
  int64_t ranks = 0;
  std::string where;  // what asked for it
};
std::optional<WorldRequest> requested_world(const SevenfoldBlock& block,
                                            const LoadOptions& options);
MeshShape resolve_layout(Parameters& parameters, const SevenfoldBlock& block,
                         const LoadOptions& options);
// The schedule that the keys select and the stages that they cut; no stages where num_layers makes
// no sense, which resolve_model refuses.
PipelineConfig resolve_pipeline(Parameters& parameters, const SevenfoldBlock& block,
                                const MeshShape& mesh);
BatchConfig resolve_batch(Parameters& parameters, int64_t data_parallel_size);
// rampup_batch_size or step_batch_size_schedule; empty if the global batch does not change. `unit`:
// micro batch x data-parallel size.
std::vector<BatchStage> resolve_batch_schedule(Parameters& parameters, int64_t global_batch_size,
                                               int64_t unit);

struct Vocabulary {
  int64_t size = 0;
  std::optional<int64_t> eod_token_id;
};
// Opens the tokenizer only if a key that matters leaves something open.
Vocabulary resolve_vocabulary(Parameters& parameters, const SevenfoldBlock& block,
                              const LoadOptions& options);
ModelConfig resolve_model(Parameters& parameters, const MeshShape& mesh, int64_t vocab_size);
// Of tensor and sequence parallelism; checks what they cut.
ParallelConfig resolve_parallel(Parameters& parameters, const ModelConfig& model,
                                const MeshShape& mesh);
// Whether gradients are rounded to bf16 for their sums over data-parallel ranks: of bf16 runs.
bool resolve_bf16_sums(Parameters& parameters, Precision precision);
// Norms, activation, biases, dropout and positions; `model` has its sizes.
void resolve_block(Parameters& parameters, ModelConfig& model);
OptimizerConfig resolve_optimizer(Parameters& parameters, const SevenfoldBlock& block);
// `run_samples`: the length of the run.
LearningRateConfig resolve_learning_rate(Parameters& parameters, int64_t global_batch_size,
                                         int64_t run_samples);
DataConfig resolve_data(Parameters& parameters, const SevenfoldBlock& block,
                        const Vocabulary& vocabulary);
RunConfig resolve_run(Parameters& parameters, const SevenfoldBlock& block,
                      const LoadOptions& options, const std::string& directory);

// Steps and samples of the run, from train_iters or train_samples. Gives the samples.
int64_t resolve_run_length(Parameters& parameters, const BatchConfig& batch, RunConfig& run);

// What the parts make together: samples of the run, weights, tensors of a micro batch.
void check_run_length(const Parameters& parameters, const RunConfig& run, const BatchConfig& batch);
void check_elements(const Parameters& parameters, const ModelConfig& model,
                    const BatchConfig& batch);

// The value of a number that must be finite and not negative.
double at_least_zero(const Parameters& parameters, const char* key);

// Rules that only check: names of choices, layouts, experts, recomputation.
void check_choices(const Parameters& parameters);
void check_pipeline_batches(const Parameters& parameters, const SevenfoldBlock& block,
                            const Config& config);
void check_context(const Parameters& parameters, const MeshShape& mesh);
void check_experts(Parameters& parameters, const MeshShape& mesh);
void check_recomputation(const Parameters& parameters);
// What is computed again in backward; the keys have passed check_recomputation.
RecomputeConfig resolve_recomputation(Parameters& parameters);
// What data-parallel ranks keep a share of, when it is gathered, and in how many sets of shards:
// weights with use_torch_fsdp2, else as data_parallel_sharding_strategy says, or where that is
// no_shard the optimizer state with use_distributed_optimizer.
void resolve_sharding(const Parameters& parameters, ParallelConfig& parallel, MeshShape& mesh);
void check_low_precision(const Parameters& parameters);

// What a run saves and begins from; `save` has been fixed up.
CheckpointConfig resolve_checkpoints(Parameters& parameters, const SevenfoldBlock& block);

// Every key whose table row says "not yet" and whose value is not neutral.
void refuse_unsupported_values(Parameters& parameters);

// "1, 2, 4 or 8": the divisors of `value`, the first sixteen of them.
std::string divisor_list(int64_t value);
// "4 or 8": the multiples of `unit` next to `value`, at least one unit.
std::string nearest_multiples(int64_t value, int64_t unit);

}  // namespace sevenfold::config
