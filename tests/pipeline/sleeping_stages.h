#pragma once

#include <ATen/ATen.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "sevenfold/core/error.h"
#include "sevenfold/dist/threads/cluster.h"
#include "sevenfold/dist/timeline.h"
#include "sevenfold/nn/autograd.h"
#include "sevenfold/pipeline/executor.h"

namespace sevenfold::testing {

using Nap = std::chrono::microseconds;

// What a stage is replaced by: F, B and W sleep; the value that passes through grows by 1 a stage.
struct NapFunction : torch::autograd::Function<NapFunction> {
  static at::Tensor forward(internal::AutogradContext* context, const at::Tensor& x,
                            WeightGradients* gradients, int64_t nap_us) {
    internal::save_pointer(context, "gradients", *gradients);
    context->saved_data["nap"] = nap_us;
    std::this_thread::sleep_for(Nap(nap_us));
    return x + 1.0;
  }
  static internal::variable_list backward(internal::AutogradContext* context,
                                          internal::variable_list d_outputs) {
    const Nap nap(context->saved_data["nap"].toInt());
    std::this_thread::sleep_for(nap);
    internal::saved_pointer<WeightGradients>(context, "gradients").add({}, {}, [nap] {
      std::this_thread::sleep_for(nap);
      return at::Tensor();
    });
    return {d_outputs[0], at::Tensor(), at::Tensor()};
  }
};

// Of what passes between stages: [1, tokens, hidden].
struct MessageShape {
  int64_t tokens = 2;
  int64_t hidden = 3;
  at::ScalarType dtype = at::kDouble;
};

class NapLayer final : public Layer {
 public:
  // stage of num_stages: the first makes a value of its micro batch's number, the last a loss.
  NapLayer(int64_t stage, int64_t num_stages, Nap nap, const MessageShape& shape)
      : stage_(stage), num_stages_(num_stages), nap_(nap), shape_(shape) {}

  LayerOutput forward(const LayerInput& input) const override {
    const auto number = static_cast<double>(input.microbatch->index);
    const at::Tensor x = input.boundary.hidden_BTD.defined()
                             ? input.boundary.hidden_BTD
                             : (input.anchor + number).expand({1, shape_.tokens, shape_.hidden});
    const at::Tensor y = NapFunction::apply(x, input.weight_gradients, nap_.count());
    SEVENFOLD_CHECK_EQ(y.max().item<double>(), number + static_cast<double>(stage_) + 1.0);
    if (stage_ + 1 < num_stages_) return {.boundary = {y}, .losses = {}};
    return {.boundary = {}, .losses = {{y.sum(at::kDouble), input.microbatch->loss_seed}}};
  }
  std::vector<Parameter*> parameters() const override { return {}; }

 private:
  int64_t stage_;
  int64_t num_stages_;
  Nap nap_;
  MessageShape shape_;
};

// What the ranks of a run did.
struct SleepingRun {
  std::vector<Execution> executions;         // by rank
  std::vector<std::vector<TimeSpan>> spans;  // by rank, of passes alone
  double bubble_rate() const {
    double first = executions.front().first_start_s, last = 0.0, busy = 0.0;
    for (const Execution& one : executions) {
      first = std::min(first, one.first_start_s);
      last = std::max(last, one.last_end_s);
      busy += one.busy_s;
    }
    return 1.0 - busy / ((last - first) * static_cast<double>(executions.size()));
  }
};

inline std::vector<Microbatch> numbered_microbatches(int64_t count,
                                                     at::ScalarType dtype = at::kDouble) {
  std::vector<Microbatch> microbatches(static_cast<size_t>(count));
  for (int64_t m = 0; m < count; ++m) {
    Microbatch& microbatch = microbatches[static_cast<size_t>(m)];
    microbatch.index = m;
    microbatch.inputs_BT = at::zeros({1, 2}, at::kLong);
    microbatch.mask_BT = at::ones({1, 2}, at::TensorOptions().dtype(dtype));
    microbatch.loss_seed = at::ones({}, at::TensorOptions().dtype(at::kDouble));
  }
  return microbatches;
}

// confirms_weights: of PipelineRank, called on every rank.
inline SleepingRun run_sleeping(const Schedule& schedule, Nap nap, bool sends_block = false,
                                const MessageShape& shape = {},
                                const std::function<bool()>& confirms_weights = {}) {
  const StepTable table(schedule);
  const int64_t num_ranks = schedule.num_ranks();
  SleepingRun run;
  run.executions.resize(static_cast<size_t>(num_ranks));
  run.spans.resize(static_cast<size_t>(num_ranks));
  run_ranks(Mesh({.pp = num_ranks}), {.timeout = std::chrono::seconds(60)}, [&](RankContext& rank) {
    std::vector<Bucket> no_buckets;
    LayerWeights weights(no_buckets, rank);
    GradientReducer reducer(no_buckets, rank);
    PipelineRank on{.reducer = &reducer, .rank = &rank};
    on.boundary_tokens = shape.tokens;
    on.boundary_hidden = shape.hidden;
    on.dtype = shape.dtype;
    on.sends_block = sends_block;
    on.confirms_weights = confirms_weights;
    std::vector<std::vector<std::unique_ptr<Layer>>> layers;
    std::vector<std::unique_ptr<Chunk>> chunks;
    layers.reserve(static_cast<size_t>(schedule.num_chunks()));
    for (int64_t chunk = 0; chunk < schedule.num_chunks(); ++chunk) {
      const int64_t stage = stage_of(schedule.placement, num_ranks, rank.rank, chunk);
      layers.emplace_back().push_back(
          std::make_unique<NapLayer>(stage, schedule.num_stages, nap, shape));
      chunks.push_back(std::make_unique<Chunk>(layers.back(), weights, reducer, FaultSet()));
      on.chunks.push_back(chunks.back().get());
    }
    Timeline timeline;
    rank.timeline = &timeline;
    const auto at = static_cast<size_t>(rank.rank);
    rank.group("world").barrier();
    run.executions[at] =
        execute(table, on, numbered_microbatches(schedule.num_microbatches, shape.dtype));
    run.spans[at] = timeline.take();
    for (const auto& chunk : chunks) SEVENFOLD_CHECK(chunk->idle());
  });
  return run;
}

}  // namespace sevenfold::testing
