// Degrees, world size and batch arithmetic: every refusal is one line with the user's own numbers
// and the way out.

#include <gmock/gmock.h>

#include "config/experiment_files.h"

namespace sevenfold {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using Words = std::vector<std::string>;

TEST(BatchRule, NamesTheNumbersAndTheNearestLegalValues) {
  EXPECT_EQ(
      rule_of(small_llama(), {"sevenfold.ranks=2", "global_batch_size=6", "micro_batch_size=2"}),
      "batch.divisible config: override global_batch_size=6: 6 is not micro_batch_size 2 x "
      "data-parallel size 2 x a "
      "whole number of micro batches; use global_batch_size=4 or 8");
  EXPECT_THAT(rule_of(small_llama(), {"sevenfold.ranks=4", "global_batch_size=2"}),
              HasSubstr("2 is not micro_batch_size 1 x data-parallel size 4 x a whole number of "
                        "micro batches; use "
                        "global_batch_size=4"));
  EXPECT_THAT(rule_of(small_llama(), {"micro_batch_size=3"}),
              HasSubstr("run.yaml:22 global_batch_size=8: 8 is not micro_batch_size 3 x "
                        "data-parallel size 1 x a whole "
                        "number of micro batches; use global_batch_size=6 or 9"));
}

TEST(BatchRule, RefusesBatchesWithoutSamples) {
  for (const char* word : {"micro_batch_size=0", "micro_batch_size=-1"})
    EXPECT_THAT(rule_of(small_llama(), {word}),
                StartsWith("batch.micro_positive config: override " + std::string(word)));
  for (const char* word : {"global_batch_size=0", "global_batch_size=-8"})
    EXPECT_THAT(rule_of(small_llama(), {word}),
                StartsWith("batch.global_positive config: override " + std::string(word)));
}

TEST(WorldRule, NamesTheProductTheWorldAndTheNearestSizes) {
  EXPECT_EQ(
      rule_of(small_llama("      tensor_model_parallel_size: 3\n", "sevenfold: {ranks: 8}\n")),
      "world.divisible config: run.yaml:33 tensor_model_parallel_size=3: 8 ranks (run.yaml:34 "
      "sevenfold.ranks=8) are "
      "not a multiple of tensor_model_parallel_size 3 x pipeline_model_parallel_size 1 x "
      "context_parallel_size 1 = 3; "
      "use 6 or 9 ranks, or other degrees");
  EXPECT_THAT(rule_of(small_llama(), {"sevenfold.ranks=8", "tensor_model_parallel_size=2",
                                      "pipeline_model_parallel_size=2", "context_parallel_size=4"}),
              HasSubstr("tensor_model_parallel_size 2 x pipeline_model_parallel_size 2 x "
                        "context_parallel_size 4 = 16; use "
                        "16 ranks"));
}

TEST(WorldRule, ChecksTheExpertView) {
  EXPECT_EQ(rule_of(small_llama(),
                    {"sevenfold.ranks=8", "num_experts=4", "expert_model_parallel_size=3"}),
            "experts.divisible config: override expert_model_parallel_size=3 does not divide "
            "num_experts=4; use 1, 2 or 4");
  EXPECT_THAT(
      rule_of(small_llama(), {"sevenfold.ranks=8", "num_experts=8", "expert_model_parallel_size=8",
                              "tensor_model_parallel_size=2", "expert_tensor_parallel_size=2"}),
      HasSubstr(
          "8 ranks (override sevenfold.ranks=8) are not a multiple of expert_tensor_parallel_size "
          "2 x "
          "expert_model_parallel_size 8 x pipeline_model_parallel_size 1 = 16; use 16 ranks"));
  EXPECT_THAT(rule_of(small_llama(),
                      {"sevenfold.ranks=6", "num_experts=8", "expert_model_parallel_size=4"}),
              StartsWith("world.experts config: override expert_model_parallel_size=4: 6 ranks"));
  EXPECT_THAT(rule_of(small_llama(), {"expert_model_parallel_size=2"}),
              StartsWith("experts.needed config: override expert_model_parallel_size=2: the model "
                         "has no experts to cut"));
}

TEST(WorldRule, RefusesImpossibleNumbers) {
  EXPECT_THAT(rule_of(small_llama(), {"sevenfold.ranks=0"}),
              StartsWith("world.positive config: override sevenfold.ranks=0"));
  EXPECT_THAT(rule_of(small_llama(), {"tensor_model_parallel_size=0"}),
              StartsWith("degree.positive "));
  EXPECT_THAT(rule_of(small_llama(), {"pipeline_model_parallel_size=-1"}),
              StartsWith("degree.positive "));
  EXPECT_THAT(rule_of(small_llama(), {"tensor_model_parallel_size=1000000000000"}),
              StartsWith("degree.positive "));
}

TEST(WorldRule, NeedsEqualDataParallelismForTheOtherRankOrder) {
  EXPECT_THAT(rule_of(small_llama(), {"use_tp_pp_dp_mapping=true", "pipeline_model_parallel_size=2",
                                      "num_experts=4", "expert_model_parallel_size=2"}),
              StartsWith("world.mapping config: override use_tp_pp_dp_mapping=true"));
}

TEST(PipelineRule, NeedsStagesForPieces) {
  EXPECT_EQ(rule_of(small_llama(), {"num_virtual_stages_per_pipeline_rank=2"}),
            "pipeline.chunks_need_stages config: override num_virtual_stages_per_pipeline_rank=2: "
            "pieces per pipeline rank "
            "need more than one stage, and pipeline_model_parallel_size is 1; set "
            "pipeline_model_parallel_size=2 or more, "
            "or num_virtual_stages_per_pipeline_rank=null");
  EXPECT_EQ(rule_of(small_llama(), {"num_virtual_stages_per_pipeline_rank=1"}), "");
  EXPECT_EQ(rule_of(small_llama(), {"num_virtual_stages_per_pipeline_rank=null"}), "");
}

TEST(PipelineRule, CutsLayersEvenly) {
  EXPECT_THAT(rule_of(small_llama(), {"pipeline_model_parallel_size=3"}),
              StartsWith("layers.divisible config: override pipeline_model_parallel_size=3 does "
                         "not divide num_layers=4; use "
                         "1, 2 or 4"));
  EXPECT_EQ(rule_of(small_llama(),
                    {"pipeline_model_parallel_size=3", "decoder_first_pipeline_num_layers=2"}),
            "");
  EXPECT_THAT(rule_of(small_llama(),
                      {"pipeline_model_parallel_size=2", "num_virtual_stages_per_pipeline_rank=3"}),
              StartsWith("pipeline.chunks_divide "));
  EXPECT_THAT(rule_of(small_llama(),
                      {"pipeline_model_parallel_size=2", "num_virtual_stages_per_pipeline_rank=2",
                       "num_layers_per_virtual_pipeline_stage=1"}),
              StartsWith("pipeline.one_split "));
}

TEST(HeadRule, CutsHeadsAndGroups) {
  EXPECT_EQ(rule_of(small_llama(), {"tensor_model_parallel_size=3"}),
            "heads.divisible config: override tensor_model_parallel_size=3 does not divide "
            "num_attention_heads=4; use 1, 2 "
            "or 4");
  EXPECT_EQ(rule_of(small_llama(), {"tensor_model_parallel_size=4"}), "")
      << "a group may be held by two ranks";
  EXPECT_THAT(rule_of(small_llama(), {"num_attention_heads=8", "num_query_groups=3"}),
              StartsWith("groups.heads "));
  EXPECT_THAT(rule_of(small_llama(), {"hidden_size=72", "num_attention_heads=36",
                                      "num_query_groups=6", "tensor_model_parallel_size=4"}),
              StartsWith("groups.divisible config: override tensor_model_parallel_size=4 is "
                         "neither a divisor nor a "
                         "multiple of num_query_groups=6"));
  EXPECT_THAT(rule_of(small_llama(), {"hidden_size=33"}), StartsWith("heads.hidden "));
}

TEST(TensorRules, CutTheFeedForwardTheVocabularyAndTheSequence) {
  EXPECT_EQ(rule_of(small_llama(), {"tensor_model_parallel_size=4", "ffn_hidden_size=66"}),
            "ffn.divisible config: override tensor_model_parallel_size=4 does not divide "
            "ffn_hidden_size=66; use ffn_hidden_size=64 or 68, or another degree");
  EXPECT_EQ(rule_of(small_llama(), {"tensor_model_parallel_size=4", "vocab_size=3"}),
            "vocabulary.ranks config: override tensor_model_parallel_size=4 is more than "
            "vocab_size=3: some ranks would hold no row of the embedding; use at most 3");
  EXPECT_EQ(rule_of(small_llama(), {"tensor_model_parallel_size=4", "vocab_size=101"}), "")
      << "parts of a vocabulary may differ by a row";
  EXPECT_EQ(rule_of(small_llama(),
                    {"tensor_model_parallel_size=4", "seq_length=30", "sequence_parallel=true"}),
            "sequence.tensor config: override seq_length=30 is not a multiple of "
            "tensor_model_parallel_size 4 x context_parallel_size 1 = 4, the parts that "
            "sequence_parallel=true makes of it; use seq_length=28 or 32, or "
            "sequence_parallel=false");
  EXPECT_EQ(rule_of(small_llama(),
                    {"tensor_model_parallel_size=4", "seq_length=30", "sequence_parallel=false"}),
            "");
}

TEST(TensorRules, FillTheConfiguration) {
  const Config cut = load_text(small_llama(), {"tensor_model_parallel_size=4",
                                               "sequence_parallel=true", "num_query_groups=2"});
  EXPECT_EQ(cut.mesh.tp_copies, 2) << "four ranks, two KV heads";
  EXPECT_TRUE(cut.parallel.sequence);
  EXPECT_TRUE(cut.parallel.tensor_overlap);
  EXPECT_FALSE(load_text(small_llama(), {"async_tensor_model_parallel_allreduce=false"})
                   .parallel.tensor_overlap);
  EXPECT_FALSE(load_text(small_llama(), {"sequence_parallel=true"}).parallel.sequence)
      << "there is nothing to cut over one rank";
}

TEST(TensorRules, SayWhenAGroupLeavesItsNode) {
  const std::vector<std::string> wide = {"num_attention_heads=16", "num_query_groups=16",
                                         "hidden_size=64", "tensor_model_parallel_size=16"};
  const auto says_so = [](const Config& config) {
    return std::any_of(config.notices.begin(), config.notices.end(), [](const Notice& notice) {
      return notice.text.find("tensor-parallel groups span nodes of 8 ranks") != std::string::npos;
    });
  };
  EXPECT_TRUE(says_so(load_text(small_llama(), wide)));
  EXPECT_FALSE(says_so(load_text(small_llama(), {"tensor_model_parallel_size=4"})));
}

}  // namespace
}  // namespace sevenfold
