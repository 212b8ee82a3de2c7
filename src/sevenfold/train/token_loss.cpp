#include "sevenfold/train/token_loss.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace sevenfold {
namespace {

double sum_over(Communicator& group, double value) {
  const at::Tensor total = at::full({1}, value, at::TensorOptions().dtype(at::kDouble));
  group.all_reduce(total).wait();
  return total.item<double>();
}

}  // namespace

TokenLoss TokenLoss::over(Communicator& parts, Communicator& samples) const {
  return {sum_over(parts, sum), sum_over(samples, tokens)};
}

double TokenLoss::mean() const {
  return sum / std::max(1.0, tokens);
}

}  // namespace sevenfold
