#include "sevenfold/train/limits.h"

#include <ATen/ATen.h>
#include <unistd.h>

#include "sevenfold/core/error.h"
#include "sevenfold/core/units.h"
#include "sevenfold/model/model.h"
#include "sevenfold/optim/optimizer.h"
#include "sevenfold/optim/step_copies.h"
#include "sevenfold/train/rank_trainer.h"

namespace sevenfold {

namespace {

// Of one rank for each pipeline coordinate, together.
double local_parameters(const Config& config) {
  const int64_t tp = config.mesh.tp;
  if (config.mesh.pp == 1) return static_cast<double>(max_local_parameters(config.model, tp));
  double parameters = 0.0;
  for (const StageLayers& stage : config.pipeline.stages)
    parameters += static_cast<double>(max_local_parameters(config.model, tp, stage));
  const bool has_twins = static_cast<int64_t>(config.pipeline.stages.size()) <
                         config.mesh.pp * config.pipeline.num_chunks;
  return has_twins ? 2.0 * parameters : parameters;
}

}  // namespace

double resident_bytes(const Config& config) {
  const at::ScalarType type = model_dtype(config.run.precision);
  const auto weight = static_cast<double>(c10::elementSize(type));
  const auto full = static_cast<double>(c10::elementSize(gradient_type(type)));
  const auto ranks = static_cast<double>(config.mesh.world_size());
  const double owners = ranks / static_cast<double>(config.mesh.dp_shard_cp());
  const ZeroStage stage = config.parallel.zero;
  const int64_t copies =
      config.pipeline.post_validation ? step_copy_bytes(config.optimizer, config.run.precision) : 0;
  const auto of_states =
      static_cast<double>(optimizer_state_bytes(config.optimizer, config.run.precision) + copies);
  const double per_rank = local_parameters(config) / static_cast<double>(config.mesh.pp);
  return per_rank * (weight * (stage == ZeroStage::kParameters ? owners : ranks) +
                     full * (stage >= ZeroStage::kGradients ? owners : ranks) +
                     of_states * (stage == ZeroStage::kNone ? ranks : owners));
}

void check_fits_machine(const Config& config) {
  const int64_t ranks = config.mesh.world_size();
  if (ranks > kMaxThreadRanks)
    raise<ConfigError>(
        "train: {} ranks as threads of one process are too many; the simulated cluster runs at "
        "most {}; "
        "use fewer --ranks",
        ranks, kMaxThreadRanks);
  const double machine =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  const double needed = resident_bytes(config);
  if (machine > 0 && needed > machine)
    raise<ConfigError>(
        "train: weights, gradients and optimizer states of {} parameters on {} rank{} need {:.1f} "
        "GiB, this "
        "machine has {:.1f} GiB; use a smaller model or fewer --ranks, or check the layout with "
        "`sevenfold verify --shrink`",
        with_commas(num_parameters(config.model)), ranks, ranks == 1 ? "" : "s", needed / 0x1p30,
        machine / 0x1p30);
}

}  // namespace sevenfold
