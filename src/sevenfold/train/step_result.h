#pragma once

#include <cstdint>
#include <optional>

namespace sevenfold {

// What a step did, the same on all ranks.
struct StepResult {
  double loss = 0.0;           // mean over the unmasked tokens of the global batch
  double gradient_norm = 0.0;  // of the global gradient, before clipping
  double clip_factor = 1.0;
  double learning_rate = 0.0;  // the rate this step used
  int64_t trained_tokens = 0;  // unmasked tokens of the global batch
  int64_t tokens = 0;          // all tokens of the global batch
  int64_t global_batch_size = 0;
  double loss_scale = 1.0;  // that the step used
  // Weights unchanged because loss or gradient were not finite (fp16: an overflow).
  bool is_skipped = false;
  std::optional<double> weight_norm;  // after the step, where the log asks for it
  std::optional<int64_t> num_zeros;   // of the gradient, where the log asks for it
};

// What the forward passes of a step add up to.
struct StepLoss {
  double sum = 0.0;            // of token losses on this rank's stages, over the dp and cp ranks
  int64_t trained_tokens = 0;  // unmasked tokens of the global batch
  int64_t global_batch_size = 0;
};

}  // namespace sevenfold
