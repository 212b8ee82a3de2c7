#include "sevenfold/schedule/ir.h"

namespace sevenfold {
namespace {

bool adds_weight_gradients(Op op) {
  return op == Op::kBackward || op == Op::kBackwardWeight;
}

}  // namespace

bool completes_gradients(const std::vector<Row>& rows, size_t position) {
  if (!adds_weight_gradients(rows[position].op)) return false;
  for (size_t later = position + 1; later < rows.size(); ++later)
    if (rows[later].chunk == rows[position].chunk && adds_weight_gradients(rows[later].op))
      return false;
  return true;
}

}  // namespace sevenfold
