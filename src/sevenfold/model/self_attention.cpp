#include "sevenfold/model/self_attention.h"

#include <ATen/ATen.h>

#include <cmath>

#include "sevenfold/nn/attention.h"

namespace sevenfold {

SelfAttention::SelfAttention(const ModelConfig& config, const ModelOptions& options, int64_t layer,
                             const std::string& name, ParameterList& parameters,
                             std::shared_ptr<const RotaryTable> rotary)
    : head_size_(config.kv_channels),
      rotary_(std::move(rotary)),
      dropout_(config.attention_dropout, RandomOperation::kAttentionDropout, layer, options) {
  const int64_t d = config.hidden_size;
  const int64_t q_rows = config.num_attention_heads * head_size_;
  const int64_t kv_rows = config.num_query_groups * head_size_;
  const bool qkv_bias = config.linear_bias || config.qkv_bias;
  const auto kMatrix = ParameterKind::kMatrix;
  q_ = parameters.projection(name + "q_proj", kMatrix, q_rows, d, qkv_bias);
  k_ = parameters.projection(name + "k_proj", kMatrix, kv_rows, d, qkv_bias);
  v_ = parameters.projection(name + "v_proj", kMatrix, kv_rows, d, qkv_bias);
  if (config.qk_norm) {
    q_norm_ = parameters.norm(name + "q_norm", head_size_, config);
    k_norm_ = parameters.norm(name + "k_norm", head_size_, config);
  }
  o_ = parameters.projection(name + "o_proj", ParameterKind::kOutputMatrix, d, q_rows,
                             config.linear_bias);
}

at::Tensor SelfAttention::operator()(const at::Tensor& x_BTD, const LayerInput& input) const {
  WeightGradients& gradients = *input.weight_gradients;
  const Microbatch& microbatch = *input.microbatch;
  const at::Tensor q = place(split_heads(x_BTD, q_, gradients), q_norm_, microbatch);
  const at::Tensor k = place(split_heads(x_BTD, k_, gradients), k_norm_, microbatch);
  const at::Tensor v = split_heads(x_BTD, v_, gradients);
  const at::Tensor mixed = mix(q, k, v, microbatch);
  const int64_t tokens = mixed.size(0) * mixed.size(1);
  return o_(mixed.view({tokens, -1}), gradients).view_as(x_BTD);
}

at::Tensor SelfAttention::split_heads(const at::Tensor& x_BTD, const Projection& projection,
                                      WeightGradients& gradients) const {
  const at::Tensor x_ND = x_BTD.view({-1, x_BTD.size(2)});
  return projection(x_ND, gradients).view({x_BTD.size(0), x_BTD.size(1), -1, head_size_});
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
  return causal_attention(q, k, v, 1.0 / std::sqrt(static_cast<double>(head_size_)), masks);
}

void SelfAttention::list_parameters(std::vector<Parameter*>& list) const {
  for (const Projection* projection : {&q_, &k_, &v_}) projection->list_parameters(list);
  for (const Norm* norm : {&q_norm_, &k_norm_})
    if (norm->gain) norm->list_parameters(list);
  o_.list_parameters(list);
}

}  // namespace sevenfold
