#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "sevenfold/dist/rank_context.h"
#include "sevenfold/pipeline/chunk.h"
#include "sevenfold/pipeline/tables.h"

namespace sevenfold {

// What a rank runs a schedule with.
struct PipelineRank {
  std::vector<Chunk*> chunks;  // by the schedule's number
  GradientReducer* reducer = nullptr;
  RankContext* rank = nullptr;
  // Of what passes between stages, [samples, tokens, hidden]: tokens and hidden size of this rank's
  // part, and the type.
  int64_t boundary_tokens = 0;
  int64_t boundary_hidden = 0;
  at::ScalarType dtype = at::kFloat;
  bool sends_block = false;  // see StageLinks
  // Where the weights are not certain yet: forwards run ahead of this call (RunAhead), which says
  // whether they ran on the right weights. If not, they are thrown away and run again; the answer
  // is the same on all ranks of the pp group. Empty: the weights are certain.
  std::function<bool()> confirms_weights;
};

// What a rank did in a step, times in seconds of Timeline::now_s.
struct Execution {
  double first_start_s = 0.0;
  double last_end_s = 0.0;
  // In passes; waiting for other stages is not, nor are passes that were thrown away.
  double busy_s = 0.0;
  // Most activations kept at once; unit: PassCosts::activation.
  double peak_activation = 0.0;
  // Sum of the token losses of micro batches not for training, fp64 scalar; undefined without any.
  at::Tensor evaluation_loss;
};

// Runs this rank's rows of the schedule (its pp coordinate's), each pass written down in the rank's
// timeline. Messages are under way while rows compute; a row waits for what it reads. Nothing is
// kept when it returns or throws. Micro batches that are not for training run forward only.
// Collective over the pp group.
Execution execute(const StepTable& table, const PipelineRank& on,
                  const std::vector<Microbatch>& microbatches);

}  // namespace sevenfold
