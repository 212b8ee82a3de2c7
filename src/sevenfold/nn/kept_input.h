#pragma once

#include "sevenfold/nn/autograd.h"
#include "sevenfold/nn/weight_gradients.h"

namespace sevenfold::internal {

// Has the node of a linear layer keep its input x, or what gives it again.
inline void keep_input(AutogradContext* context, const at::Tensor& x,
                       const WeightGradients::InputSource& again) {
  if (again)
    save_callable(context, "again", again);
  else
    context->save_for_backward({x});
}

// The input that keep_input kept. Where the weight gradients are put off it is computed again now:
// what it comes from may be larger, and the weights that it reads may be gone by then.
inline WeightGradients::InputSource kept_input(AutogradContext* context,
                                               const WeightGradients& gradients) {
  const bool is_kept = context->saved_data.count("again") == 0;
  if (!is_kept && !gradients.is_deferring())
    return saved_callable<WeightGradients::InputSource>(context, "again");
  const at::Tensor x = is_kept ? context->get_saved_variables()[0].detach()
                               : saved_callable<WeightGradients::InputSource>(context, "again")();
  return [x] { return x; };
}

}  // namespace sevenfold::internal
