#include "sevenfold/train/proof/verify.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "sevenfold/core/error.h"
#include "sevenfold/train/limits.h"
#include "sevenfold/train/proof/layout_trace.h"

namespace sevenfold {
namespace {

constexpr double kGradientFloor = 1e-3;  // of the largest gradient of all

// NaN counts as an endless difference, so that no comparison passes on it.
double relative_difference(double reference, double value) {
  if (reference == value) return 0.0;
  const double difference =
      std::fabs(value - reference) / (reference == 0.0 ? 1.0 : std::fabs(reference));
  return std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference;
}

double largest(const at::Tensor& values) {
  return values.numel() == 0 ? 0.0 : values.abs().max().item<double>();
}

using Gradients = std::map<std::string, at::Tensor>;

// What differences of a gradient are measured against. Where keys are not rotated, a key bias adds
// the same to all scores of a query, which softmax does not see: its gradient is nothing but the
// rounding of terms that cancel, and those are of the size of the key weights' gradient.
double scale_of(const std::string& name, const Gradients& reference, double all) {
  constexpr std::string_view kKeyBias = "k_proj.bias", kBias = "bias";
  const double scale = std::max(largest(reference.at(name)), kGradientFloor * all);
  if (!name.ends_with(kKeyBias)) return scale;
  const std::string weight = name.substr(0, name.size() - kBias.size()) + "weight";
  return std::max(scale, largest(reference.at(weight)));
}

// factor: what the layout's gradients are multiplied by, where its loss scale is another.
void compare_gradients(const Gradients& reference, const Gradients& layout, double factor,
                       VerifyReport& report) {
  double all = 0.0;
  for (const auto& [name, gradient] : reference) all = std::max(all, largest(gradient));
  for (const auto& [name, gradient] : reference) {
    const auto found = layout.find(name);
    if (found == layout.end()) {
      if (report.missing_parameter.empty()) report.missing_parameter = name;
      continue;
    }
    const double scale = scale_of(name, reference, all);
    double difference = largest(found->second * factor - gradient);
    if (scale > 0.0) difference /= scale;
    if (std::isnan(difference)) difference = std::numeric_limits<double>::infinity();
    if (report.worst_parameter.empty() || difference > report.max_gradient_difference) {
      report.max_gradient_difference = std::max(difference, report.max_gradient_difference);
      report.worst_parameter = name;
    }
  }
  for (const auto& [name, gradient] : layout)
    SEVENFOLD_CHECK(reference.count(name) > 0, "one rank does not hold {}", name);
}

void compare(const LayoutTrace& reference, const LayoutTrace& layout, VerifyReport& report) {
  for (size_t step = 0; step < reference.steps.size(); ++step) {
    const StepResult &one = reference.steps[step], &many = layout.steps[step];
    report.steps.push_back({one.loss, many.loss, one.gradient_norm, many.gradient_norm});
    report.max_loss_difference =
        std::max(report.max_loss_difference, relative_difference(one.loss, many.loss));
    report.max_norm_difference = std::max(
        report.max_norm_difference, relative_difference(one.gradient_norm, many.gradient_norm));
    compare_gradients(reference.gradients[step], layout.gradients[step],
                      one.loss_scale / many.loss_scale, report);
  }
}

// Whether ranks round what one rank forms in fp32: the parts of a product that tensor-parallel
// ranks sum, and gradients for their sum over data-parallel ranks.
bool rounds_partial_sums(const Config& config) {
  const Precision precision = config.run.precision;
  const bool is_narrow = precision == Precision::kBf16 || precision == Precision::kFp16;
  return is_narrow && (config.mesh.tp > 1 || config.parallel.reduces_in_bf16);
}

// What rounding alone does to one rank, `reference`, which `wide` repeats in fp32.
Differences twice_the_rounding(const LayoutTrace& wide, const LayoutTrace& reference,
                               double tolerance) {
  VerifyReport own;
  compare(wide, reference, own);
  const auto allowed = [&](double difference) {
    return std::isfinite(difference) ? std::max(tolerance, 2 * difference) : tolerance;
  };
  return {allowed(own.max_loss_difference), allowed(own.max_norm_difference),
          allowed(own.max_gradient_difference)};
}

int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Fewest layers with the pattern of the stages: stages without layers stay so, of the others equal
// ones stay equal and larger ones larger.
std::vector<StageLayers> shrink_stages(std::vector<StageLayers> stages) {
  std::set<int64_t> sizes;
  for (const StageLayers& stage : stages)
    if (stage.num_layers > 0) sizes.insert(stage.num_layers);
  int64_t first = 0;
  for (StageLayers& stage : stages) {
    const auto size = sizes.find(stage.num_layers);
    stage.num_layers = size == sizes.end() ? 0 : std::distance(sizes.begin(), size) + 1;
    stage.first_layer = first;
    first += stage.num_layers;
  }
  return stages;
}

void shrink_layers(Config& config) {
  int64_t& num_layers = config.model.num_layers;
  std::vector<StageLayers>& stages = config.pipeline.stages;
  if (config.mesh.pp == 1) {
    num_layers = std::min<int64_t>(num_layers, 2);
    if (!stages.empty()) stages.front().num_layers = num_layers;
    return;
  }
  stages = shrink_stages(std::move(stages));
  num_layers = stages.back().first_layer + stages.back().num_layers;
}

}  // namespace

double proof_tolerance(Precision precision) {
  switch (precision) {
    case Precision::kFp64:
      return 1e-9;
    case Precision::kFp32:
      return 1e-4;
    // A sum in another order moves a master weight in its last bit and so, now and then, a rounded
    // weight by 2^-8 of itself.
    case Precision::kBf16:
    case Precision::kFp16:
      return 3e-2;
  }
  raise<InternalError>("train: unknown precision {}", static_cast<int>(precision));
}

Config proof_config(Config config) {
  config.run.start = StartKind::kHot;
  config.optimizer.kind = OptimizerKind::kSgd;
  config.optimizer.sgd_momentum = 0.0;
  // A dynamic loss scale would spend the few steps on finding its value.
  constexpr double kLossScale = 1024.0;
  LossScaleConfig& scale = config.run.loss_scale;
  if (config.run.precision == Precision::kFp16 && scale.constant == 0.0)
    scale.constant = kLossScale;
  return config;
}

Config one_rank_config(Config config) {
  MeshShape one;
  one.ranks_per_node = config.mesh.ranks_per_node;
  config.data.order_dp_size = config.mesh.dp;  // cyclic order depends on it
  config.mesh = one;
  config.parallel.sequence = false;
  config.parallel.zero = ZeroStage::kNone;
  config.parallel.reduces_in_bf16 = false;
  config.recompute = {};
  config.pipeline = {};
  config.pipeline.stages = {
      {.num_layers = config.model.num_layers, .has_embedding = true, .has_head = true}};
  config.batch.num_microbatches = config.batch.global_batch_size / config.batch.micro_batch_size;
  return config;
}

Config shrink_config(Config config) {
  constexpr int64_t kHeadSize = 8, kVocabulary = 211, kShortest = 32;
  ModelConfig& model = config.model;
  const MeshShape& mesh = config.mesh;
  const double ffn_ratio =
      static_cast<double>(model.ffn_hidden_size) / static_cast<double>(model.hidden_size);
  shrink_layers(config);
  for (int64_t& id : config.recompute.layer_ids) id %= model.num_layers;
  std::sort(config.recompute.layer_ids.begin(), config.recompute.layer_ids.end());
  model.kv_channels = kHeadSize;
  model.rotary_percent =
      std::max(1.0, std::round(model.rotary_percent * kHeadSize / 2)) * 2 / kHeadSize;
  model.hidden_size = model.num_attention_heads * kHeadSize;
  model.ffn_hidden_size =
      round_up(static_cast<int64_t>(ffn_ratio * static_cast<double>(model.hidden_size)),
               kHeadSize * mesh.tp);
  model.vocab_size = kVocabulary;
  model.seq_length = round_up(kShortest, mesh.tp * 2 * mesh.cp);
  model.max_position_embeddings = model.seq_length;
  // Two sets of shards, of two ranks each, show what more would.
  const int64_t sets = std::min<int64_t>(2, mesh.dp_replicate);
  config.mesh.dp = sets * std::clamp<int64_t>(mesh.dp / mesh.dp_replicate, 1, 2);
  config.mesh.dp_replicate = sets;
  config.mesh.tp_copies = key_value_copies(model, mesh.tp);
  config.batch.schedule.clear();
  config.batch.global_batch_size =
      config.batch.micro_batch_size * config.mesh.dp * config.batch.num_microbatches;
  return config;
}

std::string VerifyReport::failure() const {
  if (!missing_parameter.empty())
    return fmt::format("no rank of the layout holds {}: a layer is lost", missing_parameter);
  if (!(max_loss_difference <= allowed.loss))
    return fmt::format("the loss differs by {:.3g} (relative), more than {:.0e}",
                       max_loss_difference, allowed.loss);
  if (!(max_norm_difference <= allowed.norm))
    return fmt::format("the gradient norm differs by {:.3g} (relative), more than {:.0e}",
                       max_norm_difference, allowed.norm);
  if (!(max_gradient_difference <= allowed.gradient))
    return fmt::format("the gradient of {} differs by {:.3g} (relative), more than {:.0e}",
                       worst_parameter, max_gradient_difference, allowed.gradient);
  if (!replicas_equal)
    return "replicated weights, gradients or optimizer states are not the same bits on all ranks";
  for (const auto& [axis, used] : axes_used)
    if (!used)
      return fmt::format(
          "gradients were computed without sending what axis {} must send: the layout replicates "
          "silently",
          axis);
  return undeclared_bytes;
}

VerifyReport verify_layout(const Config& config, const SampleSource& source,
                           const VerifyOptions& options) {
  check_fits_machine(config);
  VerifyReport report;
  report.layout = config.mesh;
  report.precision = config.run.precision;
  report.tolerance = proof_tolerance(config.run.precision);
  const auto trace = [&](const Config& run, FaultSet faults) {
    try {
      return trace_layout(run, source, {.steps = options.steps, .faults = faults});
    } catch (const DataError& error) {
      throw Error(error.what());  // met under way: a failed run, not a refused one
    }
  };
  const LayoutTrace reference = trace(one_rank_config(config), {});
  report.allowed = {report.tolerance, report.tolerance, report.tolerance};
  if (rounds_partial_sums(config)) {
    Config wide = one_rank_config(config);
    wide.run.precision = Precision::kFp32;
    report.allowed = twice_the_rounding(trace(wide, {}), reference, report.tolerance);
  }
  const LayoutTrace layout = trace(config, options.faults);
  compare(reference, layout, report);
  report.replicas_equal = layout.replicas_equal;
  report.unequal_tokens = reference.unequal_tokens;
  report.axes_used = layout.axes_used;
  report.undeclared_bytes = layout.undeclared_bytes;
  report.pass = report.failure().empty();
  return report;
}

}  // namespace sevenfold
