#include "sevenfold/config/load.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "config/experiment_files.h"
#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;

bool refuses(const Config& config, const std::string& key) {
  for (const Unsupported& item : config.unsupported)
    if (item.key == key) return true;
  return false;
}

TEST(LoadConfig, ReadsTheSmallLlama) {
  const Config config = load_text(
      small_llama("      eod_mask_loss: true\n", "sevenfold: {shuffle: false, eod_token_id: 0}\n"));
  EXPECT_TRUE(config.unsupported.empty()) << config.unsupported[0].text;
  EXPECT_EQ(config.framework, "megatron");
  EXPECT_EQ(config.model.num_layers, 4);
  EXPECT_EQ(config.model.hidden_size, 32);
  EXPECT_EQ(config.model.ffn_hidden_size, 64);
  EXPECT_EQ(config.model.num_attention_heads, 4);
  EXPECT_EQ(config.model.num_query_groups, 2);
  EXPECT_EQ(config.model.kv_channels, 8);
  EXPECT_EQ(config.model.vocab_size, 101);
  EXPECT_EQ(config.model.seq_length, 32);
  EXPECT_EQ(config.model.max_position_embeddings, 64);
  EXPECT_EQ(config.model.norm_epsilon, 1e-5);
  EXPECT_EQ(config.model.rotary_base, 10000.0);
  EXPECT_EQ(config.model.init_method_std, 0.02);
  EXPECT_FALSE(config.model.tied_embeddings);
  EXPECT_EQ(config.batch.micro_batch_size, 1);
  EXPECT_EQ(config.batch.global_batch_size, 8);
  EXPECT_EQ(config.batch.num_microbatches, 8);
  EXPECT_EQ(config.optimizer.kind, OptimizerKind::kSgd);
  EXPECT_EQ(config.optimizer.clip_grad, 0.0);
  EXPECT_EQ(config.learning_rate.lr, 0.1);
  EXPECT_EQ(config.learning_rate.style, DecayStyle::kConstant);
  EXPECT_EQ(config.learning_rate.warmup_samples, 0);
  EXPECT_EQ(config.learning_rate.decay_samples, 4 * 8);
  EXPECT_EQ(config.data.train.prefixes, std::vector<std::string>{"D1"});
  EXPECT_EQ(config.data.eod_token_id, 0);
  EXPECT_TRUE(config.data.eod_mask_loss);
  EXPECT_FALSE(config.data.shuffle);
  EXPECT_EQ(config.run.directory, "out/team/me/small");
  EXPECT_EQ(config.run.precision, Precision::kFp32);
  EXPECT_EQ(config.run.seed, 1234u);
  EXPECT_EQ(config.run.train_iters, 4);
  EXPECT_EQ(config.mesh.world_size(), 1);
}

TEST(LoadConfig, CountsTheScheduleInSamples) {
  const Config config =
      load_text(small_llama(), {"lr_warmup_iters=3", "lr_decay_iters=20", "global_batch_size=16",
                                "lr_decay_style=cosine", "lr_warmup_init=0.01"});
  EXPECT_EQ(config.learning_rate.warmup_samples, 48);
  EXPECT_EQ(config.learning_rate.decay_samples, 320);
  EXPECT_EQ(config.learning_rate.style, DecayStyle::kCosine);
  EXPECT_EQ(config.learning_rate.warmup_init, 0.01);
  EXPECT_EQ(load_text(small_llama(), {"lr_warmup_fraction=0.25"}).learning_rate.warmup_samples, 8);
}

TEST(LoadConfig, FillsInSizesThatAreNull) {
  const Config config = load_text(
      small_llama(), {"ffn_hidden_size=null", "hidden_size=96", "num_query_groups=null",
                      "global_batch_size=null", "sevenfold.ranks=3", "micro_batch_size=2"});
  EXPECT_EQ(config.model.ffn_hidden_size, 256) << "floor(768 / 3 / 64) * 64";
  EXPECT_EQ(config.model.kv_channels, 24);
  EXPECT_EQ(config.model.num_query_groups, 4);
  EXPECT_EQ(config.batch.global_batch_size, 6);
  EXPECT_EQ(config.batch.num_microbatches, 1);
}

TEST(LoadConfig, GivesEveryHeadItsOwnKeysWithoutGrouping) {
  const Config config = load_text(small_llama(), {"group_query_attention=false"});
  EXPECT_EQ(config.model.num_query_groups, 4);
  EXPECT_THAT(config.notices,
              Contains(Field(&Notice::text, HasSubstr("num_query_groups=2: ignored because"))));
}

TEST(LoadConfig, PrefersMegatronsOwnNameOfTheNormEpsilon) {
  EXPECT_EQ(load_text(small_llama(), {"norm_epsilon=1e-6"}).model.norm_epsilon, 1e-6);
  const Config config = load_text(small_llama(), {"norm_epsilon=1e-6", "layernorm_epsilon=1e-3"});
  EXPECT_EQ(config.model.norm_epsilon, 1e-3);
}

TEST(LoadConfig, TakesPrecisionFromTheOptionThenTheBlockThenTheFlags) {
  const ExperimentFiles files;
  LoadOptions options;
  options.environment = environment_of({});
  options.file = files.write("run.yaml", small_llama("", "sevenfold: {precision: fp64}\n"));
  EXPECT_EQ(load_config(options).run.precision, Precision::kFp64);
  options.precision = "fp32";
  EXPECT_EQ(load_config(options).run.precision, Precision::kFp32);
  options.precision.reset();
  options.file = files.write("flags.yaml", small_llama());
  options.overrides = {"bf16=true"};
  const Config config = load_config(options);
  EXPECT_EQ(config.run.precision, Precision::kBf16);
  EXPECT_TRUE(config.unsupported.empty());
  options.precision = "fp32";
  EXPECT_EQ(load_config(options).run.precision, Precision::kFp32) << "the option settles it";
  options.precision.reset();
  options.overrides = {"fp16=true"};
  EXPECT_EQ(load_config(options).run.precision, Precision::kFp16);
}

TEST(LoadConfig, TakesTheWorldFromTheOptionThenTheBlock) {
  const ExperimentFiles files;
  LoadOptions options;
  options.environment = environment_of({{"WORLD_SIZE", "5"}});
  options.file = files.write("run.yaml", small_llama("", "sevenfold: {ranks: 4}\n"));
  EXPECT_EQ(load_config(options).mesh.world_size(), 4);
  options.ranks = 8;
  EXPECT_EQ(load_config(options).mesh.world_size(), 8);
  options.ranks.reset();
  options.file = files.write("plain.yaml", small_llama());
  EXPECT_EQ(load_config(options).mesh.world_size(), 1) << "the variable of launchers is not read";
}

TEST(LoadConfig, TakesTheSmallestWorldThatFits) {
  const Config config =
      load_text(small_llama(), {"tensor_model_parallel_size=2", "pipeline_model_parallel_size=2"});
  EXPECT_EQ(config.mesh.world_size(), 4);
  EXPECT_EQ(config.mesh.dp, 1);
  const Config experts =
      load_text(small_llama(), {"num_experts=4", "expert_model_parallel_size=4"});
  EXPECT_EQ(experts.mesh.world_size(), 4);
  EXPECT_EQ(experts.mesh.dp, 4);
}

TEST(LoadConfig, PreparesTextWithTheByteTokenizer) {
  const Config config = load_text(
      small_llama(
          "",
          "sevenfold:\n  prepare: {input: ['*.txt', b], tokenizer: byte, output: cache/text}\n"),
      {"train_data_path=null", "vocab_size=null", "eod_mask_loss=true"});
  EXPECT_TRUE(config.unsupported.empty());
  EXPECT_EQ(config.model.vocab_size, 257);
  EXPECT_EQ(config.data.data.prefixes, std::vector<std::string>{"cache/text"});
  EXPECT_EQ(config.data.eod_token_id, 256);
  ASSERT_TRUE(config.data.prepare.has_value());
  EXPECT_THAT(config.data.prepare->inputs, ::testing::ElementsAre("*.txt", "b"));
}

TEST(LoadConfig, ReadsHowTextIsPrepared) {
  const Config config = load_text(
      small_llama(
          "",
          "sevenfold:\n  prepare: {input: a.jsonl, output: b, format: lines, json_key: body, "
          "append_eod: false, eod_token: </s>, add_special_tokens: true, "
          "skip_invalid: true, workers: 3}\n"),
      {"train_data_path=null", "vocab_size=null", "sevenfold.prepare.json_key=words"});
  ASSERT_TRUE(config.data.prepare.has_value());
  const PrepareConfig& prepare = *config.data.prepare;
  EXPECT_EQ(prepare.format, "lines");
  EXPECT_EQ(prepare.json_key, "words");
  EXPECT_FALSE(prepare.append_eod);
  EXPECT_EQ(prepare.eod_token, "</s>");
  EXPECT_TRUE(prepare.add_special_tokens);
  EXPECT_TRUE(prepare.skip_invalid);
  EXPECT_EQ(prepare.workers, 3);
}

TEST(LoadConfig, NotesWhatItChanges) {
  const Config config = load_text(small_llama());
  for (const char* text :
       {"sequence_parallel=true: switched off because tensor_model_parallel_size is 1",
        "calculate_per_token_loss=false: the loss is nevertheless the mean over all unmasked "
        "tokens"})
    EXPECT_THAT(config.notices, Contains(Field(&Notice::text, HasSubstr(text)))) << text;
}

TEST(ZeroStage, FollowsFromTheStrategyOrTheDistributedOptimizer) {
  const auto stage = [](const std::vector<std::string>& overrides) {
    const Config config = load_text(small_llama(), overrides);
    EXPECT_THAT(config.unsupported, ::testing::IsEmpty());
    return config.parallel.zero;
  };
  const std::string off = "use_distributed_optimizer=false";
  EXPECT_EQ(stage({}), ZeroStage::kOptimizer) << "the preset's default";
  EXPECT_EQ(stage({off}), ZeroStage::kNone);
  EXPECT_EQ(stage({off, "data_parallel_sharding_strategy=optim"}), ZeroStage::kOptimizer);
  EXPECT_EQ(stage({"data_parallel_sharding_strategy=optim_grads"}), ZeroStage::kGradients);
  EXPECT_EQ(stage({"data_parallel_sharding_strategy=optim_grads_params"}), ZeroStage::kParameters);
  EXPECT_EQ(stage({off, "use_torch_fsdp2=true"}), ZeroStage::kParameters);
}

TEST(Sharding, SaysWhenWeightsAreGatheredAndInHowManySets) {
  const Config plain = load_text(small_llama());
  EXPECT_FALSE(plain.parallel.overlap_gather);
  EXPECT_TRUE(plain.parallel.reshard_after_forward);
  EXPECT_EQ(plain.mesh.dp_replicate, 1);
  const Config set =
      load_text(small_llama(), {"overlap_grad_reduce=true", "overlap_param_gather=true",
                                "num_distributed_optimizer_instances=2", "sevenfold.ranks=4"});
  EXPECT_TRUE(set.parallel.overlap_gather);
  EXPECT_EQ(set.mesh.dp_replicate, 2);
  EXPECT_EQ(set.mesh.dp_shard_cp(), 2);
  const Config hybrid = load_text(
      small_llama(), {"use_torch_fsdp2=true", "use_distributed_optimizer=false",
                      "torch_fsdp2_reshard_after_forward=false", "data_parallel_replicate_degree=4",
                      "num_distributed_optimizer_instances=4", "sevenfold.ranks=4"});
  EXPECT_FALSE(hybrid.parallel.reshard_after_forward);
  EXPECT_EQ(hybrid.mesh.dp_shard_cp(), 1);
  for (const Config* config : {&plain, &set, &hybrid})
    EXPECT_THAT(config->unsupported, ::testing::IsEmpty());
}

TEST(LoadConfig, RefusesWhatIsNotThereYet) {
  for (const char* word :
       {"num_experts=4", "context_parallel_size=2", "position_embedding_type=relative",
        "optimizer=muon", "qk_l2_norm=true", "window_size=[4, 0]", "use_sink_attention=true",
        "attn_logit_softcapping=30.0", "fp8=hybrid", "decoupled_lr=0.1",
        "decrease_batch_size_if_needed=true", "dataloader_type=external", "mtp_num_layers=1",
        "lora.enabled=true", "stage=sft"}) {
    const std::string key = std::string(word).substr(0, std::string(word).find_first_of("=."));
    const Config config = load_text(small_llama(), {word});
    EXPECT_TRUE(refuses(config, key)) << word;
    EXPECT_EQ(config.unsupported.size(), 1u) << word;
    EXPECT_THAT(config.unsupported[0].text, HasSubstr("config: ")) << word;
  }
}

TEST(LoadConfig, AcceptsNeutralValuesOfWhatIsNotThereYet) {
  for (const char* word :
       {"num_experts=0", "num_experts=null", "mtp_num_layers=0", "use_rope_scaling=false",
        "fp8=null", "head_lr_mult=1", "weight_decay_incr_style=constant", "lora.enabled=false",
        "iterations_to_skip=[]", "expert_model_parallel_size=1"})
    EXPECT_TRUE(load_text(small_llama(), {word}).unsupported.empty()) << word;
}

TEST(LoadConfig, WritesAResolvedFileThatReloadsAsTheSameRun) {
  const ExperimentFiles files;
  const Config config =
      load_text(small_llama("", "sevenfold: {ranks: 2, shuffle: false}\n"),
                {"lr=1e-5", "moe_layer_freq=([0]*1+[1]*3)", "exp_name='yes'", "save=x"});
  LoadOptions options;
  options.file = files.write("again.yaml", config.resolved_yaml);
  options.environment = environment_of({});
  const Config again = load_config(options);
  EXPECT_EQ(again.resolved_yaml, config.resolved_yaml);
  EXPECT_EQ(again.learning_rate.lr, 1e-5);
  EXPECT_EQ(again.mesh.world_size(), 2);
  EXPECT_EQ(again.run.directory, "out/team/me/yes");
  EXPECT_EQ(again.keys.unknown, 0);
}

TEST(LoadConfig, TakesTheNodeSizeFromThePlatformsVariable) {
  const ExperimentFiles files;
  LoadOptions options;
  options.file = files.write("run.yaml", small_llama());
  options.environment = environment_of({{"GPUS_PER_NODE", "4"}});
  EXPECT_EQ(load_config(options).mesh.ranks_per_node, 4);
  options.environment = environment_of({});
  EXPECT_EQ(load_config(options).mesh.ranks_per_node, 8);
  options.environment = environment_of({{"GPUS_PER_NODE", ""}});
  EXPECT_EQ(load_config(options).mesh.ranks_per_node, 8);
  for (const char* size : {"0", "-1", "many", "16777217"}) {
    options.environment = environment_of({{"GPUS_PER_NODE", size}});
    EXPECT_THAT([&] { load_config(options); },
                ::testing::ThrowsMessage<ConfigError>(
                    HasSubstr("GPUS_PER_NODE=" + std::string(size) + ": the ranks of a node")));
  }
  options.environment = {};
  ASSERT_EQ(setenv("GPUS_PER_NODE", "2", 1), 0);
  EXPECT_EQ(load_config(options).mesh.ranks_per_node, 2) << "of this process";
  ASSERT_EQ(unsetenv("GPUS_PER_NODE"), 0);
}

TEST(LoadConfig, TakesTheCheckForNanFromItsKey) {
  EXPECT_TRUE(load_text(small_llama()).run.check_for_nan);
  EXPECT_FALSE(
      load_text(small_llama(), {"check_for_nan_in_loss_and_grad=false"}).run.check_for_nan);
}

TEST(LoadConfig, LetsAnAbsoluteNameDiscardTheEarlierParts) {
  EXPECT_EQ(load_text(small_llama(), {"user_name=/data/me"}).run.directory, "/data/me/small");
}

}  // namespace
}  // namespace sevenfold
