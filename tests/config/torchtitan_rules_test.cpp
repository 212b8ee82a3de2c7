// Rules in the words of the torchtitan vocabulary.

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "config/experiment_files.h"
#include "sevenfold/config/keys/key_tables.h"
#include "sevenfold/config/parameters.h"
#include "sevenfold/config/rules/choices.h"

namespace sevenfold {
namespace {

using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using Words = std::vector<std::string>;

const std::string kTp = "parallelism.tensor_parallel_degree";
const std::string kCp = "parallelism.context_parallel_degree";
const std::string kPp = "parallelism.pipeline_parallel_degree";
const std::string kShard = "parallelism.data_parallel_shard_degree";
const std::string kReplicate = "parallelism.data_parallel_replicate_degree";

Config load(Words words) {
  return load_text(small_titan(), std::move(words));
}

// A name of the megatron vocabulary alone, as a word of `sentence`.
std::string foreign_name(const std::string& sentence) {
  for (const config::KeyInfo& key : config::all_keys()) {
    const std::string name(key.name);
    if (name.find('_') == std::string::npos) continue;
    for (size_t at = sentence.find(name); at != std::string::npos;
         at = sentence.find(name, at + 1)) {
      const auto is_letter = [&](size_t i) {
        return i < sentence.size() && (std::isalnum(static_cast<unsigned char>(sentence[i])) ||
                                       sentence[i] == '_' || sentence[i] == '.');
      };
      if (!(at > 0 && is_letter(at - 1)) && !is_letter(at + name.size())) return name;
    }
  }
  return "";
}

struct Refusal {
  Words words;
  const char* rule;
  const char* part;  // of the sentence
};

const Refusal kRefusals[] = {
    {{"model.name=llama9"}, "model.name", "use llama3, qwen3 or deepseek_v3"},
    {{"model.flavor=9B"}, "model.flavor", "llama3 has no such flavor; use debugmodel, 1B, 3B, 8B"},
    {{"model.head_dim=8"}, "model.field", "the shape of llama3 has no such field; use dim"},
    {{"model.my_own=8"}, "model.field", "override model.my_own=8"},
    {{"model.n_layers=0"}, "model.positive", "model.n_layers=0: must be at least 1"},
    {{"model.ffn_dim_multiplier=0"}, "model.range", "=0.0: must be above 0 and at most 1024"},
    {{"model.ffn_dim_multiplier=0.001"}, "model.range", "of model.dim=32 it leaves no MLP"},
    {{"model.n_heads=5"}, "heads.hidden", "does not divide model.dim=32; use 1, 2, 4, 8, 16 or 32"},
    {{"model.n_kv_heads=3"}, "groups.heads", "model.n_kv_heads=3 does not divide model.n_heads=4"},
    {{"model.norm_eps=0"}, "model.range", "model.norm_eps=0"},
    {{"model.rope_theta=0"}, "model.range", "model.rope_theta=0"},
    {{"model.ffn_dim_multiplier=-1"}, "model.range", "at most 1024"},
    {{kTp + "=0"}, "degree.positive", "1 switches the axis off"},
    {{kShard + "=0"}, "degree.positive", "or -1 for all ranks"},
    {{kTp + "=8", "training.seq_len=64", "model.dim=64"},
     "heads.divisible",
     "does not divide model.n_heads=4; use 1, 2 or 4"},
    {{kTp + "=3", "training.seq_len=33"}, "ffn.divisible", "does not divide the MLP's width 128"},
    {{"training.seq_len=33", kTp + "=2"}, "sequence.divisor", "use 32 or 34"},
    {{kTp + "=2", kCp + "=2", "training.seq_len=36"},
     "sequence.divisor",
     "is not a multiple of 8 (parallelism.tensor_parallel_degree 2 x 2 x "},
    {{kShard + "=4", "sevenfold.ranks=6"}, "world.product", "use 4 ranks, or"},
    {{kReplicate + "=2", kTp + "=2", "sevenfold.ranks=6"}, "world.product", "use 4 or 8 ranks"},
    {{"model.n_layers=70000"}, "model.positive", "at most 65536"},
    {{kShard + "=16777216", kTp + "=1024", kCp + "=1024", kPp + "=1024", kReplicate + "=1024",
      "sevenfold.ranks=2", "training.seq_len=2097152", "model.multiple_of=1024"},
     "world.positive",
     "use smaller ones"},
    {{kTp + "=1024", kCp + "=1024", kPp + "=1024", "training.seq_len=2097152",
      "model.multiple_of=1024"},
     "world.positive",
     "use smaller ones"},
    {{"sevenfold.ranks=0"}, "world.positive", "at least 1"},
    {{kShard + "=16777216", kTp + "=2"}, "world.positive", "use smaller ones"},
    {{"training.local_batch_size=0"},
     "batch.micro_positive",
     "training.local_batch_size=1 or more"},
    {{"training.global_batch_size=9223372036854775807"},
     "batch.divisible",
     "must be at most 2147483648; use training.global_batch_size=-1 for 8"},
    {{"training.global_batch_size=12"},
     "batch.divisible",
     "use training.global_batch_size=8 or 16, or -1 for 8"},
    {{kPp + "=2", "parallelism.pipeline_parallel_microbatch_size=3"},
     "batch.pipeline",
     "does not divide training.local_batch_size=8; use 1, 2, 4 or 8"},
    {{"training.steps=0"}, "run.range", "training.steps=0"},
    {{"training.max_norm=0"}, "optimizer.clip", "use training.max_norm=1.0"},
    {{"optimizer.lr=-1"}, "optimizer.range", "optimizer.lr=-1"},
    {{"optimizer.beta1=1"}, "optimizer.range", "optimizer.beta1=1"},
    {{"optimizer.eps=0"}, "optimizer.eps", "use optimizer.eps=1.0e-08"},
    {{"lr_scheduler.warmup_steps=-1"}, "lr.steps", "lr_scheduler.warmup_steps=-1"},
    {{"lr_scheduler.decay_ratio=1.5"}, "optimizer.range", "lr_scheduler.decay_ratio=1.5"},
    {{"lr_scheduler.min_lr_factor=2"}, "optimizer.range", "lr_scheduler.min_lr_factor=2"},
    {{"lr_scheduler.total_steps=5"}, "lr.total", "is below training.steps=20"},
    {{"activation_checkpoint.mode=selective", "activation_checkpoint.selective_ac_option=0"},
     "recompute.option",
     "use \"2\" or op"},
    {{"debug.seed=5000000000"}, "data.seed", "debug.seed=5000000000"},
    {{"debug.seed=-1"}, "run.range", "debug.seed=-1"},
};

TEST(TorchTitanRules, SpeakOfTheKeysThatTheUserWrote) {
  for (const Refusal& refusal : kRefusals) {
    const std::string sentence = rule_of(small_titan(), refusal.words);
    EXPECT_THAT(sentence, StartsWith(std::string(refusal.rule) + " config: "))
        << refusal.words.front();
    EXPECT_THAT(sentence, HasSubstr(refusal.part));
    // Fields of a shape may be called as keys of the other vocabulary are.
    if (std::string_view(refusal.rule) != "model.field") {
      EXPECT_EQ(foreign_name(sentence), "") << sentence;
    }
  }
}

TEST(TorchTitanRules, NameTheGroupOfExperts) {
  std::string text = small_titan();
  text.replace(text.find("        flavor"), 0, "        name: qwen3\n");
  text.replace(text.find("debugmodel"), 10, "30B-A3B");
  text.erase(text.find("        multiple_of: 64\n"), 24);
  const auto rule = [&](Words words) { return rule_of(text, std::move(words)); };
  EXPECT_THAT(rule({"parallelism.expert_parallel_degree=3"}),
              StartsWith("experts.divisible config: override parallelism.expert_parallel_degree=3 "
                         "does not divide model.moe_args.num_experts=128"));
  EXPECT_THAT(rule({"parallelism.expert_parallel_degree=4", "sevenfold.ranks=6"}),
              StartsWith("world.experts config: override parallelism.expert_parallel_degree=4"));
  EXPECT_THAT(
      rule({"parallelism.expert_parallel_degree=4", "parallelism.expert_tensor_parallel_degree=2"}),
      StartsWith("experts.tensor config: override parallelism.expert_tensor_parallel_degree=2"));
}

TEST(TorchTitanRules, RefuseWordsThatAreNoChoices) {
  for (const config::Choice& choice : config::choices(config::Framework::kTorchTitan)) {
    const std::string key(choice.key);
    EXPECT_NE(config::find_key(key, config::Framework::kTorchTitan), nullptr) << key;
    EXPECT_THAT(rule_of(small_titan(), {key + "=zzz"}),
                StartsWith("key.choice config: override " + key + "=zzz: `zzz` is not among the "))
        << key;
  }
}

TEST(TorchTitanRules, TellTypesAndMissingValues) {
  EXPECT_EQ(error_of(small_titan(), {"training.steps=abc"}),
            "config: override training.steps=abc is not an integer; correct the value");
  EXPECT_EQ(error_of(small_titan(), {"training.steps=null"}),
            "config: override training.steps=null: this key needs a value (an integer); set it");
  EXPECT_EQ(error_of(small_titan(), {"training=5"}),
            "config: override training=5: this is a group of keys; write a map of them");
  EXPECT_THAT(error_of(small_titan("      optimizer: 3\n")),
              HasSubstr("run.yaml:27 optimizer=3: this is a group of keys"));
  EXPECT_THAT(load({"zzz_mine=1"}).unknown, Contains(Field(&KeyNote::key, "zzz_mine")));
}

// What changes the result and is not there is refused by train and verify, in the user's words.
TEST(TorchTitanRules, RefuseToTrainWhatIsNotThere) {
  const std::pair<Words, const char*> cases[] = {
      {{"validation.enable=true"}, "validation.enable=true: validation"},
      {{"training.dtype=bfloat16"}, "training.dtype=bfloat16: master weights"},
      {{"training.enable_cpu_offload=true"}, "training.enable_cpu_offload=true"},
      {{"optimizer.early_step_in_backward=true"}, "optimizer.early_step_in_backward=true"},
      {{"optimizer.name=Adam"}, "optimizer.name=Adam: it adds weight decay to the gradient"},
      {{"model.converters=[primus_turbo, quantize.linear.float8]"},
       "quantize.linear.float8 is not supported yet; use model.converters=[]"},
      {{"model.use_flex_attn=true"}, "model.use_flex_attn=true: attention within documents"},
      {{"primus_turbo.enable_attention_float8=true"}, "8-bit attention is not supported yet"},
      {{"fault_tolerance.enable=true"}, "fault_tolerance.enable=true"},
      {{"training.dataset_path=null"}, "set training.dataset_path to a .bin/.idx prefix"},
      {{kCp + "=2"}, "context parallelism is not supported yet; use "},
  };
  for (const auto& [words, part] : cases) {
    const Config config = load(words);
    ASSERT_EQ(config.unsupported.size(), 1u) << words.front();
    EXPECT_THAT(config.unsupported[0].text, HasSubstr(part));
    EXPECT_EQ(foreign_name(config.unsupported[0].text), "") << config.unsupported[0].text;
  }
  for (const Words& words : {Words{"optimizer.name=Adam", "optimizer.weight_decay=0"},
                             Words{"training.dataset_path=null", "training.mock_data=true"},
                             Words{"model.converters=null"}})
    EXPECT_THAT(load(words).unsupported, IsEmpty()) << words.front();
}

TEST(TorchTitanNotices, SpeakOfTheKeysThatTheUserWrote) {
  for (const Notice& notice :
       load({"training.mock_data=true", kTp + "=2", "lr_scheduler.warmup_steps=100",
             "training.mixed_precision_reduce=bfloat16", "sevenfold.precision=fp32",
             "sevenfold.ranks=4"})
           .notices)
    EXPECT_EQ(foreign_name(notice.text), "") << notice.text;
}

TEST(TorchTitanDegrees, MakeTheMesh) {
  const MeshShape all = load({kTp + "=2", kPp + "=2", "sevenfold.ranks=16"}).mesh;
  EXPECT_EQ(all.tp, 2);
  EXPECT_EQ(all.pp, 2);
  EXPECT_EQ(all.dp, 4);
  EXPECT_EQ(all.dp_replicate, 1);
  const Config hybrid = load({kReplicate + "=2", kShard + "=4", kTp + "=2"});
  EXPECT_EQ(hybrid.mesh.world_size(), 16) << "without a request, what the degrees make";
  EXPECT_EQ(hybrid.mesh.dp, 8);
  EXPECT_EQ(hybrid.mesh.dp_replicate, 2);
  EXPECT_EQ(hybrid.parallel.zero, ZeroStage::kParameters);
  EXPECT_TRUE(hybrid.parallel.sequence);
  const Config plain = load({kReplicate + "=4", kShard + "=1"});
  EXPECT_EQ(plain.mesh.dp, 4);
  EXPECT_EQ(plain.mesh.dp_replicate, 1);
  EXPECT_EQ(plain.parallel.zero, ZeroStage::kNone) << "copies, as DDP keeps them";
  EXPECT_FALSE(plain.parallel.sequence);
  const Config context = load({kCp + "=2", kShard + "=1"});
  EXPECT_EQ(context.parallel.zero, ZeroStage::kParameters) << "CP ranks share weights too";
}

TEST(TorchTitanDegrees, FreeWeightsAsTheKeySays) {
  const std::string key = "parallelism.fsdp_reshard_after_forward=";
  const auto frees = [](Words words) {
    return load(std::move(words)).parallel.reshard_after_forward;
  };
  EXPECT_TRUE(frees({}));
  EXPECT_FALSE(frees({kPp + "=2"})) << "default: not with a pipeline";
  EXPECT_TRUE(frees({kPp + "=2", key + "always"}));
  EXPECT_FALSE(frees({key + "never"}));
}

TEST(TorchTitanBatches, CountLocalBatchesAndMicroBatches) {
  const BatchConfig plain = load({"sevenfold.ranks=2", "training.global_batch_size=48"}).batch;
  EXPECT_EQ(plain.micro_batch_size, 8);
  EXPECT_EQ(plain.num_microbatches, 3);
  const BatchConfig stages =
      load({kPp + "=2", "parallelism.pipeline_parallel_microbatch_size=2"}).batch;
  EXPECT_EQ(stages.micro_batch_size, 2);
  EXPECT_EQ(stages.global_batch_size, 8);
  EXPECT_EQ(stages.num_microbatches, 4);
}

// The rate at step s of the Config's schedule, as train/ computes it from consumed samples.
double rate_at(const Config& config, int64_t s) {
  const LearningRateConfig& rate = config.learning_rate;
  const double n = static_cast<double>(s * config.batch.global_batch_size);
  const auto warmup = static_cast<double>(rate.warmup_samples);
  if (warmup > 0 && n <= warmup)
    return rate.warmup_init + (rate.lr - rate.warmup_init) * n / warmup;
  if (rate.style == DecayStyle::kConstant) return rate.lr;
  const double start = static_cast<double>(rate.decay_samples - rate.wsd_decay_samples);
  if (n <= start) return rate.lr;
  const double r = (n - start) / static_cast<double>(rate.wsd_decay_samples);
  const double factor = rate.wsd_style == WsdDecayStyle::kLinear ? 1.0 - r
                        : rate.wsd_style == WsdDecayStyle::kCosine
                            ? 0.5 * (1.0 + std::cos(M_PI * r))
                            : 1.0 - std::sqrt(r);
  return rate.min_lr + factor * (rate.lr - rate.min_lr);
}

// TorchTitan's formula as published: `decay` < 0 is its null.
double titan_factor(int64_t s, int64_t total, int64_t warmup, double decay, const std::string& type,
                    double floor) {
  warmup = std::min(warmup, total);
  int64_t falling = total - warmup;
  if (decay >= 0)
    falling = std::min<int64_t>(falling, std::llround(decay * static_cast<double>(total)));
  const int64_t stable = total + 1 - warmup - falling;
  if (s < warmup) return static_cast<double>(s + 1) / static_cast<double>(warmup);
  if (s < warmup + stable) return 1.0;
  const double p = static_cast<double>(s + 1 - warmup - stable) / static_cast<double>(falling);
  const double factor = type == "linear"   ? 1.0 - p
                        : type == "cosine" ? 0.5 * (1.0 + std::cos(M_PI * p))
                                           : 1.0 - std::sqrt(p);
  return floor + (1.0 - floor) * factor;
}

void expect_rates(const std::string& type, int64_t warmup, double decay) {
  constexpr int64_t kTotal = 20;
  constexpr double kFloor = 0.25;
  Words words = {"lr_scheduler.decay_type=" + type,
                 "lr_scheduler.warmup_steps=" + std::to_string(warmup),
                 "lr_scheduler.min_lr_factor=" + std::to_string(kFloor)};
  if (decay >= 0) words.push_back("lr_scheduler.decay_ratio=" + std::to_string(decay));
  const Config config = load(words);
  for (int64_t s = 0; s < kTotal; ++s)
    EXPECT_NEAR(rate_at(config, s), 8e-4 * titan_factor(s, kTotal, warmup, decay, type, kFloor),
                1e-15)
        << type << " warmup " << warmup << " decay " << decay << " step " << s;
}

TEST(TorchTitanLearningRate, IsTorchTitansAtEveryStep) {
  for (const int64_t warmup : {0, 1, 5, 20, 30})
    for (const double decay : {-1.0, 0.0, 0.5, 1.0}) expect_rates("linear", warmup, decay);
  for (const std::string type : {"sqrt", "cosine"})
    for (const int64_t warmup : {0, 5}) expect_rates(type, warmup, 0.5);
}

TEST(TorchTitanPrecision, IsThatOfMixedPrecision) {
  EXPECT_EQ(load({}).run.precision, Precision::kBf16);
  EXPECT_FALSE(load({}).parallel.reduces_in_bf16);
  EXPECT_EQ(load({"training.mixed_precision_param=float32"}).run.precision, Precision::kFp32);
}

// FSDP rounds them, DDP does not.
TEST(TorchTitanPrecision, RoundsSumsOfRanksThatShareWeights) {
  const std::string rounded = "training.mixed_precision_reduce=bfloat16";
  const auto told = [](const Config& config, const std::string& part) {
    return std::count_if(config.notices.begin(), config.notices.end(), [&](const Notice& notice) {
      return notice.text.find(part) != std::string::npos;
    });
  };
  const Config shared = load({rounded, "sevenfold.ranks=2"});
  EXPECT_TRUE(shared.parallel.reduces_in_bf16);
  EXPECT_EQ(told(shared, "mixed_precision_reduce"), 0);
  const Config copies = load({rounded, kReplicate + "=2", kShard + "=1"});
  EXPECT_FALSE(copies.parallel.reduces_in_bf16);
  EXPECT_EQ(told(copies, rounded + ": has no effect: it is of ranks that share weights"), 1);
  const Config wide =
      load({rounded, "sevenfold.ranks=2", "training.mixed_precision_param=float32"});
  EXPECT_FALSE(wide.parallel.reduces_in_bf16);
  EXPECT_EQ(told(wide, rounded + ": has no effect: gradients of a float32 run"), 1);
}

TEST(TorchTitanPrecision, SaysWhereTorchTitanComputesInFloat32) {
  const auto is_told = [](Words words) {
    for (const Notice& notice : load(std::move(words)).notices)
      if (notice.text.find("TorchTitan computes in float32") != std::string::npos) return true;
    return false;
  };
  EXPECT_TRUE(is_told({kTp + "=2"}));
  EXPECT_TRUE(is_told({kPp + "=2", kReplicate + "=2", kShard + "=1"}));
  EXPECT_FALSE(is_told({kTp + "=2", kShard + "=2"}));
  EXPECT_FALSE(is_told({kReplicate + "=2", kShard + "=1"})) << "DDP has autocast";
  EXPECT_FALSE(is_told({kTp + "=2", "sevenfold.precision=fp32"}));
  EXPECT_FALSE(is_told({kTp + "=2", "training.mixed_precision_param=float32"}));
}

TEST(TorchTitanRecomputation, RepeatsTheLayersThatTheKeysName) {
  const std::string mode = "activation_checkpoint.mode=";
  const std::string option = "activation_checkpoint.selective_ac_option=";
  EXPECT_EQ(load({}).recompute.layers, RecomputedLayers::kNone);
  const RecomputeConfig full = load({mode + "full"}).recompute;
  EXPECT_EQ(full.layers, RecomputedLayers::kUniform);
  EXPECT_EQ(full.num_layers, 1);
  const RecomputeConfig second = load({mode + "selective"}).recompute;
  EXPECT_EQ(second.layers, RecomputedLayers::kNamed);
  EXPECT_EQ(second.layer_ids, (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(load({mode + "selective", option + "3"}).recompute.layer_ids,
            (std::vector<int64_t>{2}));
  EXPECT_EQ(load({mode + "selective", option + "9"}).recompute.layers, RecomputedLayers::kNone);
  const RecomputeConfig operations = load({mode + "selective", option + "op"}).recompute;
  EXPECT_EQ(operations.layers, RecomputedLayers::kNone);
  EXPECT_TRUE(operations.norms);
  EXPECT_TRUE(operations.activation);
  EXPECT_FALSE(operations.core_attention);
}

TEST(TorchTitanLogging, FollowsItsKeys) {
  EXPECT_EQ(load({}).run.tensorboard_directory, "");
  EXPECT_EQ(load({"metrics.enable_tensorboard=true"}).run.tensorboard_directory,
            "out/team/me/small/tensorboard");
  EXPECT_EQ(load({"metrics.log_freq=3"}).run.log_interval, 3);
  EXPECT_EQ(load({"debug.seed=7"}).run.seed, 7u);
}

TEST(TorchTitanKeys, HoldEachNameOnceWithADefaultOfItsType) {
  std::string last;
  for (const config::KeyInfo& key : config::all_keys(config::Framework::kTorchTitan)) {
    EXPECT_NE(key.name, last) << "stands twice";
    last = key.name;
    EXPECT_FALSE(key.help.empty()) << key.name;
    if (key.type == config::KeyType::kMap) continue;
    EXPECT_TRUE(config::default_of(key).has_value()) << key.name;
  }
}

}  // namespace
}  // namespace sevenfold
