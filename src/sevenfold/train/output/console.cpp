#include "sevenfold/train/output/console.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sevenfold/core/units.h"

namespace sevenfold {
namespace {

constexpr int64_t kBarColumns = 24;
// Redrawing for each of a thousand small steps a second would cost more than it shows.
constexpr double kSecondsBetweenBars = 0.1;

}  // namespace

std::string format_step_line(const StepLine& line) {
  return fmt::format(
      "iteration {:8d}/{:8d} | consumed samples: {:12d} | elapsed time per iteration (ms): {:.1f} "
      "| "
      "throughput per GPU (TFLOP/s/GPU): {:.1f} | learning rate: {:.6E} | global batch size: {:5d} "
      "| "
      "lm loss: {:.6E} | loss scale: {:.1f} | grad norm: {:.3f} | "
      "number of skipped iterations: {:3d} | number of nan iterations: {:3d} |",
      line.iteration, line.train_iters, line.consumed_samples, line.time_per_iteration_s * 1000.0,
      line.tflops_per_gpu, line.lr, line.global_batch_size, line.lm_loss, line.loss_scale,
      line.grad_norm, line.num_skipped, line.num_nan);
}

std::string format_validation_line(int64_t iteration, double lm_loss) {
  constexpr double kGreatestExponent = 20.0;
  // A NaN stays one: std::min returns its first argument when nothing is less.
  const double perplexity = std::exp(std::min(lm_loss, kGreatestExponent));
  return fmt::format(
      "validation loss at iteration {} | lm loss value: {:.6E} | lm loss PPL: {:.6E} |", iteration,
      lm_loss, perplexity);
}

std::string format_progress(int64_t iteration, int64_t train_iters, double time_per_iteration_s) {
  const int64_t total = std::max<int64_t>(train_iters, 1);
  const int64_t done = std::clamp<int64_t>(iteration, 0, total);
  const int64_t filled = kBarColumns * done / total;
  std::string bar(static_cast<size_t>(filled), '=');
  if (filled < kBarColumns) bar += '>';
  bar.resize(static_cast<size_t>(kBarColumns), ' ');
  const double rate = time_per_iteration_s > 0.0 ? 1.0 / time_per_iteration_s : 0.0;
  const double left_s = time_per_iteration_s * static_cast<double>(total - done);
  return fmt::format("[{}] {:3d}% {}/{} | {:.2f} steps/s | {} left", bar, 100 * done / total, done,
                     total, rate, format_duration(left_s));
}

void Console::report_step(const ConsoleStep& report) {
  ++steps_;
  ++interval_steps_;
  time_s_ += report.step_time_s;
  interval_time_s_ += report.step_time_s;
  if (!std::isfinite(report.lm_loss) || !std::isfinite(report.grad_norm)) ++interval_nan_;
  const bool is_last = report.iteration == options_.train_iters;
  if (is_last) remove_bar();
  if (is_last || report.iteration % std::max<int64_t>(options_.log_interval, 1) == 0) {
    print_step_line(report);
  }
  if (is_last) return;
  if (bar_.empty() || time_s_ - time_of_bar_s_ >= kSecondsBetweenBars) draw_bar(report.iteration);
}

void Console::report_validation(int64_t iteration, double lm_loss) {
  print(format_validation_line(iteration, lm_loss));
}

void Console::print(std::string_view line) {
  const std::string bar = bar_;
  remove_bar();
  fmt::print(options_.lines, "{}\n", line);
  std::fflush(options_.lines);
  if (bar.empty()) return;
  bar_ = bar;
  fmt::print(options_.bar, "{}", bar_);
  std::fflush(options_.bar);
}

void Console::print_step_line(const ConsoleStep& report) {
  const double mean_time_s = interval_time_s_ / static_cast<double>(interval_steps_);
  const double flops_per_s = mean_time_s > 0.0 ? options_.flops_per_rank / mean_time_s : 0.0;
  print(format_step_line({.iteration = report.iteration,
                          .train_iters = options_.train_iters,
                          .consumed_samples = report.consumed_samples,
                          .time_per_iteration_s = mean_time_s,
                          .tflops_per_gpu = flops_per_s * 1e-12,
                          .lr = report.lr,
                          .global_batch_size = options_.global_batch_size,
                          .lm_loss = report.lm_loss,
                          .loss_scale = 1.0,
                          .grad_norm = report.grad_norm,
                          .num_skipped = 0,
                          .num_nan = interval_nan_}));
  interval_steps_ = 0;
  interval_nan_ = 0;
  interval_time_s_ = 0.0;
}

void Console::draw_bar(int64_t iteration) {
  if (!options_.bar_is_terminal) return;
  remove_bar();
  bar_ = format_progress(iteration, options_.train_iters, time_s_ / static_cast<double>(steps_));
  time_of_bar_s_ = time_s_;
  fmt::print(options_.bar, "{}", bar_);
  std::fflush(options_.bar);
}

void Console::remove_bar() {
  if (bar_.empty()) return;
  bar_.clear();
  // Back to the first column, erase to the end of the line (ECMA-48).
  fmt::print(options_.bar, "\r\x1b[K");
  std::fflush(options_.bar);
}

}  // namespace sevenfold
