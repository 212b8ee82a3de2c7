#include "sevenfold/model/self_attention.h"

#include <ATen/ATen.h>

#include <cmath>

namespace sevenfold {

SelfAttention::SelfAttention(const ModelConfig& config, const ModelOptions& options, int64_t layer,
                             const std::string& name, ParameterList& parameters,
                             std::shared_ptr<const RotaryTable> rotary)
    : head_size_(config.kv_channels),
      keeps_(options.recompute.core_attention ? AttentionKeeps::kNothing : AttentionKeeps::kResult),
      qkv_(options.tensor),
      rotary_(std::move(rotary)),
      dropout_(config.attention_dropout, RandomOperation::kAttentionDropout, layer, options) {
  const int64_t d = config.hidden_size, heads = config.num_attention_heads;
  const int64_t groups = config.num_query_groups, ranks = options.tensor.size();
  const int64_t copies = key_value_copies(config, ranks);
  const bool has_bias = config.linear_bias || config.qkv_bias;
  const LinearSize kv{groups * head_size_, d, has_bias};
  qkv_.add(parameters.column_parallel(name + "q_proj", {heads * head_size_, d, has_bias}));
  qkv_.add(parameters.column_parallel(name + "k_proj", kv, copies));
  qkv_.add(parameters.column_parallel(name + "v_proj", kv, copies));
  if (config.qk_norm) {
    q_norm_ = parameters.norm(name + "q_norm", head_size_, config, NormPlace::kHeads);
    k_norm_ = parameters.norm(name + "k_norm", head_size_, config, NormPlace::kHeads);
  }
  o_ = {options.tensor,
        parameters.row_parallel(name + "o_proj", {d, heads * head_size_, config.linear_bias})};
  dropout_.set_first_head(options.tensor.rank() * (heads / ranks));
}

at::Tensor SelfAttention::operator()(const at::Tensor& x_BTD, const LayerInput& input,
                                     const WeightGradients::InputSource& again) const {
  WeightGradients& gradients = *input.weight_gradients;
  const Microbatch& microbatch = *input.microbatch;
  const int64_t num_samples = x_BTD.size(0);
  const std::vector<at::Tensor> qkv = qkv_(x_BTD, gradients, again);
  const at::Tensor q = place(split_heads(qkv[0], num_samples), q_norm_, microbatch);
  const at::Tensor k = place(split_heads(qkv[1], num_samples), k_norm_, microbatch);
  const at::Tensor v = split_heads(qkv[2], num_samples);
  const at::Tensor mixed = mix(q, k, v, microbatch);
  return o_(mixed.view({mixed.size(0) * mixed.size(1), -1}), num_samples, gradients);
}

at::Tensor SelfAttention::split_heads(const at::Tensor& x, int64_t num_samples) const {
  return x.view({num_samples, x.size(0) / num_samples, -1, head_size_});
}

at::Tensor SelfAttention::place(const at::Tensor& x, const Norm& norm,
                                const Microbatch& microbatch) const {
  const at::Tensor normed = norm.gain ? norm(x) : x;
  return rotary_ ? rotate(normed, *rotary_, microbatch.positions_BT) : normed;
}

at::Tensor SelfAttention::mix(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const Microbatch& microbatch) const {
  AttentionMasks masks{.first_key_BT = microbatch.first_key_BT};
  if (dropout_.acts(microbatch)) {
    masks.dropout = &dropout_.dropout();
    masks.sample_ids = dropout_.sample_ids(microbatch);
  }
  return causal_attention(q, k, v, 1.0 / std::sqrt(static_cast<double>(head_size_)), masks, keeps_);
}

void SelfAttention::list_parameters(std::vector<Parameter*>& list) const {
  qkv_.list_parameters(list);
  for (const Norm* norm : {&q_norm_, &k_norm_})
    if (norm->gain) norm->list_parameters(list);
  o_.list_parameters(list);
}

}  // namespace sevenfold
