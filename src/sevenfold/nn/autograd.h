#pragma once

#include <torch/csrc/autograd/custom_function.h>

#include <cstdint>
#include <string>

// For the operations of nn/ and parallel/ that bring a backward of their own.
namespace sevenfold::internal {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Graph nodes hold handles to parameters, not their tensors: LibTorch would otherwise pin gathered
// weights. The pointer is not owned; whoever builds graphs keeps parameters alive longer.
template <typename T>
void save_pointer(AutogradContext* context, const std::string& name, T& object) {
  context->saved_data[name] = reinterpret_cast<int64_t>(&object);
}

template <typename T>
T& saved_pointer(AutogradContext* context, const std::string& name) {
  return *reinterpret_cast<T*>(context->saved_data[name].toInt());
}

}  // namespace sevenfold::internal
