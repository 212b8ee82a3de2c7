#include "sevenfold/config/rules/rules.h"

#include <gmock/gmock.h>

#include "config/experiment_files.h"

namespace sevenfold {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Numbers, ListsDivisorsAndNearestMultiples) {
  EXPECT_EQ(config::divisor_list(1), "1");
  EXPECT_EQ(config::divisor_list(7), "1 or 7");
  EXPECT_EQ(config::divisor_list(36), "1, 2, 3, 4, 6, 9, 12, 18 or 36");
  EXPECT_EQ(config::nearest_multiples(6, 4), "4 or 8");
  EXPECT_EQ(config::nearest_multiples(3, 4), "4");
  EXPECT_EQ(config::nearest_multiples(9, 4), "8 or 12");
}

TEST(PrecisionRule, AllowsOnePrecision) {
  EXPECT_EQ(rule_of(small_llama(), {"bf16=true", "fp16=true"}),
            "precision.one config: override bf16=true: fp16 is true too, and a run has one "
            "precision; use fp16=false or "
            "bf16=false");
}

TEST(RunRule, ListsTheChoices) {
  EXPECT_EQ(rule_of(small_llama(), {"sevenfold.precision=fp12"}),
            "run.choice config: override sevenfold.precision=fp12: there is no precision `fp12`; "
            "use fp64, fp32, bf16 or fp16");
  EXPECT_THAT(rule_of(small_llama(), {"sevenfold.backend=mpi"}),
              HasSubstr("use threads, gloo, nccl or dry"));
  EXPECT_THAT(rule_of(small_llama(), {"sevenfold.start=warm"}), HasSubstr("use init or hot"));
  EXPECT_THAT(rule_of(small_llama(), {"sevenfold.device=tpu"}), HasSubstr("use auto, cpu or cuda"));
}

TEST(LengthRule, KeepsTheSequenceWithinThePositions) {
  EXPECT_THAT(
      rule_of(small_llama(), {"seq_length=65"}),
      StartsWith(
          "sequence.positions config: override seq_length=65 is above max_position_embeddings=64"));
  EXPECT_THAT(rule_of(small_llama(), {"max_position_embeddings=null"}),
              StartsWith("sequence.positions "));
  EXPECT_THAT(
      rule_of(small_llama(), {"context_parallel_size=3"}),
      StartsWith("sequence.context config: run.yaml:19 seq_length=32 is not a multiple of 2 x "
                 "context_parallel_size=3 (each rank takes a head "
                 "and a tail piece); use seq_length=30 or 36"));
}

TEST(ModelRule, RefusesSizesBelowOneAndOddRotations) {
  for (const char* word :
       {"num_layers=0", "hidden_size=-4", "vocab_size=0", "seq_length=0", "ffn_hidden_size=0"})
    EXPECT_THAT(rule_of(small_llama(), {word}),
                StartsWith("model.positive config: override " + std::string(word)));
  EXPECT_THAT(rule_of(small_llama(), {"kv_channels=5"}), StartsWith("rotary.even "));
  EXPECT_THAT(rule_of(small_llama(), {"rotary_percent=0.01"}), StartsWith("rotary.even "));
  EXPECT_THAT(rule_of(small_llama(), {"hidden_size=8", "ffn_hidden_size=null"}),
              HasSubstr("hidden_size=8 is too small"));
}

TEST(RangeRule, KeepsProductsWithin64Bits) {
  const std::pair<const char*, const char*> words[] = {
      {"global_batch_size=9000000000000000000", "batch.global_positive"},
      {"global_batch_size=2147483649", "batch.global_positive"},
      {"micro_batch_size=9000000000000000000", "batch.micro_positive"},
      {"train_iters=9000000000000000000", "run.range"},
      {"eval_iters=9000000000000000000", "run.range"},
      {"eval_interval=9000000000000000000", "run.range"},
      {"log_interval=9000000000000000000", "run.range"},
      {"distributed_timeout_minutes=525601", "run.range"},
      {"ddp_bucket_size=9000000000000000000", "run.range"},
      {"lr_decay_iters=9000000000000000000", "lr.steps"},
      {"lr_warmup_iters=9000000000000000000", "lr.steps"},
      {"num_layers=9223372036854775783", "model.positive"},
      {"hidden_size=2147483649", "model.positive"}};
  for (const auto& [word, rule] : words)
    EXPECT_THAT(
        rule_of(small_llama(),
                {word, std::string(word).starts_with("lr_decay") ? "seed=1" : "lr_decay_iters=9"}),
        StartsWith(std::string(rule) + " config: override " + word))
        << word;
  EXPECT_THAT(rule_of(small_llama(), {"micro_batch_size=65536", "sevenfold.ranks=65536"}),
              StartsWith("batch.micro_positive "));
  EXPECT_THAT(
      rule_of(small_llama(), {"num_experts=9223372036854775783", "expert_model_parallel_size=2"}),
      StartsWith("experts.range "));
}

TEST(RangeRule, AllowsTheLargestRun) {
  const Config config = load_text(
      small_llama(), {"train_iters=2147483648", "global_batch_size=2147483648", "eval_iters=1",
                      "distributed_timeout_minutes=525600", "lr_decay_iters=2147483648"});
  EXPECT_EQ(config.learning_rate.decay_samples, int64_t{1} << 62);
  EXPECT_EQ(config.run.timeout_s, 525600 * 60);
}

TEST(RangeRule, CountsTheSamplesOfAllEvaluations) {
  EXPECT_THAT(
      rule_of(small_llama(),
              {"train_iters=2147483648", "eval_interval=1", "eval_iters=2147483648"}),
      StartsWith("run.samples config: override eval_iters=2147483648: 2147483649 evaluations of "
                 "that many global batches of 8 samples"));
}

TEST(RangeRule, BoundsTheElementsOfWeightsAndTensors) {
  EXPECT_THAT(rule_of(small_llama(), {"hidden_size=2147483648", "ffn_hidden_size=2147483648"}),
              HasSubstr("ffn_hidden_size=2147483648, num_attention_heads=4 x "
                        "kv_channels=536870912 and vocab_size=101 the model has 1.3e+20 weights"));
  EXPECT_THAT(
      rule_of(small_llama(), {"seq_length=2147483648", "max_position_embeddings=2147483648"}),
      StartsWith("model.elements config: run.yaml:21 micro_batch_size=1: with "
                 "seq_length=2147483648 a micro batch makes a tensor of 1.8e+19 elements"));
}

TEST(LearningRateRule, ChecksTheSchedule) {
  EXPECT_EQ(rule_of(small_llama(), {"lr_warmup_iters=4"}),
            "lr.warmup config: override lr_warmup_iters=4: the warm-up must be shorter than "
            "train_iters=4; use "
            "lr_warmup_iters=0 or a shorter one");
  EXPECT_THAT(rule_of(small_llama(), {"lr_warmup_iters=1", "lr_warmup_fraction=0.1"}),
              StartsWith("lr.warmup_twice "));
  EXPECT_THAT(rule_of(small_llama(), {"min_lr=0.2"}),
              StartsWith("lr.min config: override min_lr=0.2 is above lr=0.1"));
  EXPECT_THAT(rule_of(small_llama(), {"lr_decay_style=triangle"}), StartsWith("lr.style "));
  EXPECT_THAT(rule_of(small_llama(), {"train_iters=0"}), StartsWith("lr.steps "));
  EXPECT_THAT(rule_of(small_llama(), {"adam_beta2=1.0"}), StartsWith("optimizer.range "));
  for (const char* word : {"adam_eps=0", "adam_eps=-1.0e-8", "adam_eps=.nan", "adam_eps=.inf"})
    EXPECT_THAT(rule_of(small_llama(), {word}), StartsWith("optimizer.eps ")) << word;
  EXPECT_EQ(
      rule_of(small_llama(), {"adam_eps=0"}),
      "optimizer.eps config: override adam_eps=0.0: must be a number above 0, or weights without "
      "a gradient become 0/0; use adam_eps=1.0e-08");
}

TEST(LearningRateRule, NamesThePresetThatSetsTheWarmUp) {
  std::string text = small_llama();
  text.erase(text.find("      lr_warmup_iters: 0\n"),
             std::string("      lr_warmup_iters: 0\n").size());
  EXPECT_THAT(rule_of(text), HasSubstr("built-in preset modules/megatron/pre_trainer.yaml:"));
  EXPECT_THAT(rule_of(text),
              HasSubstr("lr_warmup_iters=40: the warm-up must be shorter than train_iters=4"));
}

TEST(DataRule, AllowsOneSource) {
  EXPECT_THAT(rule_of(small_llama(), {"data_path=P"}),
              StartsWith("data.one_source config: override data_path=P"));
  EXPECT_THAT(rule_of(small_llama(), {"sevenfold.eod_token_id=101"}), StartsWith("data.eod "));
  EXPECT_THAT(rule_of(small_llama(), {"dataloader_type=random"}), StartsWith("data.loader "));
}

TEST(DataRule, LeavesTheSplitToWhoOpensTheData) {
  for (const std::string split : {"98/2", "100", "1e999,1"})
    EXPECT_EQ(load_text(small_llama(), {"split=" + split}).data.split, split);
}

TEST(DataRule, RefusesTextThatWouldBeTokenizedForNothing) {
  const std::string text = small_llama(
      "", "sevenfold:\n  prepare: {input: ['*.txt'], output: cache/text}\n  eod_token_id: 0\n");
  EXPECT_EQ(rule_of(text),
            "data.prepare config: run.yaml:32 train_data_path=D1: the text of sevenfold.prepare "
            "goes to output=cache/text, which nothing would read; use train_data_path=null to "
            "train on it, or sevenfold.prepare=null");
  EXPECT_THAT(rule_of(text, {"train_data_path=null", "data_path=P"}),
              StartsWith("data.prepare config: override data_path=P: "));
  EXPECT_EQ(rule_of(text, {"train_data_path=null"}), "");
  EXPECT_EQ(rule_of(text, {"sevenfold.prepare=null"}), "");
  for (const char* key : {"train_data_path", "valid_data_path"})
    EXPECT_EQ(rule_of(text, {key + std::string("=./cache//text")}), "") << "one of the parts";
}

TEST(FixUpRule, RefusesKeysThatMegatronDropped) {
  for (const char* word : {"batch_size=4", "warmup=3", "model_parallel_size=2",
                           "checkpoint_activations=true", "use_turbo_parallel_linear=true"})
    EXPECT_THAT(rule_of(small_llama(), {word}), StartsWith("legacy.key ")) << word;
  EXPECT_THAT(rule_of(small_llama(), {"moe_layer_freq=abc"}), StartsWith("moe.pattern "));
}

}  // namespace
}  // namespace sevenfold
