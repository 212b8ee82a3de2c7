#include "sevenfold/model/parameter_list.h"

namespace sevenfold {

Parameter* ParameterList::add(std::string name, ParameterKind kind, std::vector<int64_t> shape) {
  parameters_.push_back(
      std::make_unique<Parameter>(std::move(name), kind, replicated_spec(std::move(shape))));
  return parameters_.back().get();
}

Norm ParameterList::norm(const std::string& name, int64_t size, const ModelConfig& config) {
  Norm norm{.epsilon = config.norm_epsilon};
  norm.gain = add(name + ".weight", ParameterKind::kGain, {size});
  if (config.norm == NormKind::kLayerNorm)
    norm.bias = add(name + ".bias", ParameterKind::kBias, {size});
  return norm;
}

Projection ParameterList::projection(const std::string& name, ParameterKind kind, int64_t outputs,
                                     int64_t inputs, bool has_bias) {
  Projection projection;
  projection.weight = add(name + ".weight", kind, {outputs, inputs});
  if (has_bias) projection.bias = add(name + ".bias", ParameterKind::kBias, {outputs});
  return projection;
}

}  // namespace sevenfold
