#pragma once

#include <torch/csrc/autograd/custom_function.h>

#include <cstdint>
#include <string>
#include <utility>

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

// A callable that belongs to the node.
template <typename F>
struct HeldCallable final : torch::CustomClassHolder {
  explicit HeldCallable(F function) : callable(std::move(function)) {}
  F callable;
};

template <typename F>
void save_callable(AutogradContext* context, const std::string& name, F callable) {
  context->saved_data[name] =
      at::IValue::make_capsule(c10::make_intrusive<HeldCallable<F>>(std::move(callable)));
}

template <typename F>
const F& saved_callable(AutogradContext* context, const std::string& name) {
  return static_cast<HeldCallable<F>&>(*context->saved_data[name].toCapsule()).callable;
}

}  // namespace sevenfold::internal
