#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "sevenfold/param/parameter.h"

namespace sevenfold::testing {

// A parameter in fp64 with random weights and zero gradient.
inline std::unique_ptr<Parameter> random_parameter(const std::string& name,
                                                   std::vector<int64_t> shape, double scale = 1.0) {
  auto parameter =
      std::make_unique<Parameter>(name, ParameterKind::kMatrix, replicated_spec(shape));
  const at::TensorOptions fp64 = at::TensorOptions().dtype(at::kDouble);
  parameter->bind(at::randn(shape, fp64).mul_(scale), at::zeros(shape, fp64));
  return parameter;
}

// Compares the gradient of sum(weights * f()) with central differences, element by element, for
// every tensor of `variables` (fp64 leaves that f reads) and every parameter. weights: fixed,
// random, so that no element's gradient vanishes. A difference of `step` leaves an error of step^2
// and the rounding of the two sums, divided by the step: it is allowed for, and all that is seen of
// a gradient that is zero by mathematics.
inline void expect_gradients_match(const std::function<at::Tensor()>& f,
                                   std::vector<at::Tensor> variables,
                                   const std::vector<Parameter*>& parameters,
                                   double tolerance = 1e-7) {
  constexpr double kStep = 1e-5;
  for (at::Tensor& variable : variables) variable.set_requires_grad(true);
  const at::Tensor output = f();
  const at::Tensor weights = at::randn(output.sizes(), output.options());
  torch::autograd::backward({(output * weights).sum()}, {});
  const double rounding = std::numeric_limits<double>::epsilon() *
                          (output * weights).abs().sum().item<double>() / kStep;

  struct Checked {
    std::string name;
    at::Tensor values;
    at::Tensor gradient;
  };
  std::vector<Checked> all;
  for (size_t i = 0; i < variables.size(); ++i)
    all.push_back(
        {"variable " + std::to_string(i), variables[i].detach(), variables[i].grad().clone()});
  for (Parameter* parameter : parameters)
    all.push_back({parameter->name(), parameter->weight(), parameter->gradient().clone()});

  const at::NoGradGuard no_graph;
  for (const Checked& checked : all) {
    ASSERT_TRUE(checked.values.is_contiguous());
    auto* values = checked.values.data_ptr<double>();
    const at::Tensor gradient = checked.gradient.contiguous();
    const double largest = std::max(1e-3, gradient.abs().max().item<double>());
    for (int64_t i = 0; i < checked.values.numel(); ++i) {
      const double value = values[i];
      values[i] = value + kStep;
      const double above = (f() * weights).sum().item<double>();
      values[i] = value - kStep;
      const double below = (f() * weights).sum().item<double>();
      values[i] = value;
      ASSERT_NEAR(gradient.data_ptr<double>()[i], (above - below) / (2 * kStep),
                  tolerance * largest + rounding)
          << checked.name << " element " << i;
    }
  }
}

}  // namespace sevenfold::testing
