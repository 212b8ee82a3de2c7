#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "sevenfold/dataset/order/split.h"

namespace sevenfold {

// What the console says of one step, in Megatron's words.
struct StepLine {
  int64_t iteration = 0;
  int64_t train_iters = 0;
  int64_t consumed_samples = 0;
  double time_per_iteration_s = 0.0;
  double tflops_per_gpu = 0.0;  // model TFLOPs a second and rank
  double lr = 0.0;
  int64_t global_batch_size = 0;
  double lm_loss = 0.0;
  double loss_scale = 1.0;
  double grad_norm = 0.0;
  // Left out where there are none: log_throughput, log_num_zeros_in_grad, log_params_norm.
  bool has_throughput = true;
  std::optional<int64_t> num_zeros;
  std::optional<double> weight_norm;
  int64_t num_skipped = 0;
  int64_t num_nan = 0;
};

// Megatron's line without its time stamp; scripts that read Megatron's logs read this one.
std::string format_step_line(const StepLine& line);
// "validation loss at iteration 100 | lm loss value: 2.100000E+00 | lm loss PPL: 8.166170E+00 |
// samples: 800 |", in one line. As in Megatron the perplexity is that of a loss of at most 20.
// samples: how many it was taken over. Of the test set: "... at iteration 100 on test set | ...".
std::string format_evaluation_line(Split split, int64_t iteration, double lm_loss, int64_t samples);
// "[=====>    ]  55% 55/100 | 1.25 steps/s | 36s left"
std::string format_progress(int64_t iteration, int64_t train_iters, double time_per_iteration_s);

struct ConsoleOptions {
  std::FILE* lines = stdout;
  std::FILE* bar = stderr;
  bool bar_is_terminal = false;  // isatty(2): without a terminal there is no bar
  int64_t train_iters = 0;
  int64_t log_interval = 1;                // steps per line
  double flops_per_sample_and_rank = 0.0;  // model FLOPs of a sample, divided by the ranks
  bool has_throughput = true;
};

// What a step reports.
struct ConsoleStep {
  int64_t iteration = 0;
  int64_t consumed_samples = 0;  // including this step's
  double step_time_s = 0.0;
  double lr = 0.0;
  int64_t global_batch_size = 0;
  double lm_loss = 0.0;
  double loss_scale = 1.0;
  double grad_norm = 0.0;
  bool is_skipped = false;
  std::optional<int64_t> num_zeros = {};
  std::optional<double> weight_norm = {};
};

// Prints a line per log_interval steps and after the last one: means over its steps of the loss
// (skipped ones left out, where others are there) and the time, how many were skipped, how many had
// a loss that is not finite; everything else is its last step's. On a terminal a
// progress bar stands below the lines; it is taken away before a line is printed and when the
// console is destroyed. Used by one thread of one rank.
class Console {
 public:
  explicit Console(const ConsoleOptions& options) : options_(options) {}
  ~Console() { remove_bar(); }
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  void report_step(const ConsoleStep& report);
  void report_evaluation(Split split, int64_t iteration, double lm_loss, int64_t samples);
  // Any other line (without line end): anything printed past the console would land in the bar.
  void print(std::string_view line);

 private:
  void print_step_line(const ConsoleStep& report);
  void draw_bar(int64_t iteration);
  void remove_bar();

  ConsoleOptions options_;
  // Since the last line.
  struct Interval {
    int64_t steps = 0;
    int64_t skipped = 0;
    int64_t nan = 0;
    int64_t samples = 0;
    double time_s = 0.0;
    double loss_of_taken = 0.0;  // sums
    double loss_of_skipped = 0.0;

    void add(const ConsoleStep& report);
    double mean_loss() const;
  };
  Interval interval_;
  // Since the start.
  int64_t steps_ = 0;
  double time_s_ = 0.0;
  double time_of_bar_s_ = 0.0;
  std::string bar_;  // as it stands on the terminal; empty: none
};

}  // namespace sevenfold
