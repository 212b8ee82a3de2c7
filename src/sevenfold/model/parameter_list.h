#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sevenfold/config/config.h"
#include "sevenfold/model/norm.h"
#include "sevenfold/model/projection.h"
#include "sevenfold/param/parameter.h"

namespace sevenfold {

// The parameters of a model part in the order in which its layers declare them. Every rank holds
// them whole.
class ParameterList {
 public:
  Parameter* add(std::string name, ParameterKind kind, std::vector<int64_t> shape);
  // NAME.weight [size] and, for LayerNorm, NAME.bias [size].
  Norm norm(const std::string& name, int64_t size, const ModelConfig& config);
  // NAME.weight [outputs, inputs] and, if asked for, NAME.bias [outputs].
  Projection projection(const std::string& name, ParameterKind kind, int64_t outputs,
                        int64_t inputs, bool has_bias);

  std::vector<std::unique_ptr<Parameter>> take() { return std::move(parameters_); }

 private:
  std::vector<std::unique_ptr<Parameter>> parameters_;
};

}  // namespace sevenfold
