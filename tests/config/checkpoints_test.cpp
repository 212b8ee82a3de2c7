// What a run saves and begins from, in both vocabularies.

#include <gmock/gmock.h>

#include "config/experiment_files.h"

namespace sevenfold {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

const std::string kRun = "out/team/me/small";  // the run's folder
const std::string kRates = "use_checkpoint_opt_param_scheduler=true";

Config megatron(Words words, const std::string& module_yaml = "") {
  return load_text(small_llama(module_yaml), std::move(words));
}

Config titan(Words words) {
  words.insert(words.begin(), "checkpoint.enable=true");
  return load_text(small_titan(), std::move(words));
}

void expect_same(const CheckpointConfig& a, const CheckpointConfig& b) {
  EXPECT_EQ(a.save_directory, b.save_directory);
  EXPECT_EQ(a.interval, b.interval);
  EXPECT_EQ(a.saves_last, b.saves_last);
  EXPECT_EQ(a.saves_optimizer, b.saves_optimizer);
  EXPECT_EQ(a.keep_latest, b.keep_latest);
  EXPECT_EQ(a.retain_interval, b.retain_interval);
  EXPECT_EQ(a.load, b.load);
  EXPECT_EQ(a.load_step, b.load_step);
  EXPECT_EQ(a.load_is_required, b.load_is_required);
  EXPECT_EQ(a.loads_weights_only, b.loads_weights_only);
  EXPECT_EQ(a.loads_optimizer, b.loads_optimizer);
}

// Of the sentences that train and verify refuse by; "" where there is none of `key`.
std::string refusal_of(const Config& config, const std::string& key) {
  for (const Unsupported& item : config.unsupported)
    if (item.text.find(key) != std::string::npos) return item.text;
  return "";
}

TEST(Checkpoints, AreNeitherSavedNorLoadedByThemselves) {
  const CheckpointConfig expected;
  for (const Config& config : {megatron({}), load_text(small_titan())}) {
    expect_same(config.checkpoint, expected);
    EXPECT_THAT(config.unsupported, ElementsAre());
  }
}

TEST(Checkpoints, GoToTheRunsOwnFolderAsInPrimus) {
  const Config config = megatron({"save=/elsewhere"});
  EXPECT_EQ(config.checkpoint.save_directory, kRun + "/checkpoints");
  EXPECT_THAT(config.unsupported, ElementsAre());
  EXPECT_EQ(config.checkpoint.interval, 1000);
  EXPECT_TRUE(config.checkpoint.saves_last);
  EXPECT_TRUE(config.checkpoint.saves_optimizer);
  EXPECT_EQ(config.checkpoint.keep_latest, 0);
  EXPECT_EQ(config.checkpoint.retain_interval, 0);
  EXPECT_THAT(config.notices,
              Contains(Field(&Notice::text, "override save=/elsewhere: checkpoints go to " + kRun +
                                                "/checkpoints")));
  const Config named = megatron({"save=/elsewhere", "sevenfold.checkpoint_folder=kept/all"});
  EXPECT_EQ(named.checkpoint.save_directory, kRun + "/kept/all");
  EXPECT_THAT(named.notices, Not(Contains(Field(&Notice::text, HasSubstr("save=")))));
}

TEST(Checkpoints, AreSavedAsTheKeysSay) {
  const Config config =
      megatron({"save=x", "save_interval=50", "save_retain_interval=200",
                "disable_last_saving=true", "no_save_optim=true", "sevenfold.keep_checkpoints=3"});
  EXPECT_EQ(config.checkpoint.interval, 50);
  EXPECT_EQ(config.checkpoint.retain_interval, 200);
  EXPECT_EQ(config.checkpoint.keep_latest, 3);
  EXPECT_FALSE(config.checkpoint.saves_last);
  EXPECT_FALSE(config.checkpoint.saves_optimizer);
  EXPECT_THAT(config.notices,
              Contains(Field(&Notice::text,
                             "override no_save_optim=true: no run can be resumed from these "
                             "checkpoints")));
}

TEST(Checkpoints, AreLoadedAsTheKeysSay) {
  struct Case {
    Words words;
    bool weights_only, optimizer, required;
  };
  const Case cases[] = {
      {{"load=/old"}, true, false, true},  // finetune is a preset's default
      {{"load=/old", "finetune=false"}, false, true, true},
      {{"load=/old", "finetune=false", "no_load_optim=true"}, false, false, true},
      {{"load=/old", "finetune=false", "exit_on_missing_checkpoint=false"}, false, true, false},
      {{"pretrained_checkpoint=/old"}, true, false, true},
      {{"pretrained_checkpoint=/old", "finetune=false", "exit_on_missing_checkpoint=false"},
       true,
       false,
       true},
  };
  for (const auto& [words, weights_only, optimizer, required] : cases) {
    const CheckpointConfig checkpoint = megatron(words).checkpoint;
    EXPECT_EQ(checkpoint.load, "/old");
    EXPECT_EQ(checkpoint.load_where, "override " + words[0]);
    EXPECT_EQ(checkpoint.load_step, std::nullopt);
    EXPECT_EQ(checkpoint.loads_weights_only, weights_only) << words.back();
    EXPECT_EQ(checkpoint.loads_optimizer, optimizer) << words.back();
    EXPECT_EQ(checkpoint.load_is_required, required) << words.back();
    EXPECT_EQ(checkpoint.save_directory, "") << "loading does not save";
    EXPECT_THAT(megatron(words).unsupported, ElementsAre());
  }
}

TEST(Checkpoints, TellWhereTheFileNamesTheOneToLoad) {
  const Config config = megatron({}, "      load: /old\n      ckpt_step: 300\n");
  EXPECT_THAT(config.checkpoint.load_where, EndsWith("run.yaml:33 load=/old"));
  EXPECT_EQ(config.checkpoint.load_step, 300);
  EXPECT_THAT(megatron({"ckpt_step=300"}).notices,
              Contains(Field(&Notice::text,
                             "override ckpt_step=300: not read, as there is no load; to go back in "
                             "a run of your own use --resume with a folder step-N")));
}

TEST(Checkpoints, AreTheSameForAResolvedFile) {
  const ExperimentFiles files;
  const Config config =
      megatron({"save=x", "save_interval=7", "sevenfold.keep_checkpoints=2", "load=/old",
                "ckpt_step=3", "finetune=false", "sevenfold.checkpoint_folder=kept"});
  const Config again = load_text(config.resolved_yaml);
  expect_same(again.checkpoint, config.checkpoint);
  EXPECT_EQ(again.resolved_yaml, config.resolved_yaml);
}

TEST(CheckpointRules, SayPlaceRuleAndWayOut) {
  const std::pair<Words, const char*> cases[] = {
      {{"save_interval=0"},
       "checkpoint.interval config: override save_interval=0: must be at least 1 step and at most "
       "2147483648; use save=null to save nothing"},
      {{"save_interval=-9223372036854775808"},
       "checkpoint.interval config: override save_interval=-9223372036854775808: must be at least "
       "1 step and at most 2147483648; use save=null to save nothing"},
      {{"save_interval=null", "save=x"},
       "checkpoint.interval config: override save_interval=null: must be at least 1 step and at "
       "most 2147483648; use save=null to save nothing"},
      {{"save_retain_interval=1500"},
       "checkpoint.retain config: override save_retain_interval=1500 is not a multiple of "
       "save_interval=1000; use 1000 or 2000 or null"},
      {{"save_retain_interval=-1000"},
       "checkpoint.retain config: override save_retain_interval=-1000 is not a multiple of "
       "save_interval=1000; use 1000 or null"},
      {{"save_retain_interval=9223372036854775807"},
       "checkpoint.retain config: override save_retain_interval=9223372036854775807: must be at "
       "most 2147483648 steps; use null to keep all"},
      {{"sevenfold.keep_checkpoints=-1"},
       "checkpoint.keep config: override sevenfold.keep_checkpoints=-1: must be at least 0 (all "
       "stay) and at most 2147483648"},
      {{"sevenfold.checkpoint_folder=../x", "save=y"},
       "checkpoint.folder config: override sevenfold.checkpoint_folder=../x: checkpoints are kept "
       "inside the run's own folder; use a name such as checkpoints"},
      {{"ckpt_step=-1", "load=/old"},
       "checkpoint.step config: override ckpt_step=-1: a step is at least 0 and at most "
       "2147483648; use null for the newest"},
      {{"load=/old", "pretrained_checkpoint=/other"},
       "checkpoint.source config: override load=/old: override pretrained_checkpoint=/other is set "
       "too, and a run begins from one checkpoint; use load=null or pretrained_checkpoint=null"},
      {{kRates},
       "checkpoint.schedule config: override use_checkpoint_opt_param_scheduler=true: "
       "override_opt_param_scheduler=true is set too, and the schedule comes from one place; use "
       "override_opt_param_scheduler=false"},
      {{"ckpt_format=pickle"},
       "key.choice config: override ckpt_format=pickle: `pickle` is not among the choices; use "
       "torch, torch_dist, torch_dcp, fsdp_dtensor or zarr"},
  };
  for (const auto& [words, sentence] : cases) EXPECT_EQ(rule_of(small_llama(), words), sentence);
  for (const char* folder : {"/kept", ".", "./", "a/../b", "''"})
    EXPECT_THAT(
        rule_of(small_llama(), {"save=y", std::string("sevenfold.checkpoint_folder=") + folder}),
        HasSubstr("checkpoint.folder"))
        << folder;
  for (const Words& words : {Words{"save_retain_interval=2000"}, Words{"save_interval=null"},
                             Words{"save_retain_interval=3", "save_interval=null"}})
    EXPECT_EQ(rule_of(small_llama(), words), "") << words[0];
}

TEST(CheckpointRules, NamePlacesInTheFile) {
  EXPECT_EQ(error_of(small_llama("      load: /old\n      pretrained_checkpoint: /other\n")),
            "config: run.yaml:33 load=/old: run.yaml:34 pretrained_checkpoint=/other is set too, "
            "and a run begins from one checkpoint; use load=null or pretrained_checkpoint=null");
  EXPECT_EQ(error_of(small_llama("      save_interval: often\n")),
            "config: run.yaml:33 save_interval=often is not an integer; correct the value");
}

// What a checkpoint would change beside weights and position is what the file says here.
TEST(CheckpointRules, RefuseToTrainAsTheCheckpointSays) {
  const Words rates = {kRates, "override_opt_param_scheduler=false"};
  EXPECT_EQ(refusal_of(megatron(rates), "scheduler"), "") << "nothing is loaded";
  Words loading = rates;
  loading.emplace_back("load=/old");
  EXPECT_EQ(refusal_of(megatron(loading), "scheduler"),
            "config: override use_checkpoint_opt_param_scheduler=true: the learning rates of a "
            "checkpoint are not read, rates follow lr, lr_decay_style and their kin; use "
            "use_checkpoint_opt_param_scheduler=false");
  EXPECT_EQ(refusal_of(megatron({"use_checkpoint_args=true"}), "_args"), "");
  EXPECT_EQ(refusal_of(megatron({"use_checkpoint_args=true", "load=/old"}), "_args"),
            "config: override use_checkpoint_args=true: the model of a checkpoint is not read, its "
            "weights go into the one that this file describes; use use_checkpoint_args=false");
  EXPECT_EQ(refusal_of(megatron({"ckpt_convert_format=torch"}), "convert"),
            "config: override ckpt_convert_format=torch: a checkpoint converted to another format "
            "is not supported yet; use ckpt_convert_format=null");
}

// Kinds of files and copies of other programs, and states that there are none of here.
TEST(Checkpoints, HaveNoUseForWhatCannotChangeTheResult) {
  const Words words = {"async_save=true",
                       "auto_continue_train=true",
                       "no_save_rng=true",
                       "no_load_rng=true",
                       "ckpt_format=zarr",
                       "ckpt_fully_parallel_load=true",
                       "non_persistent_save_interval=10",
                       "non_persistent_ckpt_type=local",
                       "replication=true",
                       "use_mp_args_from_checkpoint_args=true",
                       "dist_ckpt_strictness=raise_all",
                       "override_opt_param_scheduler=false"};
  const Config config = megatron(words);
  expect_same(config.checkpoint, CheckpointConfig{});
  EXPECT_THAT(config.unsupported, ElementsAre());
  EXPECT_EQ(config.ignored.size(), words.size());
  EXPECT_THAT(config.ignored,
              Contains(Field(&KeyNote::reason,
                             "random numbers are functions of seed, site and sample: there is no "
                             "state")));
}

TEST(TorchTitanCheckpoints, AreSavedAndKeptAsTheKeysSay) {
  const Config plain = titan({});
  CheckpointConfig expected;
  expected.save_directory = kRun + "/checkpoint";
  expected.interval = 500;
  expected.keep_latest = 10;
  expect_same(plain.checkpoint, expected);
  EXPECT_THAT(plain.unsupported, ElementsAre());
  EXPECT_THAT(plain.notices, Not(Contains(Field(&Notice::text, HasSubstr("checkpoint")))));
  expected.save_directory = kRun + "/kept";
  expected.interval = 20;
  expected.keep_latest = 0;
  const Words words = {"checkpoint.folder=kept", "checkpoint.interval=20",
                       "checkpoint.keep_latest_k=0"};
  expect_same(titan(words).checkpoint, expected);
  expected.keep_latest = 5;
  expected.save_directory = kRun + "/mine";
  expect_same(titan({"sevenfold.keep_checkpoints=5", "checkpoint.interval=20",
                     "sevenfold.checkpoint_folder=mine"})
                  .checkpoint,
              expected);
  const Config loading = titan({"checkpoint.load_only=true"});
  EXPECT_EQ(loading.checkpoint.save_directory, "");
  EXPECT_THAT(loading.notices,
              Contains(Field(&Notice::text,
                             "override checkpoint.load_only=true: nothing is saved, and the run "
                             "begins anew unless --resume or checkpoint.initial_load_path names a "
                             "checkpoint")));
}

TEST(TorchTitanCheckpoints, AreLoadedAsTheKeysSay) {
  const CheckpointConfig weights = titan({"checkpoint.initial_load_path=/old"}).checkpoint;
  EXPECT_EQ(weights.load, "/old");
  EXPECT_EQ(weights.load_where, "override checkpoint.initial_load_path=/old");
  EXPECT_TRUE(weights.loads_weights_only);
  EXPECT_TRUE(weights.load_is_required);
  EXPECT_EQ(weights.load_step, std::nullopt);
  const CheckpointConfig all =
      titan({"checkpoint.initial_load_path=/old", "checkpoint.initial_load_model_only=false",
             "checkpoint.load_step=40", "checkpoint.load_only=true"})
          .checkpoint;
  EXPECT_EQ(all.load, "/old");
  EXPECT_FALSE(all.loads_weights_only);
  EXPECT_TRUE(all.loads_optimizer);
  EXPECT_EQ(all.load_step, 40);
  EXPECT_EQ(all.save_directory, "");
}

TEST(TorchTitanCheckpoints, AreThoseOfTheMegatronTwin) {
  const ExperimentFiles files;
  LoadOptions options;
  options.file = files.write("run.yaml", small_titan());
  options.environment = environment_of({});
  options.overrides = {"checkpoint.enable=true",
                       "checkpoint.folder=kept",
                       "checkpoint.interval=20",
                       "checkpoint.keep_latest_k=3",
                       "checkpoint.initial_load_path=/old",
                       "checkpoint.initial_load_model_only=false"};
  expect_same(load_text(megatron_yaml(options)).checkpoint, load_config(options).checkpoint);
}

TEST(TorchTitanCheckpoints, NeedCheckpointEnable) {
  const Config config =
      load_text(small_titan(), {"checkpoint.initial_load_path=/old", "checkpoint.keep_latest_k=1",
                                "checkpoint.last_save_in_hf=true", "checkpoint.load_step=5"});
  expect_same(config.checkpoint, CheckpointConfig{});
  EXPECT_THAT(config.unsupported, ElementsAre());
  EXPECT_THAT(config.notices,
              Contains(Field(&Notice::text,
                             "override checkpoint.initial_load_path=/old: not read, as "
                             "checkpoint.enable is false")));
}

TEST(TorchTitanCheckpoints, AreCheckedInTheWordsOfTheUser) {
  const std::pair<const char*, const char*> cases[] = {
      {"checkpoint.interval=0",
       "checkpoint.interval config: override checkpoint.interval=0: must be at least 1 step and at "
       "most 2147483648; use checkpoint.load_only=true to save nothing"},
      {"checkpoint.keep_latest_k=1",
       "checkpoint.keep config: override checkpoint.keep_latest_k=1: must be 0 (all stay), or at "
       "least 2 and at most 2147483648, so that one is there while the next is written"},
      {"checkpoint.keep_latest_k=-1",
       "checkpoint.keep config: override checkpoint.keep_latest_k=-1: must be 0 (all stay), or at "
       "least 2 and at most 2147483648, so that one is there while the next is written"},
      {"checkpoint.load_step=-2",
       "checkpoint.step config: override checkpoint.load_step=-2: a step is at least 0 and at most "
       "2147483648; use -1 for the newest"},
      {"checkpoint.folder=/elsewhere",
       "checkpoint.folder config: override checkpoint.folder=/elsewhere: checkpoints are kept "
       "inside the run's own folder; use a name such as checkpoints"},
  };
  for (const auto& [word, sentence] : cases)
    EXPECT_EQ(rule_of(small_titan(), {"checkpoint.enable=true", word}), sentence);
}

TEST(TorchTitanCheckpoints, RefuseToTrainWhatIsNotThere) {
  const std::pair<const char*, const char*> cases[] = {
      {"checkpoint.initial_load_in_hf=true",
       "weights in Hugging Face form are not supported yet; use "
       "checkpoint.initial_load_in_hf=false"},
      {"checkpoint.last_save_in_hf=true",
       "checkpoints in Hugging Face form are not supported yet; use "
       "checkpoint.last_save_in_hf=false"},
      {"checkpoint.enable_first_step_checkpoint=true",
       "a checkpoint after the first step is not supported yet; use "
       "checkpoint.enable_first_step_checkpoint=false"},
      {"checkpoint.exclude_from_loading=[\"optimizer\"]",
       "a checkpoint is read as a whole, or with checkpoint.initial_load_model_only=true its "
       "weights; use checkpoint.exclude_from_loading=[]"},
      {"checkpoint.load_step=40",
       "a run goes on from its newest checkpoint, unless --resume names another; use "
       "checkpoint.load_step=-1, and --resume with the folder of that step"},
      {"checkpoint.create_seed_checkpoint=true",
       "a checkpoint of start weights is not supported yet; use "
       "checkpoint.create_seed_checkpoint=false"},
  };
  for (const auto& [word, rest] : cases) {
    const std::string key = std::string(word).substr(0, std::string(word).find('='));
    EXPECT_EQ(refusal_of(titan({word}), key),
              "config: override " + std::string(word) + ": " + rest);
  }
  for (const char* word : {"checkpoint.exclude_from_loading=[]", "checkpoint.load_step=-1",
                           "checkpoint.exclude_from_loading=null"})
    EXPECT_EQ(refusal_of(titan({word}), "loading") + refusal_of(titan({word}), "load_step"), "")
        << word;
}

}  // namespace
}  // namespace sevenfold
