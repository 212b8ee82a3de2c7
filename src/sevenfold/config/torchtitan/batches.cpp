#include "sevenfold/config/torchtitan/parts.h"

namespace sevenfold::config {
namespace {

constexpr const char* kLocal = "training.local_batch_size";
constexpr const char* kGlobal = "training.global_batch_size";
constexpr const char* kMicro = "parallelism.pipeline_parallel_microbatch_size";
constexpr const char* kDp = "data-parallel size";

int64_t samples(const Parameters& own, const char* key) {
  const int64_t value = own.integer(key);
  if (value < 1 || value > kMaxWorldSize)
    raise_rule("batch.micro_positive",
               "config: {}: a batch holds at least 1 sample (and at most {}); use {}=1 or more",
               own.where(key), kMaxWorldSize, key);
  return value;
}

int64_t global_batch(const Parameters& own, int64_t local, int64_t data_parallel) {
  int64_t unit = 0;
  if (__builtin_mul_overflow(local, data_parallel, &unit) || unit > kMaxSize)
    raise_rule("batch.micro_positive",
               "config: {}: on {} data-parallel ranks these are more than {} samples; use a "
               "smaller batch",
               own.where(kLocal), data_parallel, kMaxSize);
  const int64_t global = own.integer(kGlobal);
  if (global < 0) return unit;
  if (global > kMaxSize)
    raise_rule("batch.divisible", "config: {}: must be at most {}; use {}=-1 for {}",
               own.where(kGlobal), kMaxSize, kGlobal, unit);
  if (global == 0 || global % unit != 0)
    raise_rule("batch.divisible",
               "config: {}: not {} {} x {} {} x a whole number; use {}={}, or -1 for {}",
               own.where(kGlobal), kLocal, local, kDp, data_parallel, kGlobal,
               nearest_multiples(global, unit), unit);
  return global;
}

}  // namespace

void translate_batches(Draft& draft, const Degrees& degrees) {
  const Parameters& own = draft.own;
  const int64_t local = samples(own, kLocal);
  const char* source = degrees.pp > 1 ? kMicro : kLocal;
  const int64_t micro = samples(own, source);
  if (local % micro != 0)
    raise_rule("batch.pipeline", "config: {} does not divide {}={}; use {}", own.where(kMicro),
               kLocal, local, divisor_list(local));
  draft.to.names.set("micro_batch_size", source);
  draft.set("micro_batch_size", Value::of(micro), source);
  draft.set("global_batch_size", Value::of(global_batch(own, local, degrees.data_parallel())),
            own.integer(kGlobal) < 0 ? kLocal : kGlobal);
}

void translate_data(Draft& draft) {
  const Parameters& own = draft.own;
  draft.to.refusals["data_path"] = fmt::format(
      "config: {}: a set on a model hub is not fetched; set training.dataset_path to a .bin/.idx "
      "prefix, sevenfold.prepare, or training.mock_data=true",
      own.where("training.dataset"));
}

}  // namespace sevenfold::config
