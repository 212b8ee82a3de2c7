#include "sevenfold/train/output/console.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>

namespace sevenfold {
namespace {

// An open file of no name, and what was written to it.
class Capture {
 public:
  Capture() : file_(std::tmpfile()) {}
  ~Capture() { std::fclose(file_); }
  std::FILE* file() const { return file_; }
  std::string text() const {
    std::string text(static_cast<size_t>(std::ftell(file_)), '\0');
    std::rewind(file_);
    text.resize(std::fread(text.data(), 1, text.size(), file_));
    return text;
  }

 private:
  std::FILE* file_;
};

int64_t count_of(const std::string& text, const std::string& part) {
  int64_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(StepLine, HasMegatronsForm) {
  EXPECT_EQ(
      format_step_line({.iteration = 5,
                        .train_iters = 100,
                        .consumed_samples = 640,
                        .time_per_iteration_s = 0.8124,
                        .tflops_per_gpu = 0.1,
                        .lr = 1e-5,
                        .global_batch_size = 128,
                        .lm_loss = 5.123456,
                        .loss_scale = 1.0,
                        .grad_norm = 2.345}),
      "iteration        5/     100 | consumed samples:          640 | elapsed time per iteration "
      "(ms): 812.4 | throughput per GPU (TFLOP/s/GPU): 0.1 | learning rate: 1.000000E-05 | "
      "global batch size:   128 | lm loss: 5.123456E+00 | loss scale: 1.0 | grad norm: 2.345 | "
      "number of skipped iterations:   0 | number of nan iterations:   0 |");
}

TEST(StepLine, HasWhatTheLogKeysAskFor) {
  const std::string line = format_step_line({.iteration = 5,
                                             .train_iters = 100,
                                             .has_throughput = false,
                                             .num_zeros = 12,
                                             .weight_norm = 30.25});
  EXPECT_EQ(line.find("throughput"), std::string::npos);
  EXPECT_NE(line.find("(ms): 0.0 | learning rate:"), std::string::npos) << line;
  EXPECT_NE(line.find("| grad norm: 0.000 | num zeros: 12 | params norm: 30.250 | number of"),
            std::string::npos)
      << line;
}

TEST(EvaluationLine, HasMegatronsFormAndItsLimitOfThePerplexity) {
  EXPECT_EQ(format_evaluation_line(Split::kTest, 100, 2.1, 800),
            "validation loss at iteration 100 on test set | lm loss value: 2.100000E+00 | lm loss "
            "PPL: 8.166170E+00 | samples: 800 |");
  EXPECT_EQ(format_evaluation_line(Split::kValid, 100, 2.1, 800),
            "validation loss at iteration 100 | lm loss value: 2.100000E+00 | lm loss PPL: "
            "8.166170E+00 | samples: 800 |");
  EXPECT_EQ(
      format_evaluation_line(Split::kValid, 1, 1000.0, 8),
      "validation loss at iteration 1 | lm loss value: 1.000000E+03 | lm loss PPL: 4.851652E+08 | "
      "samples: 8 |");
  EXPECT_EQ(
      format_evaluation_line(Split::kValid, 1, std::nan(""), 8),
      "validation loss at iteration 1 | lm loss value: NAN | lm loss PPL: NAN | samples: 8 |");
}

TEST(Progress, ShowsShareRateAndTimeLeft) {
  EXPECT_EQ(format_progress(0, 100, 0.0),
            "[>                       ]   0% 0/100 | 0.00 steps/s | 0s left");
  EXPECT_EQ(format_progress(50, 100, 2.0),
            "[============>           ]  50% 50/100 | 0.50 steps/s | 1m 40s left");
  EXPECT_EQ(format_progress(100, 100, 0.25),
            "[========================] 100% 100/100 | 4.00 steps/s | 0s left");
}

ConsoleOptions options_for(const Capture& lines, const Capture& bar, bool is_terminal) {
  return {.lines = lines.file(),
          .bar = bar.file(),
          .bar_is_terminal = is_terminal,
          .train_iters = 5,
          .log_interval = 2,
          .flops_per_sample_and_rank = 0.25e12};
}

ConsoleStep step_with(int64_t iteration, double loss) {
  return {.iteration = iteration,
          .consumed_samples = 8 * iteration,
          .step_time_s = 0.25 * static_cast<double>(iteration),
          .lr = 0.01,
          .global_batch_size = 8,
          .lm_loss = loss,
          .grad_norm = 1.0};
}

void report_five_steps(Console& console) {
  for (int64_t i = 1; i <= 5; ++i) console.report_step(step_with(i, 6.0 - static_cast<double>(i)));
}

// The only line of an interval of two steps.
std::string line_of(const ConsoleStep& first, const ConsoleStep& second) {
  const Capture lines, bar;
  Console console(options_for(lines, bar, false));
  console.report_step(first);
  console.report_step(second);
  return lines.text();
}

TEST(Console, PrintsMeansOfLossAndTimeOverEachInterval) {
  const Capture lines, bar;
  {
    Console console(options_for(lines, bar, false));
    report_five_steps(console);
  }
  const std::string text = lines.text();
  EXPECT_EQ(count_of(text, "\n"), 3);  // steps 2 and 4, and 5, the last of the run
  const std::string second = text.substr(text.find('\n') + 1);
  EXPECT_EQ(
      second.substr(0, second.find('\n')),
      "iteration        4/       5 | consumed samples:           32 | elapsed time per iteration "
      "(ms): 875.0 | throughput per GPU (TFLOP/s/GPU): 2.3 | learning rate: 1.000000E-02 | "
      "global batch size:     8 | lm loss: 2.500000E+00 | loss scale: 1.0 | grad norm: 1.000 | "
      "number of skipped iterations:   0 | number of nan iterations:   0 |");
}

TEST(Console, LeavesSkippedStepsOutOfTheMeanLoss) {
  ConsoleStep first = step_with(1, std::nan("")), second = step_with(2, 3.5);
  first.is_skipped = true;
  first.loss_scale = 64.0;
  second.loss_scale = 32.0;
  const std::string line = line_of(first, second);
  EXPECT_EQ(count_of(line, "| lm loss: 3.500000E+00 | loss scale: 32.0 |"), 1) << line;
  EXPECT_EQ(count_of(line, "skipped iterations:   1 | number of nan iterations:   1 |"), 1) << line;
}

TEST(Console, ShowsTheLossOfAnIntervalThatWasSkippedAsAWhole) {
  ConsoleStep first = step_with(1, 4.0), second = step_with(2, 6.0);
  first.is_skipped = second.is_skipped = true;
  const std::string line = line_of(first, second);
  EXPECT_EQ(count_of(line, "| lm loss: 5.000000E+00 |"), 1) << line;
  EXPECT_EQ(count_of(line, "skipped iterations:   2 | number of nan iterations:   0 |"), 1) << line;
}

TEST(Console, CountsSamplesWhereTheBatchGrows) {
  ConsoleStep first = step_with(1, 4.0), second = step_with(2, 6.0);
  first.global_batch_size = 4;
  const std::string line = line_of(first, second);
  // 12 samples of 0.25 TFLOPs in 0.25 + 0.5 s.
  EXPECT_EQ(count_of(line, "(TFLOP/s/GPU): 4.0 |"), 1) << line;
  EXPECT_EQ(count_of(line, "global batch size:     8 |"), 1) << line;
}

// A resumed run; what it did before counts neither for the first line nor for the time left.
TEST(Console, MayBeginInTheMiddleOfAnInterval) {
  const Capture lines, bar;
  ConsoleOptions options = options_for(lines, bar, true);
  options.train_iters = 9;
  Console console(options);
  console.report_step(step_with(4, 3.0));
  const std::string text = lines.text();
  EXPECT_EQ(count_of(text,
                     "iteration        4/       9 | consumed samples:           32 | elapsed "
                     "time per iteration (ms): 1000.0 |"),
            1)
      << text;
  EXPECT_EQ(count_of(text, "| lm loss: 3.000000E+00 |"), 1) << text;
  EXPECT_EQ(bar.text(), format_progress(4, 9, 1.0));
}

TEST(Console, ShowsNoBarWithoutATerminal) {
  const Capture lines, bar;
  {
    Console console(options_for(lines, bar, false));
    report_five_steps(console);
    console.report_evaluation(Split::kValid, 5, 2.1, 8);
  }
  EXPECT_EQ(bar.text(), "");
  EXPECT_EQ(lines.text().find('\x1b'), std::string::npos);
  EXPECT_EQ(lines.text().find('\r'), std::string::npos);
}

TEST(Console, TakesTheBarAwayBeforeALineAndAtTheEnd) {
  const Capture terminal;
  {
    Console console(options_for(terminal, terminal, true));
    report_five_steps(console);
    console.print("a notice");
  }
  const std::string text = terminal.text();
  EXPECT_EQ(count_of(text, "["), 2 * count_of(text, "\r\x1b[K"));  // each bar was removed
  EXPECT_GE(count_of(text, "\r\x1b[K"), 4);
  EXPECT_EQ(count_of(text, "left\n"), 0);  // no line ends in a bar
  EXPECT_EQ(text.substr(text.size() - 11), "|\na notice\n");
}

TEST(Console, PutsTheBarBackBelowALine) {
  const Capture lines, bar;
  ConsoleOptions options = options_for(lines, bar, true);
  options.log_interval = 100;
  Console console(options);
  console.report_step({.iteration = 1, .step_time_s = 0.5});
  console.report_evaluation(Split::kValid, 1, 2.0, 8);
  const std::string shown = format_progress(1, 5, 0.5);
  EXPECT_EQ(bar.text(), shown + "\r\x1b[K" + shown);
  EXPECT_EQ(count_of(lines.text(), "\n"), 1);
}

}  // namespace
}  // namespace sevenfold
