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
  std::string text = fmt::format(
      "iteration {:8d}/{:8d} | consumed samples: {:12d} | elapsed time per iteration (ms): {:.1f} "
      "|",
      line.iteration, line.train_iters, line.consumed_samples, line.time_per_iteration_s * 1000.0);
  if (line.has_throughput)
    text += fmt::format(" throughput per GPU (TFLOP/s/GPU): {:.1f} |", line.tflops_per_gpu);
  text += fmt::format(
      " learning rate: {:.6E} | global batch size: {:5d} | lm loss: {:.6E} | loss scale: {:.1f} | "
      "grad norm: {:.3f} |",
      line.lr, line.global_batch_size, line.lm_loss, line.loss_scale, line.grad_norm);
  if (line.num_zeros) text += fmt::format(" num zeros: {} |", *line.num_zeros);
  if (line.weight_norm) text += fmt::format(" params norm: {:.3f} |", *line.weight_norm);
  return text +
         fmt::format(" number of skipped iterations: {:3d} | number of nan iterations: {:3d} |",
                     line.num_skipped, line.num_nan);
}

std::string format_evaluation_line(Split split, int64_t iteration, double lm_loss,
                                   int64_t samples) {
  constexpr double kGreatestExponent = 20.0;
  // A NaN stays one: std::min returns its first argument when nothing is less.
  const double perplexity = std::exp(std::min(lm_loss, kGreatestExponent));
  return fmt::format(
      "validation loss at iteration {}{} | lm loss value: {:.6E} | lm loss PPL: {:.6E} | "
      "samples: {} |",
      iteration, split == Split::kTest ? " on test set" : "", lm_loss, perplexity, samples);
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

void Console::Interval::add(const ConsoleStep& report) {
  ++steps;
  samples += report.global_batch_size;
  time_s += report.step_time_s;
  if (!std::isfinite(report.lm_loss)) ++nan;
  if (report.is_skipped) ++skipped;
  (report.is_skipped ? loss_of_skipped : loss_of_taken) += report.lm_loss;
}

double Console::Interval::mean_loss() const {
  if (skipped == steps) return loss_of_skipped / static_cast<double>(steps);
  return loss_of_taken / static_cast<double>(steps - skipped);
}

void Console::report_step(const ConsoleStep& report) {
  ++steps_;
  time_s_ += report.step_time_s;
  interval_.add(report);
  const bool is_last = report.iteration == options_.train_iters;
  if (is_last) remove_bar();
  if (is_last || report.iteration % std::max<int64_t>(options_.log_interval, 1) == 0) {
    print_step_line(report);
  }
  if (is_last) return;
  if (bar_.empty() || time_s_ - time_of_bar_s_ >= kSecondsBetweenBars) draw_bar(report.iteration);
}

void Console::report_evaluation(Split split, int64_t iteration, double lm_loss, int64_t samples) {
  print(format_evaluation_line(split, iteration, lm_loss, samples));
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
  const double flops = options_.flops_per_sample_and_rank * static_cast<double>(interval_.samples);
  print(format_step_line(
      {.iteration = report.iteration,
       .train_iters = options_.train_iters,
       .consumed_samples = report.consumed_samples,
       .time_per_iteration_s = interval_.time_s / static_cast<double>(interval_.steps),
       .tflops_per_gpu = interval_.time_s > 0.0 ? flops * 1e-12 / interval_.time_s : 0.0,
       .lr = report.lr,
       .global_batch_size = report.global_batch_size,
       .lm_loss = interval_.mean_loss(),
       .loss_scale = report.loss_scale,
       .grad_norm = report.grad_norm,
       .has_throughput = options_.has_throughput,
       .num_zeros = report.num_zeros,
       .weight_norm = report.weight_norm,
       .num_skipped = interval_.skipped,
       .num_nan = interval_.nan}));
  interval_ = {};
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
