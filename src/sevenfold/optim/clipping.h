#pragma once

#include <vector>

#include "sevenfold/dist/rank_context.h"
#include "sevenfold/optim/optimizer.h"
#include "sevenfold/param/parameter.h"

namespace sevenfold {

// Euclidean norm of the gradient of the whole model, the same bits on all ranks of a "tp-pp" group.
// The gradients must be summed over dp and cp already. Squares are summed in fp64 per parameter,
// then over the parameters in the order given, then over the group in rank order; each logical
// element counts once (counts_in_norm). A NaN or an infinity in a gradient shows in the result.
double gradient_norm(const std::vector<Parameter*>& parameters, RankContext& context);

// Euclidean norm of the weights that steps are taken on, and the number of zeros in the gradient:
// of the whole model, each logical element once, the same on all ranks of a "tp-pp" group. For the
// log lines that ask for them: a pass over memory each.
double weight_norm(const std::vector<Parameter*>& parameters, const Optimizer& optimizer,
                   RankContext& context);
int64_t zeros_in_gradient(const std::vector<Parameter*>& parameters, RankContext& context);

// min(1, clip / (norm + 1e-6)), as Megatron; 1 when clip is 0 (off). A norm that is not a number
// gives a factor that is none either: a poisoned step must not look like a clipped one.
double clip_factor(double norm, double clip);

}  // namespace sevenfold
