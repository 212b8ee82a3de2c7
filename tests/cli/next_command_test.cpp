#include "sevenfold/cli/next_command.h"

#include <gtest/gtest.h>

namespace sevenfold::cli {
namespace {

TEST(ShellWord, QuotesWhatAShellWouldChange) {
  EXPECT_EQ(shell_word("examples/quickstart.yaml"), "examples/quickstart.yaml");
  EXPECT_EQ(shell_word("lr=1.0e-4"), "lr=1.0e-4");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("an experiment.yaml"), "'an experiment.yaml'");
  EXPECT_EQ(shell_word("a=$HOME"), "'a=$HOME'");
  EXPECT_EQ(shell_word("a={b: 'c'}"), "'a={b: '\\''c'\\''}'");
  EXPECT_EQ(shell_word("a\nb'\\"), "$'a\\x0ab\\'\\\\'");
}

TEST(ExperimentWords, RepeatWhatLoadsTheExperiment) {
  LoadOptions options;
  options.file = "run.yaml";
  EXPECT_EQ(experiment_words(options), "run.yaml");
  options.overrides = {"seed=7", "split=1, 1"};
  options.presets_directory = "my presets";
  options.strict = true;
  EXPECT_EQ(experiment_words(options),
            "run.yaml seed=7 'split=1, 1' --presets 'my presets' --strict");
}

}  // namespace
}  // namespace sevenfold::cli
