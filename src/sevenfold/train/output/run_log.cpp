#include "sevenfold/train/output/run_log.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "sevenfold/core/atomic_file.h"
#include "sevenfold/train/flops.h"

namespace sevenfold {
namespace {

double longest_blocked_s(const std::vector<RankStatistics>& all) {
  double longest = 0.0;
  for (const RankStatistics& statistics : all) longest = std::max(longest, statistics.blocked_s);
  return longest;
}

// With one stage nobody waits for a pipeline.
double bubble_rate_of(const Config& config, const std::vector<RankStatistics>& all) {
  if (config.mesh.pp == 1) return 0.0;
  return config.pipeline.post_validation ? bubble_rate_without_barrier(all) : bubble_rate(all);
}

}  // namespace

RunLog::RunLog(const Config& config, const RunDirectory& directory, double peak_tflops,
               int64_t continues_after)
    : config_(config),
      peak_flops_(peak_tflops * 1e12),
      memory_path_(directory.memory()),
      metrics_(directory.metrics(), continues_after),
      console_({.bar_is_terminal = isatty(STDERR_FILENO) == 1,
                .train_iters = config.run.train_iters,
                .log_interval = config.run.log_interval,
                .flops_per_sample_and_rank = flops_per_rank(1),
                .has_throughput = config.run.log_throughput}) {
  if (!config.run.tensorboard_directory.empty())
    tensorboard_.emplace(config.run.tensorboard_directory, continues_after);
}

double RunLog::flops_per_rank(int64_t samples) const {
  return step_flops(config_.model, samples) / static_cast<double>(config_.mesh.world_size());
}

void RunLog::explain_throughput() {
  const std::string mfu =
      peak_flops_ > 0.0
          ? fmt::format(
                "MFU and HFU are model and hardware FLOPs over a peak of {:g} TFLOP/s a rank",
                peak_flops_ * 1e-12)
          : std::string("MFU is left out, as no --peak-tflops is given");
  print(fmt::format(
      "throughput: model FLOPs a second and rank, {:.4g} TFLOPs a sample (2 for a multiplication "
      "and addition, backward twice the forward, causal attention in full; nothing for "
      "recomputation, "
      "norms, softmax and optimizer); hardware FLOPs, with what recomputation computes again: "
      "{:.4g} TFLOPs a sample; {}",
      step_flops(config_.model, 1) * 1e-12, hardware_step_flops(config_, 1) * 1e-12, mfu));
}

void RunLog::step(const StepReport& report, const std::vector<RankStatistics>& all) {
  const StepResult& result = report.result;
  StepMetrics metrics{.iteration = report.position.iteration,
                      .loss = result.loss,
                      .grad_norm = result.gradient_norm,
                      .lr = result.learning_rate,
                      .tokens = result.tokens,
                      .trained_tokens = result.trained_tokens,
                      .step_time_s = report.time_s,
                      .tokens_per_s = static_cast<double>(result.tokens) / report.time_s,
                      .bubble_rate = bubble_rate_of(config_, all),
                      .exposed_communication_s = longest_blocked_s(all),
                      .peak_memory = fullest_rank(all),
                      .loss_scale = result.loss_scale,
                      .is_skipped = result.is_skipped};
  if (peak_flops_ > 0.0) {
    const double peak = peak_flops_ * report.time_s;  // of one rank in this step
    const auto ranks = static_cast<double>(config_.mesh.world_size());
    metrics.mfu = flops_per_rank(result.global_batch_size) / peak;
    metrics.hfu = hardware_step_flops(config_, result.global_batch_size) / ranks / peak;
  }
  metrics_.write(metrics);
  step_to_tensorboard(report);
  console_.report_step({.iteration = report.position.iteration,
                        .consumed_samples = report.position.consumed_samples,
                        .step_time_s = report.time_s,
                        .lr = result.learning_rate,
                        .global_batch_size = result.global_batch_size,
                        .lm_loss = result.loss,
                        .loss_scale = result.loss_scale,
                        .grad_norm = result.gradient_norm,
                        .is_skipped = result.is_skipped,
                        .num_zeros = result.num_zeros,
                        .weight_norm = result.weight_norm});
  if (result.trained_tokens == 0)
    print(fmt::format(
        "warning: no token of iteration {} is trained (all labels are masked): the loss is 0 and "
        "weights move by weight decay and momentum only",
        report.position.iteration));
}

void RunLog::memory(const MemoryReport& report) {
  for (const std::string& line : to_lines(report)) print(line);
  write_file_atomically(memory_path_, to_json(report), "train");
}

// Megatron's tags.
void RunLog::step_to_tensorboard(const StepReport& report) {
  const int64_t iteration = report.position.iteration;
  if (!tensorboard_ || iteration % config_.run.tensorboard_log_interval != 0) return;
  const StepResult& result = report.result;
  const double tflops = flops_per_rank(result.global_batch_size) * 1e-12 / report.time_s;
  tensorboard_->add_scalar("lm loss", iteration, result.loss);
  tensorboard_->add_scalar("learning-rate", iteration, result.learning_rate);
  tensorboard_->add_scalar("grad-norm", iteration, result.gradient_norm);
  tensorboard_->add_scalar("batch-size", iteration, static_cast<double>(result.global_batch_size));
  tensorboard_->add_scalar("loss-scale", iteration, result.loss_scale);
  tensorboard_->add_scalar("iteration-time", iteration, report.time_s);
  tensorboard_->add_scalar("throughput", iteration, tflops);
  tensorboard_->flush();
}

void RunLog::evaluation(Split split, int64_t iteration, const ValidationResult& result) {
  const std::string_view set = split == Split::kTest ? "test" : "validation";
  if (tensorboard_) {
    tensorboard_->add_scalar(fmt::format("lm loss {}", set), iteration, result.loss);
    tensorboard_->flush();
  }
  metrics_.write(
      EvaluationMetrics{split, iteration, result.loss, result.trained_tokens, result.samples});
  console_.report_evaluation(split, iteration, result.loss, result.samples);
  if (result.trained_tokens == 0)
    print(
        fmt::format("warning: no token of the {0} samples is trained (all labels are masked): the "
                    "{0} loss says nothing",
                    set));
}

}  // namespace sevenfold
