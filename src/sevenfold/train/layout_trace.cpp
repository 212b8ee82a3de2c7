#include "sevenfold/train/layout_trace.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <mutex>

#include "sevenfold/core/error.h"
#include "sevenfold/dist/replicas.h"
#include "sevenfold/dist/threads/cluster.h"

namespace sevenfold {
namespace {

// Logical tensors put together from the slices of the ranks of one process.
class GlobalTensors {
 public:
  void write(const Parameter& parameter, const at::Tensor& local, const RankContext& rank) {
    if (!holds_first_copy(parameter, rank)) return;
    const Slice slice = local_slice(parameter.spec(), *rank.mesh, rank.coordinates);
    const std::lock_guard<std::mutex> lock(mutex_);
    at::Tensor& whole = tensors_[parameter.name()];
    if (!whole.defined()) whole = at::zeros(parameter.spec().global_shape, local.options());
    at::Tensor part = whole;
    for (size_t dim = 0; dim < slice.sizes.size(); ++dim)
      part = part.narrow(static_cast<int64_t>(dim), slice.offsets[dim], slice.sizes[dim]);
    part.copy_(local);
  }
  std::map<std::string, at::Tensor> take() { return std::move(tensors_); }

 private:
  static bool holds_first_copy(const Parameter& parameter, const RankContext& rank) {
    return rank.coordinates[static_cast<size_t>(Axis::kDp)] == 0 &&
           rank.coordinates[static_cast<size_t>(Axis::kCp)] == 0 &&
           counts_in_norm(parameter.spec(), *rank.mesh, rank.coordinates);
  }

  std::mutex mutex_;
  std::map<std::string, at::Tensor> tensors_;
};

bool names_axis(const std::string& group, std::string_view axis) {
  for (size_t at = 0; at <= group.size();) {
    const size_t end = std::min(group.find('-', at), group.size());
    if (group.substr(at, end - at) == axis) return true;
    at = end + 1;
  }
  return false;
}

void add_axis_bytes(const RankContext& rank, std::map<std::string, int64_t>& axis_bytes) {
  for (int axis = 0; axis < kNumAxes; ++axis) {
    const std::string name(axis_name(static_cast<Axis>(axis)));
    for (const auto& [key, entry] : rank.traffic.entries())
      if (names_axis(key.first, name)) axis_bytes[name] += entry.bytes_sent;
  }
}

bool replicas_equal(const RankTrainer& trainer, const RankContext& rank) {
  bool equal = true;
  for (const Parameter* parameter : trainer.parameters())
    equal = bits_equal_over(rank.group("dp-cp"), parameter->weight()) && equal;
  return equal;
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
  std::mutex mutex;  // guards trace where ranks write
  run_ranks(mesh,
            {.timeout = std::chrono::seconds(config.run.timeout_s),
             .threads_per_rank = 1,
             .faults = options.faults},
            [&](RankContext& rank) {
              RankTrainer trainer(config, source, rank);
              bool equal = replicas_equal(trainer, rank);
              for (int64_t step = 0; step < options.steps; ++step) {
                const auto at = static_cast<size_t>(step);
                trainer.compute_gradients(step);
                for (const Parameter* parameter : trainer.parameters()) {
                  if (options.ones) parameter->gradient().fill_(1.0);
                  gradients[at].write(*parameter, parameter->gradient(), rank);
                }
                const StepResult report = trainer.apply_gradients(step);
                equal = replicas_equal(trainer, rank) && equal;
                if (rank.rank == 0) {
                  trace.steps[at] = report;
                  const std::vector<int64_t>& tokens = trainer.microbatch_tokens();
                  trace.unequal_tokens |= std::adjacent_find(tokens.begin(), tokens.end(),
                                                             std::not_equal_to<>()) != tokens.end();
                }
              }
              for (const Parameter* parameter : trainer.parameters())
                weights.write(*parameter, parameter->weight(), rank);
              const std::lock_guard<std::mutex> lock(mutex);
              trace.replicas_equal = trace.replicas_equal && equal;
              add_axis_bytes(rank, trace.axis_bytes);
              if (trace.undeclared_bytes.empty())
                trace.undeclared_bytes = check_parameter_bytes(trainer, rank);
            });
  for (GlobalTensors& step : gradients) trace.gradients.push_back(step.take());
  trace.final_weights = weights.take();
  return trace;
}

}  // namespace sevenfold
