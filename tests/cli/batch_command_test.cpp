#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "cli/run_command.h"
#include "config/experiment_files.h"
#include "sevenfold/cli/batch_equation.h"
#include "sevenfold/core/error.h"

namespace sevenfold::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

Outcome run_batch(std::vector<std::string> words) {
  return run_command(add_batch_command, "batch", std::move(words));
}

std::string error_for(const BatchRequest& request) {
  try {
    solve_batch(request);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(BatchEquation, SolvesForEachSize) {
  const BatchSizes whole{128, 4, 8, 4};
  const std::vector<BatchSizes> only{whole};
  EXPECT_EQ(solve_batch({.micro_batch = 4, .dp = 8, .accumulation = 4}), only);
  EXPECT_EQ(solve_batch({.global_batch = 128, .dp = 8, .accumulation = 4}), only);
  EXPECT_EQ(solve_batch({.global_batch = 128, .micro_batch = 4, .accumulation = 4}), only);
  EXPECT_EQ(solve_batch({.global_batch = 128, .micro_batch = 4, .dp = 8}), only);
  EXPECT_EQ(solve_batch({.global_batch = 128, .micro_batch = 4, .dp = 8, .accumulation = 4}), only);
}

TEST(BatchEquation, ListsWhatTwoSizesLeaveOpen) {
  EXPECT_EQ(solve_batch({.global_batch = 12, .micro_batch = 3}),
            (std::vector<BatchSizes>{{12, 3, 4, 1}, {12, 3, 2, 2}, {12, 3, 1, 4}}));
  EXPECT_EQ(solve_batch({.global_batch = 6, .accumulation = 2}),
            (std::vector<BatchSizes>{{6, 3, 1, 2}, {6, 1, 3, 2}}));
  const auto open = solve_batch({.micro_batch = 2, .dp = 3});
  ASSERT_EQ(open.size(), 8u);
  EXPECT_EQ(open[2], (BatchSizes{18, 2, 3, 3}));
}

TEST(BatchEquation, EverySolutionKeepsTheEquation) {
  for (int64_t global = 1; global <= 64; ++global)
    for (int64_t micro = 1; micro <= 8; ++micro) {
      if (global % micro != 0) continue;
      const auto solutions = solve_batch({.global_batch = global, .micro_batch = micro});
      int64_t num_divisors = 0;
      for (int64_t i = 1; i <= global / micro; ++i) num_divisors += (global / micro) % i == 0;
      EXPECT_EQ(static_cast<int64_t>(solutions.size()), num_divisors);
      for (const BatchSizes& sizes : solutions)
        EXPECT_EQ(sizes.micro_batch * sizes.dp * sizes.accumulation, global);
    }
}

TEST(BatchEquation, NamesTheNumbersAndTheNearestSizes) {
  EXPECT_EQ(error_for({.global_batch = 6, .micro_batch = 2, .dp = 2}),
            "batch: --global-batch 6: 6 is not micro batch 2 x dp 2 x a whole number; use "
            "--global-batch 4 or 8");
  EXPECT_THAT(error_for({.global_batch = 2, .dp = 4, .accumulation = 1}),
              HasSubstr("2 is not dp 4 x accumulation 1 x a whole number; use --global-batch 4"));
  EXPECT_EQ(error_for({.global_batch = 6, .micro_batch = 2, .dp = 2, .accumulation = 2}),
            "batch: --global-batch 6 is not micro batch 2 x dp 2 x accumulation 2 = 8; use "
            "--global-batch 8, or leave one of the four out");
  EXPECT_THAT(error_for({.global_batch = 8}), HasSubstr("has four sizes, and 1 of them is given"));
  EXPECT_THAT(error_for({}), HasSubstr("0 of them"));
  EXPECT_THAT(error_for({.micro_batch = int64_t{1} << 31,
                         .dp = int64_t{1} << 31,
                         .accumulation = int64_t{1} << 31}),
              HasSubstr("more than a global batch can be"));
}

TEST(BatchCommand, PrintsTheEquation) {
  const Outcome outcome = run_batch({"--global-batch", "128", "--micro-batch", "4", "--dp", "8"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
  EXPECT_THAT(outcome.out,
              StartsWith("global batch 128 = micro batch 4 x dp 8 x accumulation 4\nnext: "));
  const auto document =
      nlohmann::json::parse(run_batch({"--dp", "2", "--global-batch", "8", "--json"}).out);
  EXPECT_EQ(document["determined"], false);
  EXPECT_EQ(document["solutions"].size(), 3u);
  const auto whole = nlohmann::json::parse(
      run_batch({"--dp", "2", "--micro-batch", "3", "--accumulation", "5", "--json"}).out);
  EXPECT_EQ(whole["global_batch"], 30);
}

TEST(BatchCommand, FailsInOneLineWithExitCode2) {
  const Outcome outcome = run_batch({"--global-batch", "6", "--micro-batch", "2", "--dp", "2"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.error, HasSubstr("use --global-batch 4 or 8\n"));
  EXPECT_EQ(run_batch({}).exit_code, 2);
  EXPECT_EQ(run_batch({"--dp", "many"}).exit_code, 2);
}

TEST(BatchCommand, ReadsDecimalNumbersAsTheyStand) {
  EXPECT_THAT(run_batch({"--global-batch", "010", "--micro-batch", "2", "--dp", "1"}).out,
              StartsWith("global batch 10 = micro batch 2 x dp 1 x accumulation 5\n"));
  const auto error = [](const char* number) {
    const Outcome outcome =
        run_batch({"--global-batch", number, "--micro-batch", "2", "--dp", "1"});
    EXPECT_EQ(outcome.exit_code, 2) << number;
    return outcome.error;
  };
  for (const char* number : {"", "many", "8.0", "1e3", "0x10", "+8", " 8", "8 ", "1'000"})
    EXPECT_EQ(error(number), "batch: --global-batch \"" + std::string(number) +
                                 "\": is no whole decimal number; write one (1 to 2147483648)\n");
  for (const char* number : {"0", "-8", "2147483649", "99999999999999999999"})
    EXPECT_EQ(error(number), "batch: --global-batch " + std::string(number) +
                                 ": is out of range; use a whole number of 1 to 2147483648\n");
}

class BatchOfFile : public ::testing::Test {
 protected:
  ExperimentFiles files_;
  std::string file_ = files_.write("run.yaml", small_llama());
};

TEST_F(BatchOfFile, ShowsTheArithmeticOfTheRun) {
  const Outcome outcome = run_batch({file_, "sevenfold.ranks=2"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
  EXPECT_THAT(outcome.out, HasSubstr("global batch 8 = micro batch 1 x dp 2 x accumulation 4\n"));
  EXPECT_THAT(outcome.out, HasSubstr("a step: 8 samples x seq_length 32 = 256 tokens\n"));
  EXPECT_THAT(outcome.out, HasSubstr("the run: 4 steps, 32 samples, 1024 tokens\n"));
  EXPECT_THAT(outcome.out, HasSubstr("epochs: not known"));
}

TEST_F(BatchOfFile, ShowsTheScheduleAndCountsItsSamples) {
  const auto document = nlohmann::json::parse(
      run_batch({file_, "rampup_batch_size=[2, 2, 6]", "train_iters=5", "--json"}).out);
  ASSERT_EQ(document["schedule"].size(), 4u);
  EXPECT_EQ(document["schedule"][1]["from_samples"], 2);
  EXPECT_EQ(document["schedule"][1]["global_batch"], 4);
  EXPECT_EQ(document["samples"], 2 + 4 + 8 + 8 + 8) << "after 2 + 4 = 6 samples the batch is whole";
  EXPECT_EQ(document["epochs"], nullptr);
}

TEST_F(BatchOfFile, RefusesMoreTokensThan64BitsCount) {
  const Outcome outcome =
      run_batch({file_, "global_batch_size=2147483648", "train_iters=1073741824"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.error, HasSubstr("batch: 2305843009213693952 samples of seq_length=32 are "
                                       "more tokens than 64 bits count"));
}

TEST_F(BatchOfFile, RefusesSizesBesideAFile) {
  EXPECT_THAT(run_batch({file_, "--dp", "2"}).error, HasSubstr("its sizes come from the file"));
  EXPECT_THAT(run_batch({file_, "global_batch_size=7", "micro_batch_size=2"}).error,
              HasSubstr("use global_batch_size=6 or 8"));
}

}  // namespace
}  // namespace sevenfold::cli
