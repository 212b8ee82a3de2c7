// Rules that hold even where nothing runs the feature yet: each refusal has its id, and a sentence
// with the place, the numbers and the way out.

#include <gmock/gmock.h>

#include "config/experiment_files.h"
#include "sevenfold/config/keys/key_rules.h"
#include "sevenfold/config/keys/key_tables.h"
#include "sevenfold/config/rules/choices.h"
#include "sevenfold/config/rules/pipeline/layout.h"

namespace sevenfold {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Words = std::vector<std::string>;

struct Refusal {
  Words words;  // the first one is at fault
  std::string rule;
  std::string says;
};

void expect_refusals(const std::vector<Refusal>& refusals) {
  for (const Refusal& refusal : refusals) {
    const std::string message = rule_of(small_llama(), refusal.words);
    const std::string key = refusal.words[0].substr(0, refusal.words[0].find('='));
    EXPECT_THAT(message, StartsWith(refusal.rule + " config: override " + key + "="));
    EXPECT_THAT(message, HasSubstr(refusal.says)) << message;
    EXPECT_THAT(message, AnyOf(HasSubstr("; use "), HasSubstr("; set "), HasSubstr("; keep "),
                               HasSubstr("; write ")))
        << "no way out";
  }
}

void expect_accepted(const std::vector<Words>& cases) {
  for (const Words& words : cases) EXPECT_EQ(rule_of(small_llama(), words), "") << words[0];
}

const std::string kPp2 = "pipeline_model_parallel_size=2";
const std::string kPp4 = "pipeline_model_parallel_size=4";
const std::string kLayers8 = "num_layers=8";

TEST(PipelineCut, RefusesWhatDoesNotDivide) {
  expect_refusals({
      {{"decoder_first_pipeline_num_layers=1", kPp4, kLayers8},
       "pipeline.uneven",
       "it leaves 7 layers for the 3 stages between"},
      {{"decoder_last_pipeline_num_layers=0", kPp2},
       "pipeline.uneven",
       "at least 1 of the num_layers=4"},
      {{"decoder_first_pipeline_num_layers=3", kPp2, kLayers8,
        "num_virtual_stages_per_pipeline_rank=2"},
       "pipeline.uneven",
       "use a multiple of 2"},
      {{"decoder_first_pipeline_num_layers=2", "account_for_loss_in_pipeline_split=true", kPp2},
       "pipeline.one_split",
       "account_for_loss_in_pipeline_split is set too"},
      {{"account_for_embedding_in_pipeline_split=true", kPp2},
       "pipeline.accounted",
       "num_layers=4 and 1 more do not go into 2 stages of 1 equal piece; use num_layers=5"},
      {{"decoder_pipeline_manual_split_list=[1, 2]", kPp2},
       "pipeline.list",
       "2 numbers of layers are needed, one for each stage, and their sum must be num_layers=4"},
      {{"decoder_pipeline_manual_split_list=[4]", kPp2}, "pipeline.list", "2 numbers"},
      {{"num_layers_per_virtual_pipeline_stage=3", kPp2, kLayers8},
       "pipeline.chunks_divide",
       "does not divide the 4 layers of a pipeline rank; use 1, 2 or 4"},
      {{"overlap_p2p_comm=false", kPp2, "num_virtual_stages_per_pipeline_rank=2"},
       "pipeline.overlap",
       "2 pieces per rank need more than 2 stages"},
      {{"enable_optimizer_post_validation=true"},
       "pipeline.post_validation",
       "pipeline_model_parallel_size is 1; use pipeline_model_parallel_size=2 or more"},
      {{"enable_optimizer_post_validation=true", kPp2, "log_params_norm=true"},
       "pipeline.post_validation",
       "use log_params_norm=false"},
      {{"enable_optimizer_post_validation=true", kPp2, "log_num_zeros_in_grad=true"},
       "pipeline.post_validation",
       "use log_num_zeros_in_grad=false"},
  });
  expect_accepted({
      {"decoder_first_pipeline_num_layers=2", kPp4, kLayers8},
      {"decoder_first_pipeline_num_layers=3", "decoder_last_pipeline_num_layers=1", kPp2},
      {"account_for_embedding_in_pipeline_split=true", "account_for_loss_in_pipeline_split=true",
       kPp2},
      {"decoder_pipeline_manual_split_list=[1, 3]", kPp2},
      {"overlap_p2p_comm=false", kPp4, kLayers8, "num_virtual_stages_per_pipeline_rank=2"},
      {"enable_optimizer_post_validation=true", kPp2},
      {"enable_optimizer_post_validation=false"},
  });
}

TEST(PipelineLayout, ReadsTheShortForm) {
  using config::read_pipeline_layout;
  using config::Value;
  const auto read = [](const char* text) {
    return read_pipeline_layout(Value::of(std::string(text)));
  };
  EXPECT_EQ(*read("Et*2|(t|)*2,L"), (std::vector<std::string>{"Ett", "t", "t", "L"}));
  EXPECT_EQ(read("Ettt|(tt|)*29,m|L")->size(), 32u);
  EXPECT_EQ(*read("E|t|L"), (std::vector<std::string>{"E", "t", "L"}));
  EXPECT_EQ(*read("Et||tL"), (std::vector<std::string>{"Et", "", "tL"})) << "stages may be empty";
  for (const char* text : {"", "Ex|L", "E(t|L", "Et*|L", "E((t)*2)*2L", "Et*999999999|L"})
    EXPECT_FALSE(read(text).has_value()) << text;
}

TEST(PipelineLayout, ReadsListsOfNames) {
  const Config config = load_text(
      small_llama("      pipeline_model_parallel_layout: [[embedding, decoder, decoder], [decoder, "
                  "decoder, loss]]\n"),
      {kPp2});
  EXPECT_EQ(config.mesh.pp, 2);
  EXPECT_THAT(
      rule_of(small_llama(), {"pipeline_model_parallel_layout=[[embedding], [head]]", kPp2}),
      StartsWith("pipeline.layout "));
}

TEST(PipelineLayout, ChecksLettersAndStages) {
  const std::string key = "pipeline_model_parallel_layout=";
  expect_refusals({
      {{key + "Ettt|tt,L", kPp2}, "pipeline.layout", "its 5 layers t are not num_layers=4"},
      {{key + "tt|Ett,L", kPp2}, "pipeline.layout", "begin with the one E"},
      {{key + "Ett|tt", kPp2}, "pipeline.layout", "end with the one L"},
      {{key + "Ett|t|t,L", kPp2},
       "pipeline.layout",
       "its 3 stages are not a multiple of pipeline_model_parallel_size=2"},
      {{key + "Ett|tt,m,L", kPp2}, "pipeline.layout", "its 1 layers m are not mtp_num_layers=0"},
      {{key + "Ett,m|tt,L", kPp2, "mtp_num_layers=1"},
       "pipeline.layout",
       "a layer t stands behind"},
      {{key + "Ett|tt,m|m|L", kPp2, "mtp_num_layers=2"},
       "pipeline.layout",
       "all layers m belong to one of the last 2 stages"},
      {{key + "Ett|xx,L", kPp2}, "pipeline.layout", "not stages of E, t, m and L"},
      {{key + "Ett|tt,L", kPp2, "num_virtual_stages_per_pipeline_rank=1"},
       "pipeline.one_split",
       "num_virtual_stages_per_pipeline_rank is set too"},
      {{key + "Ettt|t,L"}, "pipeline.chunks_need_stages", "is 1"},
  });
  expect_accepted({{key + "Ettt|t,L", kPp2}, {key + "Et|t|t|t,m,L", kPp2, "mtp_num_layers=1"}});
}

TEST(ScheduleRules, AskForTheirPieces) {
  const std::string on = "patch_primus_pipeline=true";
  const std::string two = "num_virtual_stages_per_pipeline_rank=2";
  expect_refusals({
      {{"pp_algorithm=v-half", on, kPp2}, "schedule.chunks", "needs 2 pieces"},
      {{"pp_algorithm=1f1b", on, kPp2, two}, "schedule.chunks", "needs 1 piece "},
      {{"pp_algorithm=1f1b-interleaved", on, kPp2}, "schedule.chunks", "needs 2 or more pieces"},
      {{"pp_algorithm=magic"}, "schedule.name", "use one of gpipe, 1f1b"},
      {{"pp_algorithm=v_hafl", on, kPp2, two}, "schedule.name", "use v-half; there are"},
      {{"offload=true"}, "schedule.offload", "v-half"},
      {{"pp_cost_f=[1, 2, 3]", kPp2}, "schedule.cost", "a list of 2="},
      {{"pp_cost_w=-1"}, "schedule.cost", "above 0"},
      {{"pp_max_mem=0"}, "schedule.cost", "above 0"},
      {{"zero_bubble_max_pending_backward=0"}, "schedule.pending", "or auto"},
      {{"microbatch_group_size_per_vp_stage=1", kPp2, two},
       "schedule.group",
       "at least pipeline_model_parallel_size=2, at most the 8 micro batches"},
      {{"microbatch_group_size_per_vp_stage=9", kPp2, two}, "schedule.group", "at most the 8"},
      {{"microbatch_group_size_per_vp_stage=7", kPp2, two}, "schedule.group", "at least 2 over"},
  });
  expect_accepted({{"pp_algorithm=v-half", on, kPp2, two},
                   {"pp_algorithm=zero-bubble", on, kPp2},
                   {"pp_algorithm=v-half", kPp2},
                   {"offload=true", "pp_algorithm=v-min", on, kPp2, two},
                   {"pp_cost_f=[1000, 2000.5]", kPp2},
                   {"microbatch_group_size_per_vp_stage=4", kPp2, two}});
}

TEST(ContextRules, AskForHeadsLayersAndLevels) {
  const std::string cp2 = "context_parallel_size=2";
  expect_refusals({
      {{"cp_comm_type=rdma"}, "context.transport", "use p2p, a2a"},
      {{"cp_comm_type=[p2p, a2a]"}, "context.transport", "2 choices for num_layers=4"},
      {{"cp_comm_type=a2a", "context_parallel_size=4"}, "context.heads", "num_query_groups=2"},
      {{"cp_comm_type=a2a+p2p", cp2}, "context.levels", "product is context_parallel_size=2"},
      {{"hierarchical_context_parallel_sizes=[2, 2]", cp2, "cp_comm_type=a2a+p2p"},
       "context.levels",
       "context_parallel_size=2"},
      {{"hierarchical_context_parallel_sizes=[4611686018427387905, 2]", cp2},
       "context.levels",
       "2"},
      {{"hierarchical_context_parallel_sizes=[1048576, 1048576, 1048576, 2]", cp2},
       "context.levels",
       "two numbers"},
      {{"hierarchical_context_parallel_sizes=[-2, -1]", cp2}, "context.levels", "two numbers"},
  });
  expect_accepted({{"cp_comm_type=a2a", cp2},
                   {"cp_comm_type=allgather", cp2},
                   {"cp_comm_type=[p2p]", cp2},
                   {"cp_comm_type=[p2p, a2a, p2p, a2a]", cp2},
                   {"hierarchical_context_parallel_sizes=[2, 1]", cp2, "cp_comm_type=a2a+p2p"}});
}

TEST(AttentionRules, ExcludeWhatDoesNotGoTogether) {
  expect_refusals({
      {{"group_query_attention=true", "multi_latent_attention=true"},
       "latent.exclusive",
       "use group_query_attention=false"},
      {{"rotary_interleaved=true", "multi_latent_attention=true", "group_query_attention=false"},
       "latent.exclusive",
       "use rotary_interleaved=false"},
      {{"mtp_num_layers=1", "position_embedding_type=learned_absolute"},
       "prediction.positions",
       "rope or none"},
  });
}

TEST(ExpertRules, CheckRoutingAndWidths) {
  const std::string e8 = "num_experts=8";
  expect_refusals({
      {{"add_bias_linear=true", e8, "tensor_model_parallel_size=2"},
       "moe.linear_bias",
       "expert_tensor_parallel_size=2"},
      {{"moe_layer_freq=0", e8}, "moe.layers", "at least 1"},
      {{"moe_layer_freq=([0]*1+[1]*2)", e8}, "moe.layers", "num_layers=4 layers (3 given)"},
      {{"moe_ffn_hidden_size=0", e8}, "moe.width", "at least 1"},
      {{"moe_shared_expert_intermediate_size=-1", e8}, "moe.width", "at least 1"},
      {{"moe_router_topk=9", e8}, "moe.topk", "at most num_experts=8; use 8"},
      {{"moe_router_topk=1", e8}, "moe.topk", "use moe_router_pre_softmax=true"},
      {{"moe_router_group_topk=1", e8}, "moe.groups", "set moe_router_num_groups"},
      {{"moe_router_num_groups=3", e8}, "moe.groups", "use 1, 2, 4 or 8"},
      {{"moe_router_group_topk=5", "moe_router_num_groups=4", e8},
       "moe.groups",
       "at most moe_router_num_groups=4; use 4"},
      {{"moe_router_enable_expert_bias=true", e8}, "moe.bias", "sigmoid"},
      {{"moe_router_load_balancing_type=[aux_loss, seq_aux_loss]", e8},
       "moe.balancing",
       "2 kinds need as many moe_aux_loss_coeff, and 0 are given"},
      {{"moe_pad_expert_input_to_capacity=true", e8}, "moe.capacity", "set moe_expert_capacity"},
      {{"moe_expert_capacity_factor=1.5", "moe_router_load_balancing_type=sinkhorn", e8},
       "moe.capacity",
       "use moe_expert_capacity_factor=null"},
      {{"moe_shared_expert_overlap=true", "moe_shared_expert_intermediate_size=8", e8},
       "moe.overlap",
       "not allgather"},
  });
  expect_accepted({{"moe_router_topk=1", "moe_router_pre_softmax=true", e8},
                   {"moe_router_topk=1", "moe_router_score_function=sigmoid", e8},
                   {"moe_router_topk=1", "moe_router_load_balancing_type=sinkhorn", e8},
                   {"moe_layer_freq=([0]*1+[1]*3)", e8},
                   {"moe_router_enable_expert_bias=true", "moe_router_score_function=sigmoid", e8},
                   {"moe_router_topk=0"}});
}

TEST(ExpertRules, AdviseSequenceParallelismWhereTensorAndExpertParallelismMeet) {
  const std::vector<std::string> layout = {"num_experts=8", "tensor_model_parallel_size=2",
                                           "expert_model_parallel_size=2", "sevenfold.ranks=4"};
  const auto notices_with = [&](const char* sequence) {
    std::vector<std::string> words = layout;
    words.push_back(sequence);
    return load_text(small_llama(), words).notices;
  };
  const auto advice =
      ::testing::Contains(::testing::Field(&Notice::text, HasSubstr("routes all tokens")));
  EXPECT_THAT(notices_with("sequence_parallel=false"), advice);
  EXPECT_THAT(notices_with("sequence_parallel=true"), Not(advice));
}

TEST(DataParallelRules, AskForWhatIsGatheredAndCut) {
  expect_refusals({
      {{"overlap_param_gather=true"}, "overlap.gather", "use overlap_grad_reduce=true"},
      {{"overlap_param_gather=true", "overlap_grad_reduce=true", "use_distributed_optimizer=false"},
       "overlap.gather",
       "there are no weights to gather"},
      {{"use_torch_fsdp2=true"}, "sharding.one", "use use_distributed_optimizer=false"},
      {{"use_torch_fsdp2=true", "use_distributed_optimizer=false",
        "data_parallel_sharding_strategy=optim"},
       "sharding.one",
       "use data_parallel_sharding_strategy=no_shard"},
      {{"num_distributed_optimizer_instances=3", "sevenfold.ranks=4"},
       "sharding.replicas",
       "data-parallel size 4 x context_parallel_size 1 = 4; use 1, 2 or 4"},
      {{"data_parallel_replicate_degree=2", "sevenfold.ranks=4"},
       "sharding.replicas",
       "use use_torch_fsdp2=true"},
      {{"num_distributed_optimizer_instances=2", "use_distributed_optimizer=false",
        "sevenfold.ranks=4"},
       "sharding.replicas",
       "use use_distributed_optimizer=true"},
      {{"num_distributed_optimizer_instances=2", "data_parallel_replicate_degree=4",
        "use_torch_fsdp2=true", "use_distributed_optimizer=false", "sevenfold.ranks=4"},
       "sharding.replicas",
       "use num_distributed_optimizer_instances=4"},
      {{"optimizer_cpu_offload=true"}, "optimizer.offload", "use_precision_aware_optimizer=true"},
      {{"optimizer=muon", "use_torch_fsdp2=true", "use_distributed_optimizer=false"},
       "sharding.optimizer",
       "use optimizer=adam or sgd, or use_torch_fsdp2=false"},
      {{"optimizer=muon", "use_megatron_fsdp=true"},
       "sharding.optimizer",
       "use_megatron_fsdp=true cuts them"},
  });
  expect_accepted({{"overlap_param_gather=true", "overlap_grad_reduce=true"},
                   {"overlap_param_gather=true", "overlap_grad_reduce=true",
                    "use_distributed_optimizer=false", "data_parallel_sharding_strategy=optim"},
                   {"overlap_param_gather=true", "overlap_grad_reduce=true",
                    "use_distributed_optimizer=false", "use_torch_fsdp2=true"},
                   {"use_torch_fsdp2=true", "use_distributed_optimizer=false"}});
}

TEST(RecomputationRules, AskForTheKeysOfTheirKind) {
  const std::string full = "recompute_granularity=full";
  expect_refusals({
      {{full}, "recompute.keys", "set it"},
      {{"recompute_num_layers=-1", full, "recompute_method=block"}, "recompute.keys", "0 for none"},
      {{"recompute_method=block", "recompute_granularity=selective"},
       "recompute.keys",
       "use recompute_method=null"},
      {{"recompute_num_layers=1", "recompute_activations=true"},
       "recompute.keys",
       "use recompute_num_layers=null"},
      {{"recompute_layer_ids=[4]", full}, "recompute.keys", "layers from 0 to 3"},
      {{"recompute_layer_ids=[]", full}, "recompute.keys", "at least one"},
      {{"recompute_layer_ids=0,x", full}, "recompute.keys", "layers from 0 to 3"},
      {{"recompute_layer_ids=[1]"}, "recompute.keys", "recompute_granularity=full"},
      {{"recompute_layer_ids=[1]", full, "recompute_method=block"},
       "recompute.keys",
       "use recompute_method=null"},
      {{"recompute_modules=[softmax]"}, "recompute.modules", "use core_attn"},
  });
  EXPECT_THAT(rule_of(small_llama(), {full, "recompute_method=block"}),
              StartsWith("recompute.keys "));
  expect_accepted({{full, "recompute_method=block", "recompute_num_layers=0"},
                   {full, "recompute_method=uniform", "recompute_num_layers=1"},
                   {full, "recompute_layer_ids=0, 3"},
                   {"recompute_activations=true"},
                   {"recompute_modules=[core_attn, mlp]"}});
}

TEST(RecomputationRules, GiveThePartsThatRunAgain) {
  const auto parts = [](const std::vector<std::string>& words) {
    const Config config = load_text(small_llama(), words);
    EXPECT_TRUE(config.unsupported.empty());
    EXPECT_EQ(config.recompute.layers, RecomputedLayers::kNone);
    return std::vector<bool>{config.recompute.core_attention, config.recompute.norms,
                             config.recompute.activation, config.recompute.feed_forward};
  };
  const std::string selective = "recompute_granularity=selective";
  const std::vector<bool> attention = {true, false, false, false};
  EXPECT_EQ(parts({selective}), attention);
  EXPECT_EQ(parts({"recompute_activations=true"}), attention);
  EXPECT_EQ(parts({selective, "recompute_modules=[layernorm, mlp]"}),
            (std::vector<bool>{false, true, false, true}));
  EXPECT_EQ(parts({selective, "recompute_modules=[moe_act]"}),
            (std::vector<bool>{false, false, true, false}));
  EXPECT_EQ(parts({"recompute_modules=[layernorm]"}), std::vector<bool>(4, false));
  EXPECT_THAT(load_text(small_llama(), {selective, "recompute_modules=[mla_up_proj]"}).notices,
              Contains(Field(&Notice::text, HasSubstr("mla_up_proj has no effect"))));
}

TEST(RecomputationRules, ShareOutInputsOnlyWhereRanksHoldTheSame) {
  const std::string shares = "distribute_saved_activations=true", tp = "sevenfold.ranks=2";
  const std::vector<std::string> full = {"recompute_granularity=full", "recompute_method=uniform",
                                         "recompute_num_layers=1", "tensor_model_parallel_size=2",
                                         tp};
  const auto with = [&](std::vector<std::string> words) {
    words.insert(words.begin(), shares);
    return words;
  };
  std::vector<std::string> sequence = full, whole = full;
  sequence.push_back("sequence_parallel=true");
  whole.push_back("sequence_parallel=false");
  expect_refusals({
      {with({}), "recompute.keys", "use recompute_granularity=full"},
      {with({"recompute_granularity=selective"}), "recompute.keys", "recompute_granularity=full"},
      {with({"recompute_granularity=full", "recompute_layer_ids=0"}), "recompute.keys",
       "recompute_method=uniform or block"},
      {with({full[0], full[1], full[2]}), "recompute.keys", "tensor_model_parallel_size is 1"},
      {with(sequence), "recompute.keys", "sequence_parallel=true shares the inputs out already"},
  });
  EXPECT_TRUE(load_text(small_llama(), with(whole)).recompute.shares_inputs);
  EXPECT_FALSE(load_text(small_llama(), whole).recompute.shares_inputs);
}

TEST(OptimizerStateRules, AskForTheKeysThatBelongTogether) {
  const std::string aware = "use_precision_aware_optimizer=true", adam = "optimizer=adam";
  expect_refusals({
      {{"exp_avg_dtype=bf16"}, "optimizer.state", "use_precision_aware_optimizer=true"},
      {{"exp_avg_sq_dtype=bf16"}, "optimizer.state", "or exp_avg_sq_dtype=fp32"},
      {{"main_grads_dtype=bf16"}, "optimizer.state", "use_precision_aware_optimizer=true"},
      {{"main_params_dtype=fp16"}, "optimizer.state", "use_precision_aware_optimizer=true"},
      {{aware}, "optimizer.state", "use optimizer=adam"},
      {{"exp_avg_dtype=int8", aware, adam}, "key.choice", "use fp32, bf16"},
  });
  const auto types = [&](const std::vector<std::string>& words) {
    const Config config = load_text(small_llama(), words);
    EXPECT_TRUE(config.unsupported.empty());
    return std::pair(config.optimizer.exp_avg_type, config.optimizer.exp_avg_sq_type);
  };
  EXPECT_EQ(types({aware, adam}), std::pair(MomentType::kFull, MomentType::kFull));
  EXPECT_EQ(types({aware, adam, "exp_avg_dtype=bf16"}),
            std::pair(MomentType::kBf16, MomentType::kFull));
  EXPECT_EQ(types({aware, adam, "exp_avg_sq_dtype=bf16"}),
            std::pair(MomentType::kFull, MomentType::kBf16));
  EXPECT_EQ(types({aware, adam, "exp_avg_dtype=fp16", "exp_avg_sq_dtype=fp16"}),
            std::pair(MomentType::kFp16, MomentType::kFp16));
  for (const char* word : {"exp_avg_dtype=fp8", "exp_avg_sq_dtype=fp8", "main_grads_dtype=bf16",
                           "main_params_dtype=fp16"}) {
    const Config config = load_text(small_llama(), {aware, adam, word});
    ASSERT_EQ(config.unsupported.size(), 1U) << word;
    EXPECT_THAT(config.unsupported[0].text, HasSubstr(word));
  }
}

TEST(OptimizerStateRules, RoundGradientsForTheirSumsInBf16RunsOnly) {
  const auto load = [](const char* precision) {
    return load_text(small_llama(),
                     {"grad_reduce_in_bf16=true", std::string("sevenfold.precision=") + precision});
  };
  EXPECT_TRUE(load("bf16").parallel.reduces_in_bf16);
  const Config fp32 = load("fp32");
  EXPECT_FALSE(fp32.parallel.reduces_in_bf16);
  EXPECT_THAT(fp32.notices,
              Contains(Field(&Notice::text, HasSubstr("grad_reduce_in_bf16=true: has no effect"))));
  EXPECT_FALSE(load_text(small_llama(), {}).parallel.reduces_in_bf16);
}

TEST(RecomputationRules, GiveTheLayersThatRunAgain) {
  const std::string full = "recompute_granularity=full";
  const auto recompute = [](const std::vector<std::string>& words) {
    return load_text(small_llama(), words).recompute;
  };
  EXPECT_EQ(recompute({}).layers, RecomputedLayers::kNone);
  const RecomputeConfig uniform =
      recompute({full, "recompute_method=uniform", "recompute_num_layers=3"});
  EXPECT_EQ(uniform.layers, RecomputedLayers::kUniform);
  EXPECT_EQ(uniform.num_layers, 3);
  const RecomputeConfig block =
      recompute({full, "recompute_method=block", "recompute_num_layers=1"});
  EXPECT_EQ(block.layers, RecomputedLayers::kBlock);
  EXPECT_EQ(block.num_layers, 1);
  EXPECT_EQ(recompute({full, "recompute_method=block", "recompute_num_layers=0"}).layers,
            RecomputedLayers::kNone);
  for (const char* ids : {"recompute_layer_ids=[3, 0, 3]", "recompute_layer_ids=3, 0"}) {
    const RecomputeConfig named = recompute({full, ids});
    EXPECT_EQ(named.layers, RecomputedLayers::kNamed) << ids;
    EXPECT_EQ(named.layer_ids, (std::vector<int64_t>{0, 3})) << ids;
  }
  EXPECT_TRUE(load_text(small_llama(), {full, "recompute_layer_ids=0"}).unsupported.empty());
}

TEST(LowPrecisionRules, ExcludeEachOther) {
  expect_refusals({
      {{"fp4=e2m1", "fp8=e4m3"}, "precision.low", "use fp4=null"},
      {{"fp32_residual_connection=true"}, "precision.residual", "use bf16=true"},
  });
}

TEST(Choices, RefuseEveryOtherWord) {
  for (const config::Choice& choice : config::choices(config::Framework::kMegatron)) {
    const std::string key(choice.key);
    EXPECT_NE(config::find_key(key), nullptr) << key;
    EXPECT_THAT(rule_of(small_llama(), {key + "=zzz"}),
                StartsWith("key.choice config: override " + key +
                           "=zzz: `zzz` is not among the "
                           "choices; use "))
        << key;
  }
  EXPECT_TRUE(config::is_choice("a, bc or d", "bc"));
  EXPECT_FALSE(config::is_choice("a, bc or d", "b"));
  EXPECT_FALSE(config::is_choice("a, bc or d", "c"));
  EXPECT_FALSE(config::is_choice("a, bc or d", "or"));
  EXPECT_FALSE(config::is_choice("a, bc or d", "a, bc"));
  EXPECT_FALSE(config::is_choice("a, bc or d", "bc or d"));
}

TEST(KeyRules, AreOfKeysThatExist) {
  for (const config::KeyRule& rule : config::key_rules())
    EXPECT_NE(config::find_key(rule.key), nullptr) << rule.key;
  for (const config::KeyRule& rule : config::key_rules(config::Framework::kTorchTitan))
    EXPECT_NE(config::find_key(rule.key, config::Framework::kTorchTitan), nullptr) << rule.key;
  EXPECT_EQ(config::rule_of_key("fp8"), "e4m3 or hybrid");
  EXPECT_EQ(config::rule_of_key("num_layers"), "");
}

}  // namespace
}  // namespace sevenfold
