// The torchtitan vocabulary makes the same Config as the megatron one.

#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "config/experiment_files.h"
#include "sevenfold/config/keys/key_tables.h"
#include "sevenfold/config/torchtitan/flavors.h"
#include "sevenfold/config/torchtitan/key_names.h"

namespace sevenfold {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Words = std::vector<std::string>;

// Every number of a torchtitan file in its megatron twin.
const Words kTwinWords = {"num_layers=4",
                          "hidden_size=32",
                          "ffn_hidden_size=128",
                          "num_attention_heads=4",
                          "group_query_attention=true",
                          "num_query_groups=2",
                          "vocab_size=101",
                          "seq_length=32",
                          "max_position_embeddings=32",
                          "rotary_base=500000",
                          "rotary_interleaved=true",
                          "use_rope_scaling=true",
                          "layernorm_epsilon=1e-5",
                          "micro_batch_size=8",
                          "global_batch_size=16",
                          "optimizer=adam",
                          "adam_beta2=0.95",
                          "weight_decay=0.1",
                          "lr=0.0008",
                          "lr_decay_style=WSD",
                          "lr_wsd_decay_style=linear",
                          "lr_wsd_decay_iters=16",
                          "lr_warmup_init=0.0002",
                          "lr_warmup_iters=3",
                          "train_iters=20",
                          "clip_grad=1.0",
                          "bf16=true",
                          "split=1,0,0",
                          "train_data_path=null",
                          "data_path=D1",
                          "eval_interval=0",
                          "log_interval=10",
                          "use_distributed_optimizer=false",
                          "use_torch_fsdp2=true",
                          "sevenfold.ranks=2"};

void expect_same_model(const ModelConfig& a, const ModelConfig& b) {
  EXPECT_EQ(a.num_layers, b.num_layers);
  EXPECT_EQ(a.hidden_size, b.hidden_size);
  EXPECT_EQ(a.ffn_hidden_size, b.ffn_hidden_size);
  EXPECT_EQ(a.num_attention_heads, b.num_attention_heads);
  EXPECT_EQ(a.num_query_groups, b.num_query_groups);
  EXPECT_EQ(a.kv_channels, b.kv_channels);
  EXPECT_EQ(a.vocab_size, b.vocab_size);
  EXPECT_EQ(a.padded_vocab_size, b.padded_vocab_size);
  EXPECT_EQ(a.seq_length, b.seq_length);
  EXPECT_EQ(a.norm_epsilon, b.norm_epsilon);
  EXPECT_EQ(a.rotary_base, b.rotary_base);
  EXPECT_EQ(a.rotary_interleaved, b.rotary_interleaved);
  EXPECT_EQ(a.rope_scaling.has_value(), b.rope_scaling.has_value());
  EXPECT_EQ(a.tied_embeddings, b.tied_embeddings);
  EXPECT_EQ(a.activation, b.activation);
  EXPECT_EQ(a.norm, b.norm);
  EXPECT_EQ(a.positions, b.positions);
  EXPECT_EQ(a.hidden_dropout, b.hidden_dropout);
  EXPECT_EQ(a.init_method_std, b.init_method_std);
}

TEST(TorchTitan, LoadsIntoTheConfigOfItsMegatronTwin) {
  const Config own = load_text(small_titan(), {"sevenfold.ranks=2"});
  const Config twin = load_text(small_llama(), kTwinWords);
  EXPECT_EQ(own.framework, "torchtitan");
  expect_same_model(own.model, twin.model);
  EXPECT_EQ(own.batch.micro_batch_size, twin.batch.micro_batch_size);
  EXPECT_EQ(own.batch.global_batch_size, twin.batch.global_batch_size);
  EXPECT_EQ(own.batch.num_microbatches, twin.batch.num_microbatches);
  EXPECT_EQ(own.optimizer.kind, twin.optimizer.kind);
  EXPECT_EQ(own.optimizer.weight_decay, twin.optimizer.weight_decay);
  EXPECT_EQ(own.optimizer.adam_beta1, twin.optimizer.adam_beta1);
  EXPECT_EQ(own.optimizer.adam_beta2, twin.optimizer.adam_beta2);
  EXPECT_EQ(own.optimizer.adam_eps, twin.optimizer.adam_eps);
  EXPECT_EQ(own.optimizer.clip_grad, twin.optimizer.clip_grad);
  EXPECT_TRUE(own.optimizer.decay_all) << "norm gains decay in TorchTitan";
  EXPECT_FALSE(twin.optimizer.decay_all) << "not in Megatron";
  EXPECT_EQ(own.learning_rate.lr, twin.learning_rate.lr);
  EXPECT_EQ(own.learning_rate.min_lr, twin.learning_rate.min_lr);
  EXPECT_EQ(own.learning_rate.warmup_init, twin.learning_rate.warmup_init);
  EXPECT_EQ(own.learning_rate.warmup_samples, twin.learning_rate.warmup_samples);
  EXPECT_EQ(own.learning_rate.decay_samples, twin.learning_rate.decay_samples);
  EXPECT_EQ(own.learning_rate.wsd_decay_samples, twin.learning_rate.wsd_decay_samples);
  EXPECT_EQ(own.learning_rate.style, twin.learning_rate.style);
  EXPECT_EQ(own.learning_rate.wsd_style, twin.learning_rate.wsd_style);
  EXPECT_EQ(own.parallel.zero, ZeroStage::kParameters);
  EXPECT_EQ(own.parallel.zero, twin.parallel.zero);
  EXPECT_EQ(own.run.precision, twin.run.precision);
  EXPECT_EQ(own.run.seed, twin.run.seed);
  EXPECT_EQ(own.run.train_iters, twin.run.train_iters);
  EXPECT_EQ(own.run.log_interval, twin.run.log_interval);
  EXPECT_EQ(own.run.directory, twin.run.directory);
  EXPECT_EQ(own.data.data.prefixes, twin.data.data.prefixes);
  EXPECT_EQ(own.data.split, twin.data.split);
  EXPECT_EQ(own.data.loader, twin.data.loader);
  EXPECT_THAT(own.unsupported, IsEmpty());
  EXPECT_THAT(own.unknown, IsEmpty());
}

TEST(TorchTitan, ReadsItsResolvedFileBack) {
  const Words words = {"sevenfold.ranks=4", "parallelism.pipeline_parallel_degree=2",
                       "optimizer.lr=1e-4"};
  const Config config = load_text(small_titan(), words);
  const Config again = load_text(config.resolved_yaml);
  EXPECT_EQ(again.framework, "torchtitan");
  EXPECT_EQ(again.mesh.world_size(), 4);
  EXPECT_EQ(again.pipeline.stages, config.pipeline.stages);
  EXPECT_EQ(again.learning_rate.lr, 1e-4);
  EXPECT_EQ(again.learning_rate.warmup_init, config.learning_rate.warmup_init);
  expect_same_model(again.model, config.model);
  EXPECT_EQ(again.resolved_yaml, config.resolved_yaml);
}

// The translation, written out as a megatron file, is the same run.
TEST(TorchTitan, IsWrittenOutInMegatronKeys) {
  const ExperimentFiles files;
  LoadOptions options;
  options.file = files.write("run.yaml", small_titan());
  options.environment = environment_of({});
  options.overrides = {"sevenfold.ranks=8",
                       "parallelism.pipeline_parallel_degree=2",
                       "parallelism.pipeline_parallel_schedule=ZBVZeroBubble",
                       "parallelism.tensor_parallel_degree=2",
                       "activation_checkpoint.mode=selective",
                       "lr_scheduler.min_lr_factor=0.1",
                       "training.global_batch_size=32"};
  const Config own = load_config(options);
  const Config twin = load_text(megatron_yaml(options));
  EXPECT_EQ(twin.framework, "megatron");
  expect_same_model(own.model, twin.model);
  EXPECT_EQ(own.mesh.tp, twin.mesh.tp);
  EXPECT_EQ(own.mesh.pp, twin.mesh.pp);
  EXPECT_EQ(own.mesh.dp, twin.mesh.dp);
  EXPECT_EQ(own.pipeline.algorithm, twin.pipeline.algorithm);
  EXPECT_EQ(own.pipeline.stages, twin.pipeline.stages);
  EXPECT_EQ(own.parallel.zero, twin.parallel.zero);
  EXPECT_EQ(own.parallel.sequence, twin.parallel.sequence);
  EXPECT_EQ(own.parallel.reshard_after_forward, twin.parallel.reshard_after_forward);
  EXPECT_EQ(own.batch.num_microbatches, twin.batch.num_microbatches);
  EXPECT_EQ(own.recompute.layer_ids, twin.recompute.layer_ids);
  EXPECT_EQ(own.learning_rate.min_lr, twin.learning_rate.min_lr);
  EXPECT_EQ(own.learning_rate.warmup_init, twin.learning_rate.warmup_init);
  EXPECT_EQ(own.learning_rate.wsd_decay_samples, twin.learning_rate.wsd_decay_samples);
  EXPECT_EQ(own.optimizer.weight_decay, twin.optimizer.weight_decay);
  EXPECT_TRUE(twin.optimizer.decay_all);
  EXPECT_EQ(own.run.train_iters, twin.run.train_iters);
  EXPECT_EQ(own.run.precision, twin.run.precision);
  EXPECT_THAT(twin.unknown, IsEmpty());
  EXPECT_THAT(twin.unsupported, IsEmpty());
}

struct FlavorShape {
  const char* family;
  const char* flavor;
  int64_t layers, dim, ffn, heads, kv_heads, head_dim, vocab;
  double rotary_base, epsilon;
  bool is_tied, has_qk_norm;
};

// Sources: TorchTitan's registries of models, as published.
constexpr FlavorShape kShapes[] = {
    {"llama3", "debugmodel", 6, 256, 768, 16, 16, 16, 2048, 5e5, 1e-5, false, false},
    {"llama3", "1B", 16, 2048, 8192, 32, 8, 64, 128256, 5e5, 1e-5, true, false},
    {"llama3", "3B", 28, 3072, 8192, 24, 8, 128, 128256, 5e5, 1e-5, true, false},
    {"llama3", "8B", 32, 4096, 14336, 32, 8, 128, 128256, 5e5, 1e-5, false, false},
    {"llama3", "70B", 80, 8192, 28672, 64, 8, 128, 128256, 5e5, 1e-5, false, false},
    {"llama3", "405B", 126, 16384, 53248, 128, 8, 128, 128256, 5e5, 1e-5, false, false},
    {"qwen3", "debugmodel", 8, 256, 3072, 16, 8, 128, 2048, 1e6, 1e-6, true, true},
    {"qwen3", "0.6B", 28, 1024, 3072, 16, 8, 128, 151936, 1e6, 1e-6, true, true},
    {"qwen3", "1.7B", 28, 2048, 6144, 16, 8, 128, 151936, 1e6, 1e-6, true, true},
    {"qwen3", "4B", 36, 2560, 9728, 32, 8, 128, 151936, 1e6, 1e-6, true, true},
    {"qwen3", "8B", 36, 4096, 12288, 32, 8, 128, 151936, 1e6, 1e-6, false, true},
    {"qwen3", "14B", 40, 5120, 17408, 40, 8, 128, 151936, 1e6, 1e-6, false, true},
    {"qwen3", "32B", 64, 5120, 25600, 64, 8, 128, 151936, 1e6, 1e-6, false, true},
};

std::string plain_titan(const std::string& model) {
  return "work_group: g\nuser_name: u\nexp_name: e\nworkspace: w\nmodules:\n  pre_trainer:\n"
         "    framework: torchtitan\n    config: pre_trainer.yaml\n    model: llama3.1_8B.yaml\n"
         "    overrides:\n      model: " +
         model + "\n";
}

TEST(TorchTitanModel, HasTheShapeOfItsFlavor) {
  for (const FlavorShape& shape : kShapes) {
    SCOPED_TRACE(std::string(shape.family) + " " + shape.flavor);
    const ModelConfig model = load_text(plain_titan(std::string("{name: ") + shape.family +
                                                    ", flavor: " + shape.flavor + "}"))
                                  .model;
    EXPECT_EQ(model.num_layers, shape.layers);
    EXPECT_EQ(model.hidden_size, shape.dim);
    EXPECT_EQ(model.ffn_hidden_size, shape.ffn);
    EXPECT_EQ(model.num_attention_heads, shape.heads);
    EXPECT_EQ(model.num_query_groups, shape.kv_heads);
    EXPECT_EQ(model.kv_channels, shape.head_dim);
    EXPECT_EQ(model.vocab_size, shape.vocab);
    EXPECT_EQ(model.padded_vocab_size, shape.vocab);
    EXPECT_EQ(model.rotary_base, shape.rotary_base);
    EXPECT_EQ(model.norm_epsilon, shape.epsilon);
    EXPECT_EQ(model.tied_embeddings, shape.is_tied);
    EXPECT_EQ(model.qk_norm, shape.has_qk_norm);
    const bool is_llama = std::string(shape.family) == "llama3";
    EXPECT_EQ(model.rotary_interleaved, is_llama);
    EXPECT_EQ(model.rope_scaling.has_value(), is_llama);
  }
}

TEST(TorchTitanModel, TakesFieldsInThePlaceOfTheFlavors) {
  const ModelConfig llama =
      load_text(
          plain_titan("{name: llama3, flavor: 8B, dim: 512, n_heads: 16, n_kv_heads: 4, "
                      "n_layers: 2, rope_theta: 1e4, norm_eps: 1e-6, vocab_size: 99, "
                      "ffn_dim_multiplier: 1.5, multiple_of: 128, enable_weight_tying: true}"))
          .model;
  EXPECT_EQ(llama.ffn_hidden_size, 2048) << "floor(1.5 floor(4096 / 3)) = 2047, up to 128";
  EXPECT_EQ(llama.kv_channels, 32);
  EXPECT_EQ(llama.num_query_groups, 4);
  EXPECT_EQ(llama.rotary_base, 1e4);
  EXPECT_EQ(llama.norm_epsilon, 1e-6);
  EXPECT_EQ(llama.vocab_size, 99);
  EXPECT_TRUE(llama.tied_embeddings);
  const ModelConfig qwen =
      load_text(plain_titan("{name: qwen3, flavor: 8B, hidden_dim: 640, head_dim: 64, qk_norm: "
                            "false}"))
          .model;
  EXPECT_EQ(qwen.ffn_hidden_size, 640);
  EXPECT_EQ(qwen.kv_channels, 64);
  EXPECT_FALSE(qwen.qk_norm);
}

TEST(TorchTitanModel, WithExpertsIsShownAndNotTrained) {
  const Config config =
      load_text(plain_titan("{name: deepseek_v3, flavor: 16B}"),
                {"parallelism.expert_parallel_degree=8", "training.mock_data=true"});
  EXPECT_EQ(config.mesh.ep, 8);
  EXPECT_EQ(config.mesh.world_size(), 8);
  EXPECT_EQ(config.model.num_layers, 27);
  std::string all;
  for (const Unsupported& item : config.unsupported) all += item.text + "\n";
  EXPECT_THAT(all, HasSubstr("model.flavor=16B: mixture of experts is not supported yet; use a "
                             "dense model"));
  EXPECT_THAT(all, HasSubstr("model.name=deepseek_v3: latent attention is not supported yet"));
  EXPECT_THAT(all, HasSubstr("parallelism.expert_parallel_degree=8: expert parallelism"));
  const Config dense = load_text(small_titan(), {"parallelism.expert_parallel_degree=8"});
  EXPECT_EQ(dense.mesh.ep, 1);
  EXPECT_THAT(dense.notices, Contains(Field(&Notice::text, HasSubstr("the model has no experts"))));
}

class TorchTitanFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("SEVENFOLD_PRIMUS_DIR");
    if (folder == nullptr)
      GTEST_SKIP() << "set SEVENFOLD_PRIMUS_DIR to a folder with primus/, examples/ and expected/";
    folder_ = folder;
  }

  Config load(const std::string& name, Words words) const {
    LoadOptions options;
    options.file = folder_ + "/examples/torchtitan/configs/MI300X/" + name + ".yaml";
    options.presets_directory = folder_;
    options.overrides = std::move(words);
    options.environment = environment_of({});
    return load_config(options);
  }

  nlohmann::json expected(const std::string& name) const {
    std::ifstream file(folder_ + "/expected/torchtitan--" + name + ".json");
    return nlohmann::json::parse(file);
  }

  std::string folder_;
};

TEST_F(TorchTitanFiles, LlamaHasTheValuesThatPrimusResolves) {
  const std::string name = "llama3.1_8B-BF16-pretrain";
  const Config config = load(name, {"sevenfold.ranks=16"});
  const nlohmann::json tree = expected(name);
  EXPECT_EQ(config.batch.micro_batch_size, tree["training"]["local_batch_size"]);
  EXPECT_EQ(config.batch.global_batch_size, 64);
  EXPECT_EQ(config.model.seq_length, tree["training"]["seq_len"]);
  EXPECT_EQ(config.run.train_iters, tree["training"]["steps"]);
  EXPECT_EQ(config.optimizer.clip_grad, tree["training"]["max_norm"]);
  EXPECT_EQ(config.learning_rate.lr, tree["optimizer"]["lr"]);
  EXPECT_EQ(config.optimizer.adam_beta2, tree["optimizer"]["beta2"]);
  EXPECT_EQ(config.optimizer.weight_decay, tree["optimizer"]["weight_decay"]);
  EXPECT_EQ(config.learning_rate.decay_samples, 50 * 64);
  EXPECT_EQ(config.learning_rate.warmup_samples, 9 * 64) << "10 steps, of which one is at lr / 10";
  EXPECT_EQ(config.run.log_interval, tree["metrics"]["log_freq"]);
  EXPECT_EQ(config.model.ffn_hidden_size, 14336);
  EXPECT_EQ(config.mesh.dp, 16);
  EXPECT_EQ(config.parallel.zero, ZeroStage::kParameters);
  EXPECT_TRUE(config.parallel.reshard_after_forward);
  EXPECT_EQ(config.run.precision, Precision::kBf16);
  EXPECT_THAT(config.unknown, IsEmpty());
  ASSERT_EQ(config.unsupported.size(), 1u) << "no data is named";
  EXPECT_THAT(config.unsupported[0].text,
              HasSubstr("training.dataset=c4: a set on a model hub is not fetched; set "
                        "training.dataset_path"));
  EXPECT_THAT(load(name, {"training.mock_data=true"}).unsupported, IsEmpty());
}

// Every entry of the listing is a value of the file that Primus resolves, or a default.
TEST_F(TorchTitanFiles, ListTheValuesThatPrimusResolves) {
  for (const std::string name : {"llama3.1_8B-BF16-pretrain", "deepseek_v3_16b-BF16-pretrain"}) {
    const nlohmann::json tree = expected(name).flatten();
    std::map<std::string, nlohmann::json> values;
    for (const ConfigEntry& entry : load(name, {}).entries)
      values[entry.key] = nlohmann::json::parse(entry.value_json);
    int num_compared = 0;
    for (const auto& [pointer, value] : tree.items()) {
      std::string key = pointer.substr(1);
      std::replace(key.begin(), key.end(), '/', '.');
      const config::KeyInfo* info = config::find_key(key, config::Framework::kTorchTitan);
      if (info == nullptr) continue;  // items of lists
      ASSERT_TRUE(values.count(key)) << name << " lacks " << key;
      if (values[key].is_array()) continue;  // flatten() knows no empty ones
      EXPECT_EQ(values[key], value) << name << " " << key;
      ++num_compared;
    }
    EXPECT_GT(num_compared, 90) << name;
  }
}

TEST_F(TorchTitanFiles, DeepSeekShowsItsMeshAndRate) {
  const Config config = load("deepseek_v3_16b-BF16-pretrain", {"training.steps=1000"});
  EXPECT_EQ(config.mesh.world_size(), 8);
  EXPECT_EQ(config.mesh.ep, 8);
  EXPECT_EQ(config.mesh.etp, 1);
  EXPECT_EQ(config.learning_rate.wsd_style, WsdDecayStyle::kCosine);
  EXPECT_EQ(config.learning_rate.wsd_decay_samples, 800 * 48);
  EXPECT_NEAR(config.learning_rate.min_lr, 2.2e-5, 1e-18);
  EXPECT_EQ(config.pipeline.stages.size(), 1u) << "a schedule without stages";
  ASSERT_EQ(config.unsupported.size(), 2u) << "EP and experts; classic attention needs no MLA";
}

TEST(KeyNames, TakeThePlaceOfWholeWords) {
  config::KeyNames names;
  names.set("num_layers", "model.n_layers");
  names.set("seed", "debug.seed");
  names.set("sevenfold.schedule_file", "a.csv");
  EXPECT_EQ(names.respell("num_layers=4: use num_layers, not my_num_layers or num_layers2."),
            "model.n_layers=4: use model.n_layers, not my_num_layers or num_layers2.");
  EXPECT_EQ(names.respell("the seed of data/num_layers/x is seed=3; see num_layers."),
            "the seed of data/num_layers/x is debug.seed=3; see model.n_layers.");
  EXPECT_EQ(names.respell("run.yaml:3 sevenfold.schedule_file=f"), "run.yaml:3 a.csv=f");
  EXPECT_EQ(names.respell(""), "");
}

}  // namespace
}  // namespace sevenfold
