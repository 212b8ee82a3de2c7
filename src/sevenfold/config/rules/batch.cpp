#include "sevenfold/config/rules/rules.h"

namespace sevenfold::config {

BatchConfig resolve_batch(Parameters& parameters, int64_t data_parallel_size) {
  BatchConfig batch;
  batch.micro_batch_size = parameters.integer("micro_batch_size");
  if (batch.micro_batch_size < 1 || batch.micro_batch_size > kMaxWorldSize)
    raise_rule("batch.micro_positive",
               "config: {}: a micro batch holds at least 1 sample (and at most {}); use "
               "micro_batch_size=1 or more",
               parameters.where("micro_batch_size"), kMaxWorldSize);
  const int64_t unit = batch.micro_batch_size * data_parallel_size;
  if (unit > kMaxSize)
    raise_rule(
        "batch.micro_positive",
        "config: {}: {} on {} data-parallel ranks are {} samples at once (at most {}); use a "
        "smaller micro batch",
        parameters.where("micro_batch_size"), batch.micro_batch_size, data_parallel_size, unit,
        kMaxSize);
  batch.global_batch_size = parameters.optional_integer("global_batch_size").value_or(unit);
  if (batch.global_batch_size < 1 || batch.global_batch_size > kMaxSize)
    raise_rule("batch.global_positive",
               "config: {}: a global batch holds at least 1 sample (and at most {}); use "
               "global_batch_size={}",
               parameters.where("global_batch_size"), kMaxSize, unit);
  if (batch.global_batch_size % unit != 0)
    raise_rule("batch.divisible",
               "config: {}: {} is not micro_batch_size {} x data-parallel size {} x a whole number "
               "of micro batches; "
               "use global_batch_size={}",
               parameters.where("global_batch_size"), batch.global_batch_size,
               batch.micro_batch_size, data_parallel_size,
               nearest_multiples(batch.global_batch_size, unit));
  batch.schedule = resolve_batch_schedule(parameters, batch.global_batch_size, unit);
  if (!batch.schedule.empty()) batch.global_batch_size = batch.schedule.back().global_batch_size;
  batch.num_microbatches = batch.global_batch_size / unit;
  return batch;
}

}  // namespace sevenfold::config
