#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/run_command.h"
#include "config/experiment_files.h"
#include "sevenfold/cli/key_listing.h"

namespace sevenfold {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

Outcome run_config(std::vector<std::string> words) {
  return run_command(cli::add_config_command, "config", std::move(words));
}

class ConfigCommand : public ::testing::Test {
 protected:
  ExperimentFiles files_;
  std::string file_ =
      files_.write("run.yaml", small_llama("      wandb_project: p\n      zzz_mine: 1\n"));
};

TEST_F(ConfigCommand, ShowsValuesWithTheirOrigins) {
  const Outcome outcome = run_config({file_, "seed=7"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
  EXPECT_THAT(outcome.out, ::testing::ContainsRegex("\nhidden_size +32 +[^ ]*run.yaml:12\n"));
  EXPECT_THAT(outcome.out, ::testing::ContainsRegex("\nseed +7 +override\n"));
  EXPECT_THAT(outcome.out, ::testing::ContainsRegex("\nsequence_parallel +false +fix-up\n"));
  EXPECT_THAT(outcome.out,
              ::testing::ContainsRegex("\nlayernorm_epsilon +null +built-in default\n"));
  EXPECT_THAT(outcome.out,
              ::testing::ContainsRegex(
                  "\nadam_beta1 +0.9 +built-in preset modules/megatron/pre_trainer.yaml:"));
  EXPECT_THAT(outcome.out, HasSubstr("27 used, 1 ignored, 1 unknown"));
  EXPECT_THAT(outcome.out, EndsWith("next: sevenfold train " + file_ + " seed=7\n"));
}

TEST_F(ConfigCommand, ShowsTheMeshNextWhereTrainingIsRefused) {
  EXPECT_THAT(run_config({file_, "bf16=true"}).out,
              EndsWith("next: sevenfold train " + file_ + " bf16=true\n"));
  EXPECT_THAT(
      run_config({file_, "num_experts=4", "zzz_more=a b"}).out,
      EndsWith("next: sevenfold mesh " + file_ + " num_experts=4 'zzz_more=a b' --world 1\n"));
}

TEST_F(ConfigCommand, PrintsOneJsonDocument) {
  const Outcome outcome = run_config({file_, "--json", "num_experts=4"});
  EXPECT_EQ(outcome.exit_code, 0);
  const auto document = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(document["values"]["hidden_size"]["value"], 32);
  EXPECT_THAT(document["values"]["hidden_size"]["origin"].get<std::string>(),
              EndsWith("run.yaml:12"));
  EXPECT_EQ(document["unsupported"][0]["key"], "num_experts");
  EXPECT_EQ(document["unknown"][0]["key"], "zzz_mine");
  EXPECT_EQ(document["keys"]["ignored"], 1);
}

TEST_F(ConfigCommand, PrintsRawParametersWithoutCoercionRulesAndFixUps) {
  const Outcome outcome = run_config({file_, "--raw", "lr=1e-5", "micro_batch_size=0"});
  EXPECT_EQ(outcome.exit_code, 0);
  const auto document = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(document["lr"], "1e-5");
  EXPECT_EQ(document["micro_batch_size"], 0);
  EXPECT_EQ(document["sequence_parallel"], true);
  EXPECT_EQ(document.contains("layernorm_epsilon"), false);
}

TEST_F(ConfigCommand, PutsErrorsInOneLineWithExitCode2) {
  const Outcome outcome = run_config({file_, "hiden_size=2"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(
      outcome.error,
      "config: override hiden_size=2: there is no key hiden_size; did you mean hidden_size?\n");
  EXPECT_EQ(run_config({"no/such.yaml"}).exit_code, 2);
  EXPECT_EQ(run_config({file_, "--bogus"}).error,
            "sevenfold: there is no option --bogus; see `sevenfold config --help`\n");
  EXPECT_EQ(run_config({}).exit_code, 2);
  EXPECT_EQ(run_config({file_, "--strict"}).exit_code, 2);
  EXPECT_THAT(run_config({file_, "--as", "torchtitan"}).error,
              HasSubstr("is written in megatron keys, of which many have no twin there; use --as "
                        "megatron"));
  EXPECT_THAT(run_config({file_, "--as", "maxtext"}).error,
              HasSubstr("there is no such vocabulary; use megatron or torchtitan"));
  EXPECT_THAT(run_config({file_, "--as", "megatron", "--json"}).error,
              HasSubstr("leave out --raw and --json"));
}

TEST_F(ConfigCommand, WritesTheFileInTheOtherVocabulary) {
  const std::string titan = files_.write("titan.yaml", small_titan());
  const Outcome outcome = run_config({titan, "training.steps=7", "--as", "megatron"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
  EXPECT_THAT(outcome.out, ::testing::ContainsRegex("\n +framework: \"?megatron\"?\n"));
  EXPECT_THAT(outcome.out, ::testing::ContainsRegex("\n +train_iters: 7\n"));
  EXPECT_EQ(run_config({files_.write("twin.yaml", outcome.out)}).exit_code, 0);
  EXPECT_THAT(run_config({titan, "--as", "torchtitan"}).out,
              ::testing::ContainsRegex("\n +n_layers: 4\n"));
  EXPECT_EQ(run_config({file_, "--as", "megatron"}).exit_code, 0);
}

TEST_F(ConfigCommand, ChecksKeysOfRawParametersWhenStrict) {
  EXPECT_EQ(run_config({file_, "--raw"}).exit_code, 0);
  const Outcome outcome = run_config({file_, "--raw", "--strict"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.error, HasSubstr("the key zzz_mine is not known, and --strict is given"));
}

TEST_F(ConfigCommand, KeepsMessagesOnOneLine) {
  for (const char* word :
       {"hiden_size=\"1\\n2\"", "hidden_size=a\nb", "a\nb", "a\nb..c=1", "--a\nb",
        "sevenfold.a\nb=1", "dataloader_type=\"a\\nb\"", "seed.a\nb=1"}) {
    const Outcome outcome = run_config({file_, word, "--strict"});
    EXPECT_EQ(outcome.exit_code, 2) << word;
    EXPECT_EQ(std::count(outcome.error.begin(), outcome.error.end(), '\n'), 1) << outcome.error;
  }
  const auto lines_of = [](const std::string& text) {
    return std::count(text.begin(), text.end(), '\n');
  };
  const std::string plain = run_config({file_, "zzz_ab=1", "dotted=1"}).out;
  const std::string broken = run_config({file_, "zzz_a\nb=\"1\\n2\"", "dotted=1"}).out;
  EXPECT_EQ(lines_of(plain), lines_of(broken)) << broken;
}

TEST_F(ConfigCommand, ToleratesDashesBeforeAKey) {
  EXPECT_THAT(run_config({file_, "--seed=9"}).out,
              ::testing::ContainsRegex("\nseed +9 +override\n"));
}

TEST_F(ConfigCommand, ListsAllKeys) {
  const Outcome outcome = run_config({"--help-keys"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out,
              ::testing::ContainsRegex("\nnum_layers +an integer +24 +acts +transformer layers\n"));
  EXPECT_THAT(outcome.out, ::testing::ContainsRegex(
                               "\nnum_experts +an integer +null +not yet +mixture of experts\n"));
  EXPECT_THAT(outcome.out,
              ::testing::ContainsRegex("\nfp16 +true or false +false +acts +fp16 compute "
                                       ".not with bf16.\n"));
  const auto keys = nlohmann::json::parse(run_config({file_, "--help-keys", "--json"}).out)["keys"];
  EXPECT_GT(keys.size(), 650u);
  for (const auto& key : keys) EXPECT_EQ(key.size(), 7u) << key.dump();
  EXPECT_THAT(outcome.out,
              ::testing::ContainsRegex("\ntraining.steps +an integer +10000 +acts +steps\n"));
  EXPECT_EQ(keys.front()["framework"], "megatron");
  EXPECT_EQ(keys.back()["framework"], "torchtitan");
}

TEST_F(ConfigCommand, PrintsTheCommittedPageOfKeys) {
  std::ifstream file(SEVENFOLD_SOURCE_DIR "/docs/configuration_keys.md");
  std::ostringstream page;
  page << file.rdbuf();
  EXPECT_EQ(cli::key_listing_markdown(), page.str())
      << "write it anew: sevenfold config --help-keys --markdown > docs/configuration_keys.md";
  EXPECT_EQ(run_config({"--help-keys", "--markdown"}).out, page.str());
  EXPECT_EQ(run_config({file_, "--markdown"}).exit_code, 2);
}

}  // namespace
}  // namespace sevenfold
