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
  // Of the heads that this rank has, where the operation has heads.
  void set_first_head(int64_t head) { dropout_.site.head = head; }
  // x [B, T, columns], a hidden state (with sequence parallelism this rank's part of the sequence),
  // or x itself where dropout does not act.
  at::Tensor operator()(const at::Tensor& x, const Microbatch& microbatch) const;

  const Dropout& dropout() const { return dropout_; }
  // What each row of the micro batch is counted by.
  std::vector<int64_t> sample_ids(const Microbatch& microbatch) const;

 private:
  TensorParallel tensor_;
  Dropout dropout_;
};

}  // namespace sevenfold
