#pragma once

#include "sevenfold/config/config.h"

namespace sevenfold::bench {

// Seconds that the fp32 products of one training step take by themselves: those of
// step_product_flops, each at its own shape, in the order of the step and on operands of its own,
// with nothing between them. What a step could reach at best with these products.
double seconds_of_products(const Config& config);

}  // namespace sevenfold::bench
