#include "sevenfold/config/key_policy.h"

#include <gmock/gmock.h>

#include <set>

#include "config/experiment_files.h"
#include "sevenfold/config/keys/key_tables.h"
#include "sevenfold/config/parameters.h"
#include "sevenfold/config/yaml/scalar.h"
#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> names_of(const std::vector<KeyNote>& notes) {
  std::vector<std::string> names;
  for (const KeyNote& note : notes) names.push_back(note.key);
  return names;
}

TEST(KeyPolicy, SuggestsTheKeyBehindAMisspelling) {
  EXPECT_EQ(error_of(small_llama("      tensor_model_parallel_sise: 2\n")),
            "config: run.yaml:33 tensor_model_parallel_sise=2: there is no key "
            "tensor_model_parallel_sise; did you mean "
            "tensor_model_parallel_size?");
  EXPECT_THAT(error_of(small_llama(), {"hiden_size=2"}), HasSubstr("did you mean hidden_size?"));
  EXPECT_THAT(error_of(small_llama(), {"mirco_batch_size=2"}),
              HasSubstr("did you mean micro_batch_size?"));
}

TEST(KeyPolicy, ChecksNestedAndDottedKeys) {
  EXPECT_THAT(
      error_of(small_llama("      torch_compile: {enabel: true}\n")),
      HasSubstr("torch_compile.enabel=true: there is no key torch_compile.enabel; did you mean "
                "torch_compile.enable?"));
  EXPECT_THAT(error_of(small_llama("      torch_compile.enabel: true\n")),
              HasSubstr("did you mean torch_compile.enable?"));
}

TEST(KeyPolicy, ChecksTheTorchTitanVocabulary) {
  const std::string text =
      "work_group: g\nuser_name: u\nexp_name: e\nworkspace: w\nmodules:\n  pre_trainer:\n    "
      "framework: torchtitan\n"
      "    config: pre_trainer.yaml\n    model: llama3.1_8B.yaml\n    overrides:\n";
  EXPECT_EQ(error_of(text + "      parallelism: {tensor_parallel_degre: 2}\n"),
            "config: run.yaml:11 parallelism.tensor_parallel_degre=2: there is no key "
            "parallelism.tensor_parallel_degre; "
            "did you mean parallelism.tensor_parallel_degree?");
  EXPECT_THAT(error_of(text + "      parallelism.tensor_parallel_degre: 2\n"),
              HasSubstr("did you mean parallelism.tensor_parallel_degree?"));
  EXPECT_THAT(error_of(text + "      paralelism: {}\n"), HasSubstr("did you mean parallelism?"));
}

TEST(KeyPolicy, ChecksTheLevelsAboveTheParameters) {
  std::string text = small_llama();
  text.replace(text.find("overrides:"), 10, "overides: ");
  EXPECT_THAT(error_of(text), HasSubstr("there is no key overides; did you mean overrides?"));
  EXPECT_THAT(error_of(small_llama("", "plattform: {}\n")), HasSubstr("did you mean platform?"));
}

TEST(KeyPolicy, TakesShortNamesAtDistanceOneOnly) {
  using config::suggest;
  EXPECT_EQ(suggest("sede", {"seed"}), "seed") << "a swap of neighbours is one edit";
  EXPECT_EQ(suggest("sxxd", {"seed"}), std::nullopt);
  EXPECT_EQ(suggest("num_lqqers", {"num_layers"}), "num_layers");
  EXPECT_EQ(suggest("num_qqqers", {"num_layers"}), std::nullopt);
  EXPECT_EQ(suggest("lr", {"lr"}), std::nullopt) << "not a misspelling";
}

TEST(KeyPolicy, KeepsAndCountsWhatItDoesNotKnow) {
  const Config config = load_text(small_llama("      my_own_switch: 1\n      wandb_project: p\n"),
                                  {"another_thing=2"});
  EXPECT_THAT(names_of(config.unknown), ::testing::ElementsAre("another_thing", "my_own_switch"));
  EXPECT_THAT(names_of(config.ignored), ::testing::ElementsAre("wandb_project"));
  EXPECT_EQ(config.ignored[0].reason, "logging and profiling");
  EXPECT_EQ(config.keys.unknown, 2);
  EXPECT_EQ(config.keys.ignored, 1);
  EXPECT_EQ(config.keys.used, 22 + 4) << "22 overrides and the four names at the top";
}

TEST(KeyPolicy, SaysThatTheEnvironmentBlockIsNotExported) {
  for (const char* block : {"env: {A: 1, B: '$HOME/b'}\n", "env: [1]\n"}) {
    const Config config = load_text(small_llama("", block));
    ASSERT_THAT(names_of(config.ignored), ::testing::ElementsAre("env")) << block;
    EXPECT_THAT(config.ignored[0].reason, HasSubstr("none is exported"));
    EXPECT_EQ(config.keys.used, 22 + 4);
  }
}

TEST(KeyPolicy, RefusesUnknownKeysWhenStrict) {
  const ExperimentFiles files;
  LoadOptions options;
  options.file = files.write("run.yaml", small_llama("      my_own_switch: 1\n"));
  options.environment = environment_of({});
  options.strict = true;
  EXPECT_THROW(load_config(options), ConfigError);
}

TEST(KeyPolicy, RefusesUnknownKeysOfTheSevenfoldBlock) {
  EXPECT_EQ(error_of(small_llama("", "sevenfold: {rank: 2}\n")),
            "config: run.yaml:33 sevenfold.rank=2: there is no key sevenfold.rank; did you mean "
            "sevenfold.ranks?");
  EXPECT_EQ(
      error_of(small_llama("", "sevenfold: {zzz: 2}\n")),
      "config: run.yaml:33 sevenfold.zzz=2: there is no key sevenfold.zzz; use one of ranks, "
      "backend, device, "
      "precision, shuffle, start, eod_token_id, pad_token_id, prepare, schedule, schedule_file, "
      "checkpoint_folder, keep_checkpoints, decay_all");
  EXPECT_THAT(error_of(small_llama("", "sevenfold: {prepare: {input: [a], ouput: b}}\n")),
              HasSubstr("did you mean sevenfold.prepare.output?"));
}

TEST(KeyTable, HoldsEachKeyOnceWithADefaultOfItsType) {
  std::set<std::string_view> seen;
  for (const config::KeyInfo& key : config::all_keys()) {
    EXPECT_TRUE(seen.insert(key.name).second) << key.name;
    EXPECT_FALSE(key.help.empty()) << key.name;
    if (key.type == config::KeyType::kMap || key.type == config::KeyType::kAny) continue;
    EXPECT_TRUE(
        config::coerce(config::resolve_plain_scalar(std::string(key.default_yaml)), key.type)
            .has_value())
        << key.name;
  }
  EXPECT_GT(seen.size(), 650u);
}

TEST(KeyTable, KnowsEveryKeyOfTheBuiltInPresets) {
  const config::Experiment experiment = load_raw(small_llama());
  for (const auto& [key, value] : experiment.parameters.map)
    EXPECT_TRUE(key == "model" || key == "name" || key == "framework" ||
                config::find_key(key) != nullptr)
        << key;
}

}  // namespace
}  // namespace sevenfold
