#include "sevenfold/config/experiment.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "config/experiment_files.h"

namespace sevenfold::config {
namespace {

constexpr const char* kHead = "work_group: g\nuser_name: u\nexp_name: e\nworkspace: w\n";

// A presets folder with tiny presets, so that every step of the precedence shows.
class Precedence : public testing::Test {
 protected:
  Precedence() {
    files_.write("primus/configs/modules/megatron/base.yaml",
                 "from_base: base\nboth: base\nnested: {a: 1, b: 1}\n");
    files_.write("primus/configs/modules/megatron/second.yaml", "both: second\n");
    files_.write("primus/configs/modules/megatron/pre_trainer.yaml",
                 "extends: [base.yaml, second.yaml]\nown: trainer\nshared: trainer\nlisted: [1, "
                 "2]\nword: 'null'\n");
    files_.write(
        "primus/configs/models/megatron/m.yaml",
        "shared: model\nnested: {c: 1}\nmodel_only: model\ndeep: {x: 'null', l: ['null']}\n");
    files_.write("primus/configs/platforms/platform_azure.yaml",
                 "name: p\nnum_nodes_env_key: N\nnode_rank_env_key: R\nmaster_addr_env_key: A\n"
                 "master_port_env_key: P\ngpus_per_node_env_key: G\nmaster_sink_level: "
                 "INFO\nworkspace: w\n");
  }

  Value load(const std::string& module_lines, std::vector<std::string> words = {}) {
    const std::string file =
        files_.write("run.yaml", std::string(kHead) +
                                     "modules:\n  pre_trainer:\n    framework: megatron\n"
                                     "    config: pre_trainer\n    model: m.yaml\n" +
                                     module_lines);
    return load_experiment({file, std::move(words), files_.path(""), environment_of({})})
        .parameters;
  }

  std::string get(const Value& parameters, const std::string& key) {
    const Value* value = parameters.find(key);
    return value == nullptr ? "absent" : to_json(*value).dump();
  }

  ExperimentFiles files_;
};

TEST_F(Precedence, LaterBasesBeatEarlierOnesAndTheFileBeatsAll) {
  const Value parameters = load("");
  EXPECT_EQ(get(parameters, "from_base"), R"("base")");
  EXPECT_EQ(get(parameters, "both"), R"("second")");
  EXPECT_EQ(get(parameters, "own"), R"("trainer")");
}

TEST_F(Precedence, ModelPresetAddsOnlyKeysThatTheTrainerPresetLacks) {
  const Value parameters = load("");
  EXPECT_EQ(get(parameters, "shared"), R"("trainer")");
  EXPECT_EQ(get(parameters, "model_only"), R"("model")");
  EXPECT_EQ(get(parameters, "nested"), R"({"a":1,"b":1})")
      << "the whole sub-tree of the model preset is dropped";
}

TEST_F(Precedence, OverridesMergeDeeplyAndReplaceLists) {
  const Value parameters =
      load("    overrides: {nested: {b: 2}, listed: [3], shared: over, new: {d: 4}}\n");
  EXPECT_EQ(get(parameters, "nested"), R"({"a":1,"b":2})");
  EXPECT_EQ(get(parameters, "listed"), "[3]");
  EXPECT_EQ(get(parameters, "shared"), R"("over")");
  EXPECT_EQ(get(parameters, "new"), R"({"d":4})");
}

TEST_F(Precedence, MapsReplaceScalarsAndScalarsReplaceMaps) {
  const Value parameters = load("    overrides: {nested: null, own: {deep: 1}}\n");
  EXPECT_EQ(get(parameters, "nested"), "null");
  EXPECT_EQ(get(parameters, "own"), R"({"deep":1})");
}

TEST_F(Precedence, ModuleLevelKeysCountOnlyWhenNothingDefinesThem) {
  const Value parameters =
      load("    shared: extra\n    stage: first\n    name: ignored\n    params: {x: 1}\n");
  EXPECT_EQ(get(parameters, "shared"), R"("trainer")");
  EXPECT_EQ(get(parameters, "stage"), R"("first")");
  EXPECT_EQ(get(parameters, "name"), R"("pre_trainer")");
  EXPECT_EQ(get(parameters, "params"), "absent");
  EXPECT_EQ(get(parameters, "model"), R"("m.yaml")");
  EXPECT_EQ(get(parameters, "config"), "absent");
}

TEST_F(Precedence, NullStringsBecomeNullInMapsButNotInListsNorInNewMaps) {
  const Value parameters = load(
      "    overrides: {own: 'null', listed: ['null'], brand: {x: 'null'}, nested: {a: 'null'}}\n");
  EXPECT_EQ(get(parameters, "word"), "null") << "trainer preset";
  EXPECT_EQ(get(parameters, "deep"), R"({"l":["null"],"x":null})") << "model preset, any depth";
  EXPECT_EQ(get(parameters, "own"), "null");
  EXPECT_EQ(get(parameters, "listed"), R"(["null"])");
  EXPECT_EQ(get(parameters, "brand"), R"({"x":"null"})");
  EXPECT_EQ(get(parameters, "nested"), R"({"a":null,"b":1})");
}

TEST_F(Precedence, KeyValueWordsBeatAllAndReachIntoMaps) {
  const Value parameters = load("    overrides: {shared: over}\n",
                                {"shared=word", "nested.b=7", "--own=-5", "brand.x.y=[1]"});
  EXPECT_EQ(get(parameters, "shared"), R"("word")");
  EXPECT_EQ(get(parameters, "nested"), R"({"a":1,"b":7})");
  EXPECT_EQ(get(parameters, "own"), "-5");
  EXPECT_EQ(get(parameters, "brand"), R"({"x":{"y":[1]}})");
}

TEST_F(Precedence, EveryValueKnowsWhereItWasWritten) {
  const Value parameters = load("    overrides:\n      shared: over\n", {"own=1"});
  EXPECT_EQ(parameters.find("shared")->origin.text(), files_.path("run.yaml") + ":11");
  EXPECT_EQ(parameters.find("own")->origin.text(), "override");
  EXPECT_EQ(parameters.find("both")->origin.text(),
            files_.path("") + "primus/configs/modules/megatron/second.yaml:1");
}

TEST(Experiment, ExtendsRelativeToTheFileThatNamesIt) {
  const ExperimentFiles files;
  files.write("shared/base.yaml",
              std::string("extends: more/names.yaml\n") + "workspace: w\nexp_name: base\n");
  files.write("shared/more/names.yaml",
              "work_group: g\nuser_name: ${USER_X:u}\nexp_name: deepest\n");
  const std::string file =
      files.write("run.yaml",
                  "extends: shared/base.yaml\nmodules: {pre_trainer: {framework: megatron, "
                  "config: pre_trainer.yaml, model: llama2_7B.yaml}}\n");
  const Experiment experiment = load_experiment({file, {}, "", environment_of({{"USER_X", "me"}})});
  EXPECT_EQ(experiment.top.find("exp_name")->text, "base");
  EXPECT_EQ(experiment.top.find("user_name")->text, "me");
}

TEST(Experiment, FallsBackToTheOtherTrainerModule) {
  const Experiment experiment = load_raw(std::string(kHead) +
                                         "modules: {post_trainer: {framework: megatron, config: "
                                         "pre_trainer.yaml, model: llama2_7B.yaml}}\n");
  EXPECT_EQ(experiment.module, "post_trainer");
  EXPECT_EQ(experiment.parameters.find("name")->text, "post_trainer");
}

TEST(Experiment, TakesAModuleWithoutConfigAsFlattened) {
  const Experiment experiment =
      load_raw(std::string(kHead) +
               "modules: {pre_trainer: {framework: megatron, model: llama2_7B.yaml, lr: 0.5}}\n");
  EXPECT_EQ(to_json(experiment.parameters).dump(),
            R"({"framework":"megatron","lr":0.5,"model":"llama2_7B.yaml","name":"pre_trainer"})");
}

TEST(Experiment, ExpandsDottedOverridesAndSaysSo) {
  const Experiment experiment = load_raw(small_llama("      torch_compile.mode: fast\n"));
  EXPECT_EQ(experiment.parameters.find("torch_compile")->find("mode")->text, "fast");
  EXPECT_EQ(experiment.parameters.find("torch_compile")->find("backend")->text, "inductor");
  ASSERT_EQ(experiment.notices.size(), 1u);
  EXPECT_THAT(experiment.notices[0],
              testing::HasSubstr("torch_compile.mode=fast: the dotted key is read as nested"));
}

TEST(Experiment, MergesPlatformOverrides) {
  const Experiment experiment = load_raw(small_llama(
      "", "platform: {config: platform_local.yaml, overrides: {master_sink_level: DEBUG}}\n"));
  EXPECT_EQ(experiment.platform.find("name")->text, "local");
  EXPECT_EQ(experiment.platform.find("master_sink_level")->text, "DEBUG");
}

}  // namespace
}  // namespace sevenfold::config
