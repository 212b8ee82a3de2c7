#include "sevenfold/nn/dropout.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <span>

#include "sevenfold/core/error.h"
#include "sevenfold/nn/autograd.h"
#include "sevenfold/nn/internal/elements.h"

namespace sevenfold {
namespace {

using internal::AutogradContext;
using internal::variable_list;

RandomSite site_of_head(const Dropout& dropout, int64_t head, bool redrawn) {
  RandomSite site = dropout.site;
  site.head += head;
  if (redrawn && dropout.faults.has(Fault::kDropoutRedrawn)) site.seed += 1;
  return site;
}

// x [B, T, columns], contiguous, is overwritten.
void apply_mask(const at::Tensor& x, const DropoutMask& mask,
                const std::vector<int64_t>& sample_ids, DropoutOffset offset) {
  const int64_t batch = x.size(0), length = x.size(1), columns = x.size(2);
  internal::with_element_type(x.scalar_type(), [&]<typename T>(T) {
    T* row = internal::elements<T>(x);
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t t = 0; t < length; ++t, row += columns)
        mask.apply(row, columns, sample_ids[static_cast<size_t>(b)], offset.position + t,
                   offset.column);
  });
}

struct DropoutFunction : torch::autograd::Function<DropoutFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const Dropout* dropout,
                            const std::vector<int64_t>* sample_ids, DropoutOffset offset) {
    internal::save_pointer(context, "dropout", *dropout);
    context->saved_data["sample_ids"] = *sample_ids;
    context->saved_data["position"] = offset.position;
    context->saved_data["column"] = offset.column;
    const at::Tensor y = x.clone(at::MemoryFormat::Contiguous);
    apply_mask(y, DropoutMask(*dropout, 0, /*redrawn=*/false), *sample_ids, offset);
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list d_outputs) {
    const auto& dropout = internal::saved_pointer<const Dropout>(context, "dropout");
    const at::Tensor dx = d_outputs[0].clone(at::MemoryFormat::Contiguous);
    apply_mask(dx, DropoutMask(dropout, 0, /*redrawn=*/true),
               context->saved_data["sample_ids"].toIntVector(),
               {context->saved_data["position"].toInt(), context->saved_data["column"].toInt()});
    return {dx, at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

DropoutMask::DropoutMask(const Dropout& dropout, int64_t head, bool redrawn)
    : stream_(site_of_head(dropout, head, redrawn)),
      dropped_below_(static_cast<uint32_t>(dropout.rate * 0x1p32)),
      scale_(1.0 / (1.0 - dropout.rate)) {
  SEVENFOLD_CHECK(0.0 <= dropout.rate && dropout.rate < 1.0, "rate {}", dropout.rate);
}

template <typename T>
void DropoutMask::apply(T* row, int64_t count, int64_t sample, int64_t position,
                        int64_t first_column) const {
  constexpr int64_t kPiece = 256;  // numbers that are drawn at a time, on the stack
  uint32_t numbers[kPiece];
  using A = Wide<T>;
  const A scale = static_cast<A>(scale_);
  for (int64_t begin = 0; begin < count; begin += kPiece) {
    const int64_t piece = std::min(kPiece, count - begin);
    stream_.draw(sample, position, first_column + begin,
                 std::span(numbers, static_cast<size_t>(piece)));
    for (int64_t i = 0; i < piece; ++i)
      row[begin + i] =
          narrow<T>(widen(row[begin + i]) * (numbers[i] < dropped_below_ ? A(0) : scale));
  }
}
template void DropoutMask::apply<float>(float*, int64_t, int64_t, int64_t, int64_t) const;
template void DropoutMask::apply<double>(double*, int64_t, int64_t, int64_t, int64_t) const;
template void DropoutMask::apply<BFloat16>(BFloat16*, int64_t, int64_t, int64_t, int64_t) const;
template void DropoutMask::apply<Float16>(Float16*, int64_t, int64_t, int64_t, int64_t) const;

at::Tensor dropout(const at::Tensor& x, const Dropout& dropout,
                   const std::vector<int64_t>& sample_ids, DropoutOffset offset) {
  SEVENFOLD_CHECK(x.dim() == 3 && x.size(0) == static_cast<int64_t>(sample_ids.size()),
                  "{} sample ids", sample_ids.size());
  return DropoutFunction::apply(x, &dropout, &sample_ids, offset);
}

}  // namespace sevenfold
