#pragma once

#include <string>

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
void apply_fix_ups(Parameters& parameters, const std::string& directory);

MeshShape resolve_layout(Parameters& parameters, const SevenfoldBlock& block,
                         const LoadOptions& options);
BatchConfig resolve_batch(Parameters& parameters, int64_t data_parallel_size);
ModelConfig resolve_model(Parameters& parameters, const MeshShape& mesh,
                          const SevenfoldBlock& block);
OptimizerConfig resolve_optimizer(Parameters& parameters);
LearningRateConfig resolve_learning_rate(Parameters& parameters, int64_t global_batch_size);
DataConfig resolve_data(Parameters& parameters, const SevenfoldBlock& block, int64_t vocab_size);
RunConfig resolve_run(Parameters& parameters, const SevenfoldBlock& block,
                      const LoadOptions& options);

// What the parts make together: samples of the run, weights, tensors of a micro batch.
void check_run_length(const Parameters& parameters, const RunConfig& run, const BatchConfig& batch);
void check_elements(const Parameters& parameters, const ModelConfig& model,
                    const BatchConfig& batch);

// Every key whose table row says "not yet" and whose value is not neutral.
void refuse_unsupported_values(Parameters& parameters);

// "1, 2, 4 or 8": the divisors of `value`, the first sixteen of them.
std::string divisor_list(int64_t value);
// "4 or 8": the multiples of `unit` next to `value`, at least one unit.
std::string nearest_multiples(int64_t value, int64_t unit);

}  // namespace sevenfold::config
