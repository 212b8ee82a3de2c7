#include "sevenfold/config/presets.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "config/experiment_files.h"
#include "sevenfold/config/load.h"
#include "sevenfold/config/rule_error.h"
#include "sevenfold/core/error.h"

namespace sevenfold::config {
namespace {

struct ExpectedTree {
  const char* experiment;  // below the folder of Primus files
  const char* json;        // below expected/
};

constexpr ExpectedTree kTrees[] = {
    {"examples/megatron/configs/MI300X/llama2_7B-BF16-pretrain.yaml",
     "megatron--llama2_7B-BF16-pretrain.json"},
    {"examples/megatron/configs/MI300X/llama3.1_8B-BF16-pretrain.yaml",
     "megatron--llama3.1_8B-BF16-pretrain.json"},
    {"examples/megatron/configs/MI300X/llama3.1_405B-BF16-pretrain.yaml",
     "megatron--llama3.1_405B-BF16-pretrain.json"},
    {"examples/megatron/configs/MI300X/mixtral_8x22B_v0.1-BF16-pretrain.yaml",
     "megatron--mixtral_8x22B_v0.1-BF16-pretrain.json"},
    {"tests/trainer/test_megatron_trainer_zero_bubble.yaml",
     "megatron--test_megatron_trainer_zero_bubble.json"},
    {"examples/torchtitan/configs/MI300X/deepseek_v3_16b-BF16-pretrain.yaml",
     "torchtitan--deepseek_v3_16b-BF16-pretrain.json"},
    {"examples/torchtitan/configs/MI300X/llama3.1_8B-BF16-pretrain.yaml",
     "torchtitan--llama3.1_8B-BF16-pretrain.json"}};

// Differences one by one: a whole tree in a failure message helps nobody.
void expect_same_tree(const nlohmann::json& actual, const nlohmann::json& expected,
                      const std::string& name) {
  EXPECT_EQ(actual.size(), expected.size()) << name;
  for (const auto& [key, value] : expected.items()) {
    ASSERT_TRUE(actual.contains(key)) << name << " lacks " << key;
    EXPECT_EQ(actual[key].dump(), value.dump()) << name << " " << key;
  }
}

class PrimusTree : public testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("SEVENFOLD_PRIMUS_DIR");
    if (folder == nullptr)
      GTEST_SKIP() << "set SEVENFOLD_PRIMUS_DIR to a folder with primus/, examples/ and expected/";
    folder_ = folder;
  }

  void expect_all(const std::string& presets) {
    for (const ExpectedTree& tree : kTrees) {
      std::ifstream file(folder_ + "/expected/" + tree.json);
      ASSERT_TRUE(file) << tree.json;
      const Experiment experiment =
          load_experiment({folder_ + "/" + tree.experiment, {}, presets, environment_of({})});
      expect_same_tree(to_json(experiment.parameters), nlohmann::json::parse(file), tree.json);
    }
  }

  std::string folder_;
};

TEST_F(PrimusTree, EqualThoseOfPrimusFromACheckout) {
  expect_all(folder_);
}

TEST_F(PrimusTree, EqualThoseOfPrimusFromItsConfigsFolder) {
  expect_all(folder_ + "/primus/configs");
}

TEST_F(PrimusTree, EqualThoseOfPrimusFromTheBuiltInPresets) {
  expect_all("");
}

TEST_F(PrimusTree, LoadsAllMegatronFilesButTheOneThatCannotBeCut) {
  int num_loaded = 0;
  for (const std::string& presets : {std::string(), folder_})
    for (const ExpectedTree& tree : kTrees) {
      const std::string name = tree.experiment;
      if (!std::string_view(tree.json).starts_with("megatron")) continue;
      SCOPED_TRACE(name);
      LoadOptions options;
      options.file = folder_ + "/" + name;
      options.presets_directory = presets;
      options.environment = environment_of({});
      if (name.find("405B") != std::string::npos) {
        try {
          load_config(options);
          FAIL() << "8 stages of 126 layers";
        } catch (const RuleError& error) {
          EXPECT_EQ(error.rule(), "layers.divisible") << error.what();
        }
        continue;
      }
      const Config config = load_config(options);
      EXPECT_EQ(config.unknown.size(), 0u) << config.unknown[0].key;
      EXPECT_GT(config.keys.used, 0);
      if (name.find("llama") != std::string::npos) {
        EXPECT_EQ(config.unsupported.size(), 0u) << config.unsupported[0].text;
      }
      ++num_loaded;
    }
  EXPECT_EQ(num_loaded, 2 * 4);
}

TEST_F(PrimusTree, HasTheBuiltInModels) {
  const std::string models = "models/megatron/";
  const std::string on_disk = folder_ + "/primus/configs/" + models;
  int num_compared = 0;
  for (const auto& entry : std::filesystem::directory_iterator(on_disk)) {
    const std::string name = entry.path().filename();
    if (name == "primus_megatron_model.yaml") continue;  // names the base for users, holds no model
    const auto ours =
        load_yaml_tree({OriginKind::kPreset, true, models + name}, environment_of({}));
    const auto theirs =
        load_yaml_tree({OriginKind::kPreset, false, on_disk + name}, environment_of({}));
    expect_same_tree(to_json(ours), to_json(theirs), name);
    ++num_compared;
  }
  EXPECT_GE(num_compared, 20);
}

TEST(BuiltInPresets, AreTheFilesInConfigs) {
  ASSERT_FALSE(built_in_presets().empty());
  for (const BuiltInPreset& preset : built_in_presets()) {
    std::ifstream file(std::string(SEVENFOLD_SOURCE_DIR "/configs/") + std::string(preset.path));
    std::ostringstream text;
    text << file.rdbuf();
    EXPECT_EQ(text.str(), preset.text) << preset.path;
  }
}

TEST(BuiltInPresets, NameThemselvesInOrigins) {
  const Experiment experiment = load_raw(small_llama());
  const Origin origin = experiment.parameters.find("tokenizer_type")->origin;
  EXPECT_EQ(origin.kind, OriginKind::kPreset);
  EXPECT_EQ(origin.text().substr(0, 48), "built-in preset models/megatron/llama2_7B.yaml:8");
}

TEST(PresetStore, RefusesToLeaveItsFolder) {
  const PresetStore store("");
  Value name = Value::of(std::string("../../../etc/passwd"));
  name.origin = Origin{OriginKind::kFile, "run.yaml", 7};
  try {
    store.find("modules/megatron", name.text, "config", name);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_EQ(std::string(error.what()),
              "config: run.yaml:7 config=../../../etc/passwd: path traversal: ../etc/passwd.yaml "
              "leaves the presets "
              "folder; name a preset below modules/megatron");
  }
}

TEST(PresetStore, RefusesAFolderThatHoldsNoPresets) {
  const ExperimentFiles files;
  EXPECT_THROW(PresetStore(files.path("")), ConfigError);
  EXPECT_THROW(PresetStore("/no/such/folder"), ConfigError);
}

}  // namespace
}  // namespace sevenfold::config
