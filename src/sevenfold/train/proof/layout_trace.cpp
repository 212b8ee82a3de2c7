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

// Of those that own the same elements.
bool is_first_owner(const RankTrainer& trainer, const RankContext& rank) {
  if (!trainer.is_sharded()) return is_first_data_parallel_rank(rank);
  return rank.mesh->shape().dp_replicate == 1 || rank.group("dp-replicate").rank() == 0;
}

// Whether the rank's traffic since the ledger was cleared shows that gradients were summed over dp
// and cp: it sent at least a reduce-scatter of them, and where several sets hold the same shards an
// all-reduce of its shard; anything less leaves out a parameter.
bool used_data_parallelism(const RankTrainer& trainer, const RankContext& rank, bool sums_in_bf16) {
  const MeshShape& shape = rank.mesh->shape();
  const Communicator& group = rank.group(shard_group(shape));
  int64_t scattered = 0, shards = 0;
  for (const Bucket& bucket : trainer.buckets()) {
    const auto element =
        static_cast<int64_t>(sums_in_bf16 ? 2 : bucket.owned_gradients.element_size());
    scattered +=
        ring_bytes::reduce_scatter(even_cut(bucket.elements, group.size()), element, group.rank());
    if (shape.dp_replicate > 1)
      shards += ring_bytes::all_reduce(bucket.owned_gradients.numel(), element, shape.dp_replicate,
                                       rank.group("dp-replicate").rank());
  }
  int64_t summed = 0;  // beside what gathers weights
  for (const auto& [key, entry] : rank.traffic.entries())
    if (key.first == group.name() && key.second != "all_gather") summed += entry.bytes_sent;
  return summed >= scattered && rank.traffic.of_group("dp-replicate").bytes_sent >= shards;
}

// Whether it used the axis: the others by sending at all. A rank whose stages have no layers has
// nothing to send but what passes through them.
bool used_axis(Axis axis, const RankTrainer& trainer, const RankContext& rank, bool sums_in_bf16) {
  if (axis == Axis::kDp) return used_data_parallelism(trainer, rank, sums_in_bf16);
  if (axis != Axis::kPp && trainer.parameters().empty()) return true;
  return rank.traffic.of_group(std::string(axis_name(axis))).bytes_sent > 0;
}

std::map<std::string, bool> used_axes(const RankTrainer& trainer, const RankContext& rank,
                                      bool sums_in_bf16) {
  std::map<std::string, bool> used;
  for (const Axis axis : {Axis::kTp, Axis::kCp, Axis::kDp, Axis::kPp, Axis::kEp})
    if (rank.mesh->shape().degree(axis) > 1)
      used[std::string(axis_name(axis))] = used_axis(axis, trainer, rank, sums_in_bf16);
  return used;
}

// Of what ranks replicate: weights of every parameter over the groups that hold copies of it, and
// gradients and states where whole ones or several sets of shards are copies.
bool equal_weights(RankTrainer& trainer, const RankContext& rank) {
  bool equal = true;
  trainer.weights().visit([&](const Bucket& bucket) {
    for (const Parameter* parameter : bucket.parameters)
      for (const std::string& group : replica_groups(parameter->spec()))
        equal = bits_equal_over(rank.group(group), parameter->weight()) && equal;
  });
  return equal;
}

std::vector<std::string> owner_groups(const Parameter& parameter, const RankTrainer& trainer,
                                      const RankContext& rank) {
  if (!trainer.is_sharded()) return replica_groups(parameter.spec());
  if (rank.mesh->shape().dp_replicate > 1) return {"dp-replicate"};
  return {};
}

bool equal_gradients(const RankTrainer& trainer, const RankContext& rank) {
  bool equal = true;
  for (const Parameter* parameter : trainer.parameters())
    for (const std::string& group : owner_groups(*parameter, trainer, rank))
      equal = bits_equal_over(rank.group(group), parameter->owned_gradient()) && equal;
  return equal;
}

bool equal_states(const RankTrainer& trainer, const RankContext& rank) {
  bool equal = true;
  for (const Parameter* parameter : trainer.parameters())
    for (const OptimizerState& state : trainer.optimizer().states(*parameter))
      for (const std::string& group : owner_groups(*parameter, trainer, rank))
        equal = bits_equal_over(rank.group(group), state.tensor) && equal;
  return equal;
}

bool all_equal(const std::vector<int64_t>& values) {
  return std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end();
}

// keeps_shards: the rank keeps what it owns only (ZeRO-3).
std::string check_parameter_bytes(const RankTrainer& trainer, const RankContext& rank,
                                  bool keeps_shards) {
  int64_t declared = 0;
  for (const Parameter* parameter : trainer.parameters())
    declared +=
        (keeps_shards
             ? parameter->owned().size()
             : local_slice(parameter->spec(), *rank.mesh, rank.coordinates).num_elements()) *
        static_cast<int64_t>(c10::elementSize(parameter->weight_type()));
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
  const bool sums_in_bf16 =
      config.parallel.reduces_in_bf16 && config.run.precision == Precision::kBf16;
  const SampleStream samples(config, source);
  const auto tables = std::make_shared<const PipelineTables>(config);
  std::mutex mutex;  // guards trace where ranks write
  run_ranks(mesh,
            {.timeout = std::chrono::seconds(config.run.timeout_s),
             .threads_per_rank = 1,
             .faults = options.faults},
            [&](RankContext& rank) {
              RankTrainer trainer(config, samples, rank, tables);
              bool equal = equal_weights(trainer, rank);
              equal = equal_states(trainer, rank) && equal;
              std::map<std::string, bool> used;
              for (int64_t step = 0; step < options.steps; ++step) {
                const auto at = static_cast<size_t>(step);
                rank.traffic.clear();
                trainer.compute_gradients();
                for (const auto& [axis, now] : used_axes(trainer, rank, sums_in_bf16))
                  used[axis] = now && (step == 0 || used[axis]);
                equal = equal_gradients(trainer, rank) && equal;
                for (const Parameter* parameter : trainer.parameters()) {
                  if (options.ones) parameter->owned_gradient().fill_(1.0);
                  if (is_first_owner(trainer, rank))
                    gradients[at].write(*parameter, parameter->owned(), parameter->owned_gradient(),
                                        rank);
                }
                const StepResult result = trainer.apply_gradients();
                equal = equal_weights(trainer, rank) && equal;
                equal = equal_states(trainer, rank) && equal;
                if (rank.rank != 0) continue;
                trace.steps[at] = result;
                trace.unequal_tokens |= !all_equal(trainer.microbatch_tokens());
              }
              trainer.weights().visit([&](const Bucket& bucket) {
                if (!is_first_data_parallel_rank(rank)) return;
                for (const Parameter* parameter : bucket.parameters)
                  weights.write(*parameter, {0, parameter->num_elements()},
                                parameter->weight().view({-1}), rank);
              });
              const std::lock_guard<std::mutex> lock(mutex);
              trace.replicas_equal = trace.replicas_equal && equal;
              for (const auto& [axis, uses] : used)
                trace.axes_used[axis] =
                    uses && trace.axes_used.try_emplace(axis, true).first->second;
              if (trace.undeclared_bytes.empty())
                trace.undeclared_bytes = check_parameter_bytes(
                    trainer, rank, config.parallel.zero == ZeroStage::kParameters);
            });
  for (GlobalTensors& step : gradients) trace.gradients.push_back(step.take());
  trace.final_weights = weights.take();
  return trace;
}

}  // namespace sevenfold
