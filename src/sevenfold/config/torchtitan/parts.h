#pragma once

#include <string>

#include "sevenfold/config/rules/rules.h"
#include "sevenfold/config/torchtitan/translate.h"

// The parts of translate(): each reads its torchtitan keys, checks TorchTitan's own rules and
// writes megatron keys.

namespace sevenfold::config {

// The most layers, of which some keys here make lists.
inline constexpr int64_t kMaxLayers = 65536;

// A translation under way.
struct Draft {
  Parameters& own;
  Translation& to;

  // `key` becomes `value`, because of what `from` says.
  void set(const char* key, Value value, const char* from);
  // The same value; messages then call `key` by the name of `from`.
  void copy(const char* key, const char* from);
};

// Sizes of the mesh, of which TorchTitan's keys leave at most one open.
struct Degrees {
  int64_t tp = 1;
  int64_t cp = 1;
  int64_t pp = 1;
  int64_t shard = 1;
  int64_t replicate = 1;

  int64_t data_parallel() const { return shard * replicate; }
  // Whether ranks share weights (FSDP); else every replica has them whole.
  bool cuts_weights() const { return shard * cp > 1; }
};

// Shapes, from model.name and model.flavor.
void translate_model(Draft& draft);
// Degrees, world, ZeRO. The model has been translated.
Degrees translate_degrees(Draft& draft);
// Micro batches, lengths, data.
void translate_batches(Draft& draft, const Degrees& degrees);
void translate_data(Draft& draft);
// Optimizer, learning rate, precision.
void translate_optimizer(Draft& draft);
void translate_learning_rate(Draft& draft);
void translate_precision(Draft& draft, const Degrees& degrees);
// Recomputation.
void translate_recomputation(Draft& draft);
// What is saved and loaded.
void translate_checkpoints(Draft& draft);
// Schedule and stages.
void translate_pipeline(Draft& draft, const Degrees& degrees);

}  // namespace sevenfold::config
