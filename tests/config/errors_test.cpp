// What the user reads when a file cannot be used: one sentence with place, value, rule and way out.

#include <gmock/gmock.h>

#include <filesystem>

#include "config/experiment_files.h"
#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

using ::testing::HasSubstr;

constexpr const char* kHead = "work_group: g\nuser_name: u\nexp_name: e\nworkspace: w\n";

std::string message_for(const std::string& file,
                        std::map<std::string, std::string> environment = {}) {
  LoadOptions options;
  options.file = file;
  options.environment = environment_of(std::move(environment));
  try {
    load_config(options);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(FileError, NamesAMissingFile) {
  EXPECT_EQ(message_for("no/such.yaml"), "config: no such file: no/such.yaml; check the path");
}

TEST(FileError, NamesADirectory) {
  const ExperimentFiles files;
  std::filesystem::create_directories(files.path("folder"));
  EXPECT_EQ(message_for(files.path("folder")),
            "config: " + files.path("folder") + " is a directory; name a YAML file");
}

TEST(FileError, ShowsTheLineOfUnreadableYaml) {
  EXPECT_THAT(error_of("a: 1\nb: c: d\n"), HasSubstr("config: run.yaml:2: not readable as YAML ("));
  EXPECT_THAT(error_of("a: 1\nb:\n\t- 1\n"),
              HasSubstr("config: run.yaml:3: not readable as YAML ("));
}

TEST(FileError, RefusesEmptyDocumentsListsAndSeveralDocuments) {
  EXPECT_EQ(error_of(""), "config: run.yaml: is empty; an experiment is a map of keys");
  EXPECT_EQ(error_of("# nothing\n"), "config: run.yaml: is empty; an experiment is a map of keys");
  EXPECT_EQ(error_of("- 1\n"), "config: run.yaml:1: holds a list where a map of keys is needed");
  EXPECT_EQ(error_of("just words\n"),
            "config: run.yaml:1: holds a string where a map of keys is needed");
  EXPECT_EQ(error_of("a: 1\n---\nb: 2\n"), "config: run.yaml: holds 2 YAML documents; keep one");
}

TEST(FileError, ShowsTheCycleOfExtends) {
  const ExperimentFiles files;
  files.write("b.yaml", "extends: c.yaml\n");
  files.write("c.yaml", "x: 1\nextends: [./b.yaml]\n");
  const std::string a = files.write("a.yaml", "extends: b.yaml\n");
  const std::string b = files.path("b.yaml");
  const std::string c = files.path("c.yaml");
  EXPECT_EQ(message_for(a), "config: " + c + ":2 extends=./b.yaml closes a cycle (" + b + " -> " +
                                c + " -> " + b + "); remove one of these lines");
  EXPECT_THAT(message_for(files.write("self.yaml", "extends: self.yaml\n")),
              HasSubstr("closes a cycle"));
}

TEST(FileError, AllowsOneBaseInTwoPlaces) {
  const ExperimentFiles files;
  files.write("base.yaml", "x: 1\n");
  files.write("left.yaml", "extends: base.yaml\n");
  files.write("right.yaml", "extends: base.yaml\n");
  EXPECT_THAT(message_for(files.write("run.yaml", "extends: [left.yaml, right.yaml]\n")),
              HasSubstr("the key work_group is missing"));
}

TEST(FileError, NamesAMissingBaseAndWhoAsksForIt) {
  const ExperimentFiles files;
  const std::string file = files.write("run.yaml", "a: 1\nextends: gone.yaml\n");
  EXPECT_EQ(message_for(file), "config: " + file + ":2 extends=gone.yaml: no such file: " +
                                   files.path("gone.yaml") + "; check the path");
  EXPECT_THAT(error_of("extends: [1]\n"), HasSubstr("run.yaml:1 extends=1 is not a file name"));
}

TEST(FileError, NamesAnUnsetVariable) {
  EXPECT_EQ(error_of("work_group: ${TEAM_X}\n"),
            "config: run.yaml:1: `${TEAM_X}` needs the environment variable TEAM_X, which is not "
            "set; set it, or give a "
            "default: ${TEAM_X:...}");
}

TEST(ShapeError, NamesTheMissingKey) {
  EXPECT_EQ(error_of("work_group: g\nuser_name: u\nworkspace: w\n"),
            "config: run.yaml: the key exp_name is missing; an experiment needs work_group, "
            "user_name, exp_name, "
            "workspace and modules");
  EXPECT_THAT(
      error_of(kHead),
      HasSubstr("config: run.yaml: the key modules is missing; write modules: {pre_trainer:"));
}

TEST(ShapeError, ChecksTheModules) {
  const std::string head = kHead;
  EXPECT_THAT(error_of(head + "modules: 3\n"),
              HasSubstr("run.yaml:5 modules=3: a map with the module pre_trainer"));
  EXPECT_THAT(error_of(head + "modules: {}\n"),
              HasSubstr("run.yaml:5 modules={}: a map with the module pre_trainer"));
  EXPECT_THAT(
      error_of(head + "modules: {worker: {framework: megatron}}\n"),
      HasSubstr(
          "run.yaml:5 modules.worker: a module's name contains `trainer`; call it pre_trainer"));
  EXPECT_THAT(error_of(head + "modules: {pre_trainer: 1}\n"),
              HasSubstr("modules.pre_trainer=1: a map with framework"));
  EXPECT_THAT(
      error_of(head + "modules: {pre_trainer: {config: pre_trainer.yaml}}\n"),
      HasSubstr("modules.pre_trainer: the key framework is missing; write framework: megatron"));
  EXPECT_THAT(error_of(head + "modules: {pre_trainer: {framework: maxtext}}\n"),
              HasSubstr("run.yaml:5 framework=maxtext is not known; use megatron or torchtitan"));
  EXPECT_THAT(
      error_of(head + "modules: {pre_trainer: {framework: megatron, config: pre_trainer.yaml}}\n"),
      HasSubstr("model=(missing) is not a preset's file name"));
}

TEST(ShapeError, NamesTheExpectedPathOfAMissingPreset) {
  const std::string text = small_llama();
  std::string other = text;
  other.replace(other.find("llama2_7B"), 9, "llama9_7B");
  EXPECT_THAT(error_of(other),
              HasSubstr("config: run.yaml:9 model=llama9_7B.yaml: there is no built-in preset "
                        "models/megatron/llama9_7B.yaml; use llama2_7B.yaml, llama2_70B.yaml, "));
  const ExperimentFiles files;
  files.write("presets/modules/megatron/pre_trainer.yaml", "a: 1\n");
  LoadOptions options;
  options.file = files.write("run.yaml", text);
  options.presets_directory = files.path("presets");
  options.environment = environment_of({});
  try {
    load_config(options);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("no preset at " + files.path("presets/models/megatron/llama2_7B.yaml")));
  }
}

TEST(TypeError, NamesValueAndType) {
  EXPECT_EQ(error_of(small_llama("      hidden_dropout: abc\n")),
            "config: run.yaml:33 hidden_dropout=abc is not a number; correct the value");
  EXPECT_EQ(error_of(small_llama(), {"hidden_size=abc"}),
            "config: override hidden_size=abc is not an integer; correct the value");
  EXPECT_EQ(error_of(small_llama(), {"hidden_size=32.5"}),
            "config: override hidden_size=32.5 is not an integer; correct the value");
  EXPECT_EQ(error_of(small_llama(), {"swiglu=2"}),
            "config: override swiglu=2 is not true or false; correct the value");
  EXPECT_EQ(error_of(small_llama(), {"num_layers=null"}),
            "config: override num_layers=null: this key needs a value (an integer); set it");
  EXPECT_EQ(error_of(small_llama(), {"optimizer=[adam]"}),
            "config: override optimizer=[\"adam\"] is not a string; correct the value");
}

TEST(OneLine, HoldsWhateverLineBreaksNamesAndValuesHave) {
  const Config config = load_text(small_llama("      \"zzz\\nkey\": \"a\\nb\"\n"
                                              "      \"torch_compile.mode\": \"a\\nb\"\n"),
                                  {"optimizer=\"a\\nb\"", "norm_epsilon=1e-4"});
  ASSERT_EQ(config.unknown.size(), 1u);
  EXPECT_EQ(config.unknown[0].key, "zzz\\nkey");
  ASSERT_EQ(config.unsupported.size(), 1u);
  EXPECT_THAT(config.unsupported[0].text, HasSubstr("optimizer=a\\nb is not supported yet"));
  for (const Notice& notice : config.notices)
    EXPECT_EQ(notice.text.find('\n'), std::string::npos) << notice.text;
  EXPECT_THAT(config.notices[0].text, HasSubstr("torch_compile.mode=a\\nb"));
  EXPECT_THAT(error_of(small_llama("      hidden_dropout: \"a\\nb\"\n")),
              HasSubstr("run.yaml:33 hidden_dropout=a\\nb is not a number"));
}

}  // namespace
}  // namespace sevenfold
