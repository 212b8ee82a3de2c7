#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "sevenfold/model/model_options.h"
#include "sevenfold/nn/dropout.h"
#include "sevenfold/nn/layer.h"

namespace sevenfold {

// Dropout of one operation of a layer, as a model's options and a micro batch say.
class LayerDropout {
 public:
  LayerDropout(double rate, RandomOperation operation, int64_t layer, const ModelOptions& options);

  // False in evaluation and at rate 0.
  bool acts(const Microbatch& microbatch) const;
  // x [B, T, columns], or x itself where dropout does not act.
  at::Tensor operator()(const at::Tensor& x, const Microbatch& microbatch) const;

  const Dropout& dropout() const { return dropout_; }
  // What each row of the micro batch is counted by.
  std::vector<int64_t> sample_ids(const Microbatch& microbatch) const;

 private:
  Dropout dropout_;
};

}  // namespace sevenfold
