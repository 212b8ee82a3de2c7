#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sevenfold/config/config.h"
#include "sevenfold/model/norm.h"
#include "sevenfold/parallel/tensor/tensor_parallel.h"
#include "sevenfold/param/parameter.h"

namespace sevenfold {

// A linear layer's parameters.
struct LinearParameters {
  Parameter* weight = nullptr;  // [outputs, inputs]
  Parameter* bias = nullptr;    // [outputs]; null: none
};
struct LinearSize {
  int64_t outputs = 0;
  int64_t inputs = 0;
  bool has_bias = false;
};

// What a norm's parameters see on one tensor-parallel rank.
enum class NormPlace : uint8_t {
  kHiddenState,  // all tokens; with sequence parallelism its part of the sequence
  kHeads,        // its own heads
};

// The parameters of a model part in the order in which its layers declare them, each with its
// placement.
class ParameterList {
 public:
  explicit ParameterList(const TensorParallel& tensor) : tensor_(tensor) {}

  // Pipeline ranks that hold the parameters which follow (ShardSpec::owners).
  void set_owners(std::vector<int64_t> owners) { owners_ = std::move(owners); }

  Parameter* add(std::string name, ParameterKind kind, ShardSpec spec);
  // NAME.weight [size] and, for LayerNorm, NAME.bias [size].
  Norm norm(const std::string& name, int64_t size, const ModelConfig& config, NormPlace place);
  // NAME.weight and NAME.bias, cut by outputs. copies: see column_parallel_spec.
  LinearParameters column_parallel(const std::string& name, const LinearSize& size,
                                   int64_t copies = 1);
  // The same cut by inputs; the bias is whole on every rank.
  LinearParameters row_parallel(const std::string& name, const LinearSize& size);
  // [rows, columns]: rows cut over the ranks, or whole on each.
  Parameter* vocabulary_table(std::string name, ParameterKind kind, std::vector<int64_t> shape);
  Parameter* whole_table(std::string name, std::vector<int64_t> shape);

  // Those added since the last call.
  std::vector<std::unique_ptr<Parameter>> take() { return std::exchange(parameters_, {}); }

 private:
  TensorParallel tensor_;
  std::vector<int64_t> owners_ = {0};
  std::vector<std::unique_ptr<Parameter>> parameters_;
};

}  // namespace sevenfold
