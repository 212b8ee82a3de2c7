#include "sevenfold/train/proof/layout_trace.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <mutex>

#include "sevenfold/core/error.h"
#include "sevenfold/dist/replicas.h"
#include "sevenfold/dist/ring_bytes.h"
#include "sevenfold/dist/threads/cluster.h"

namespace sevenfold {
namespace {

at::Tensor part_of(at::Tensor whole, const Slice& slice) {
  for (size_t dim = 0; dim < slice.sizes.size(); ++dim)
    whole = whole.narrow(static_cast<int64_t>(dim), slice.offsets[dim], slice.sizes[dim]);
  return whole;
}

// Logical tensors put together from what the ranks of one process hold.
class GlobalTensors {
 public:
  // `values`: elements `range` of the parameter's local part, flat. Of copies the first is taken.
  void write(const Parameter& parameter, ElementRange range, const at::Tensor& values,
             const RankContext& rank) {
    if (!counts_in_norm(parameter.spec(), *rank.mesh, rank.coordinates)) return;
    const Slice slice = local_slice(parameter.spec(), *rank.mesh, rank.coordinates);
    const std::lock_guard<std::mutex> lock(mutex_);
    at::Tensor& whole = tensors_[parameter.name()];
    if (!whole.defined()) whole = at::zeros(parameter.spec().global_shape, values.options());
    const at::Tensor part = part_of(whole, slice);
    const at::Tensor flat = part.reshape({-1});
    flat.narrow(0, range.begin, range.size()).copy_(values);
    part.copy_(flat.view(slice.sizes));
  }
  std::map<std::string, at::Tensor> take() { return std::move(tensors_); }

 private:
  std::mutex mutex_;
  std::map<std::string, at::Tensor> tensors_;
};

bool is_first_data_parallel_rank(const RankContext& rank) {
  return rank.group("dp-cp").rank() == 0;
}

// What a rank sends at least when the gradients are summed over dp and cp once, as reduce-scatter;
// anything less leaves out a parameter.
int64_t least_gradient_traffic(const RankTrainer& trainer, const Communicator& group) {
  int64_t bytes = 0;
  for (const Bucket& bucket : trainer.buckets())
    bytes += ring_bytes::reduce_scatter(even_cut(bucket.weights.numel(), group.size()),
                                        static_cast<int64_t>(bucket.owned_gradients.element_size()),
                                        group.rank());
  return bytes;
}

// Whether the rank's traffic since the ledger was cleared shows that it used the axis: dp by
// sending its share of the gradients, the others by sending at all.
bool used_axis(Axis axis, const RankTrainer& trainer, const RankContext& rank) {
  if (axis != Axis::kDp) return rank.traffic.of_group(std::string(axis_name(axis))).bytes_sent > 0;
  const Communicator& group = rank.group("dp-cp");
  return rank.traffic.of_group("dp-cp").bytes_sent >= least_gradient_traffic(trainer, group);
}

std::map<std::string, bool> used_axes(const RankTrainer& trainer, const RankContext& rank) {
  std::map<std::string, bool> used;
  for (const Axis axis : {Axis::kTp, Axis::kCp, Axis::kDp, Axis::kPp, Axis::kEp})
    if (rank.mesh->shape().degree(axis) > 1)
      used[std::string(axis_name(axis))] = used_axis(axis, trainer, rank);
  return used;
}

// A tensor of a parameter: its weight, its gradient or a state.
struct Held {
  const Parameter* parameter;
  at::Tensor tensor;
};

bool equal_over_replicas(const std::vector<Held>& held, const RankContext& rank) {
  bool equal = true;
  for (const Held& one : held)
    for (const std::string& group : replica_groups(one.parameter->spec()))
      equal = bits_equal_over(rank.group(group), one.tensor) && equal;
  return equal;
}

// Where ranks own shards, gradients and states are nobody's copies; the weights that follow from
// them are.
std::vector<Held> gradients_of(const RankTrainer& trainer) {
  std::vector<Held> held;
  if (trainer.is_sharded()) return held;
  for (const Parameter* parameter : trainer.parameters())
    held.push_back({parameter, parameter->gradient()});
  return held;
}

std::vector<Held> weights_and_states_of(const RankTrainer& trainer) {
  std::vector<Held> held;
  for (const Parameter* parameter : trainer.parameters()) {
    held.push_back({parameter, parameter->weight()});
    if (trainer.is_sharded()) continue;
    for (const OptimizerState& state : trainer.optimizer().states(*parameter))
      held.push_back({parameter, state.tensor});
  }
  return held;
}

bool all_equal(const std::vector<int64_t>& values) {
  return std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end();
}

std::string check_parameter_bytes(const RankTrainer& trainer, const RankContext& rank) {
  int64_t declared = 0;
  for (const Parameter* parameter : trainer.parameters())
    declared += local_slice(parameter->spec(), *rank.mesh, rank.coordinates).num_elements() *
                static_cast<int64_t>(parameter->weight().element_size());
  const int64_t live = rank.memory.live(MemoryCategory::kParameters);
  if (live == declared) return {};
  return fmt::format("rank {} holds {} bytes of parameters, its ShardSpecs say {}", rank.rank, live,
                     declared);
}

}  // namespace

LayoutTrace trace_layout(const Config& config, const SampleSource& source,
                         const TraceOptions& options) {
  const Mesh mesh(config.mesh);
  LayoutTrace trace;
  trace.steps.resize(static_cast<size_t>(options.steps));
  std::vector<GlobalTensors> gradients(static_cast<size_t>(options.steps));
  GlobalTensors weights;
  const SampleStream samples(config, source);
  const auto tables = std::make_shared<const PipelineTables>(config);
  std::mutex mutex;  // guards trace where ranks write
  run_ranks(mesh,
            {.timeout = std::chrono::seconds(config.run.timeout_s),
             .threads_per_rank = 1,
             .faults = options.faults},
            [&](RankContext& rank) {
              RankTrainer trainer(config, samples, rank, tables);
              bool equal = equal_over_replicas(weights_and_states_of(trainer), rank);
              std::map<std::string, bool> used;
              for (int64_t step = 0; step < options.steps; ++step) {
                const auto at = static_cast<size_t>(step);
                rank.traffic.clear();
                trainer.compute_gradients();
                for (const auto& [axis, now] : used_axes(trainer, rank))
                  used[axis] = now && (step == 0 || used[axis]);
                equal = equal_over_replicas(gradients_of(trainer), rank) && equal;
                for (const Parameter* parameter : trainer.parameters()) {
                  if (options.ones) parameter->owned_gradient().fill_(1.0);
                  if (trainer.is_sharded() || is_first_data_parallel_rank(rank))
                    gradients[at].write(*parameter, parameter->owned(), parameter->owned_gradient(),
                                        rank);
                }
                const StepResult result = trainer.apply_gradients();
                equal = equal_over_replicas(weights_and_states_of(trainer), rank) && equal;
                if (rank.rank != 0) continue;
                trace.steps[at] = result;
                trace.unequal_tokens |= !all_equal(trainer.microbatch_tokens());
              }
              if (is_first_data_parallel_rank(rank))
                for (const Parameter* parameter : trainer.parameters())
                  weights.write(*parameter, {0, parameter->weight().numel()},
                                parameter->weight().view({-1}), rank);
              const std::lock_guard<std::mutex> lock(mutex);
              trace.replicas_equal = trace.replicas_equal && equal;
              for (const auto& [axis, uses] : used)
                trace.axes_used[axis] =
                    uses && trace.axes_used.try_emplace(axis, true).first->second;
              if (trace.undeclared_bytes.empty())
                trace.undeclared_bytes = check_parameter_bytes(trainer, rank);
            });
  for (GlobalTensors& step : gradients) trace.gradients.push_back(step.take());
  trace.final_weights = weights.take();
  return trace;
}

}  // namespace sevenfold
