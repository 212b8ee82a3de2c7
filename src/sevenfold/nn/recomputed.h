#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace sevenfold {

// An operation of one tensor. What it refers to outlives the graph.
using Operation = std::function<at::Tensor(const at::Tensor&)>;

// operation(x), of which only x is kept: backward runs it again and then its graph. The operation
// must compute the same each time. Weight gradients inside go where they always go.
at::Tensor recomputed(const at::Tensor& x, const Operation& operation);

}  // namespace sevenfold
