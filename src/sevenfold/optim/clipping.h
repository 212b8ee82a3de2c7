#pragma once

#include <string>
#include <vector>

#include "sevenfold/dist/rank_context.h"
#include "sevenfold/optim/optimizer.h"
#include "sevenfold/param/parameter.h"

namespace sevenfold {

// Figures over the whole model, each logical element once (counts_in_norm), the same bits on all
// ranks of `group`: those that own different elements. "tp-pp" where every data-parallel rank owns
// all elements of its model part, "world" where each owns a shard (ZeRO).

// This rank's part of the square of the gradient's norm: over the elements that it owns and counts,
// before anything is summed over ranks.
double local_gradient_squares(const std::vector<Parameter*>& parameters,
                              const RankContext& context);

// Euclidean norm of the gradient, which is to be summed over dp and cp already. Squares are summed
// in fp64 per parameter, then over the parameters in the order given, then over the group in rank
// order. A NaN or an infinity in a gradient shows in the result.
double gradient_norm(const std::vector<Parameter*>& parameters, RankContext& context,
                     const std::string& group = "tp-pp");

// Euclidean norm of the weights that steps are taken on, and the number of zeros in the gradient.
// For the log lines that ask for them: a pass over memory each.
double weight_norm(const std::vector<Parameter*>& parameters, const Optimizer& optimizer,
                   RankContext& context, const std::string& group = "tp-pp");
int64_t zeros_in_gradient(const std::vector<Parameter*>& parameters, RankContext& context,
                          const std::string& group = "tp-pp");

// min(1, clip / (norm + 1e-6)), as Megatron; 1 when clip is 0 (off). A norm that is not a number
// gives a factor that is none either: a poisoned step must not look like a clipped one.
double clip_factor(double norm, double clip);

}  // namespace sevenfold
