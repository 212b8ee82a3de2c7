#include "sevenfold/model/parameter_list.h"

#include "sevenfold/parallel/tensor/placement.h"

namespace sevenfold {

Parameter* ParameterList::add(std::string name, ParameterKind kind, ShardSpec spec) {
  spec.owners = owners_;
  parameters_.push_back(std::make_unique<Parameter>(std::move(name), kind, std::move(spec)));
  return parameters_.back().get();
}

Norm ParameterList::norm(const std::string& name, int64_t size, const ModelConfig& config,
                         NormPlace place) {
  const bool is_partial = place == NormPlace::kHeads || tensor_.splits_sequence();
  const ShardSpec spec = replicated_spec({size}, tensor_, is_partial);
  Norm norm{.epsilon = config.norm_epsilon};
  norm.gain = add(name + ".weight", ParameterKind::kGain, spec);
  if (config.norm == NormKind::kLayerNorm)
    norm.bias = add(name + ".bias", ParameterKind::kBias, spec);
  return norm;
}

LinearParameters ParameterList::column_parallel(const std::string& name, const LinearSize& size,
                                                int64_t copies) {
  LinearParameters linear;
  linear.weight = add(name + ".weight", ParameterKind::kMatrix,
                      column_parallel_spec({size.outputs, size.inputs}, tensor_, copies));
  if (size.has_bias)
    linear.bias = add(name + ".bias", ParameterKind::kBias,
                      column_parallel_spec({size.outputs}, tensor_, copies));
  return linear;
}

LinearParameters ParameterList::row_parallel(const std::string& name, const LinearSize& size) {
  LinearParameters linear;
  linear.weight = add(name + ".weight", ParameterKind::kOutputMatrix,
                      row_parallel_spec({size.outputs, size.inputs}, tensor_));
  if (size.has_bias)
    linear.bias = add(name + ".bias", ParameterKind::kBias,
                      replicated_spec({size.outputs}, tensor_, tensor_.splits_sequence()));
  return linear;
}

Parameter* ParameterList::vocabulary_table(std::string name, ParameterKind kind,
                                           std::vector<int64_t> shape) {
  return add(std::move(name), kind, vocabulary_parallel_spec(std::move(shape), tensor_));
}

Parameter* ParameterList::whole_table(std::string name, std::vector<int64_t> shape) {
  return add(std::move(name), ParameterKind::kTable,
             replicated_spec(std::move(shape), tensor_, tensor_.splits_sequence()));
}

}  // namespace sevenfold
