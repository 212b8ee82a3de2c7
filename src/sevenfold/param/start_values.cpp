#include "sevenfold/param/start_values.h"

#include <ATen/ATen.h>

#include <cmath>
#include <type_traits>

#include "sevenfold/core/error.h"
#include "sevenfold/core/random.h"

namespace sevenfold {
namespace {

// value = offset + scale * (uniform or normal draw)
struct Distribution {
  double offset = 0.0;
  double scale = 0.0;
};

Distribution hot_distribution(const Parameter& parameter) {
  switch (parameter.kind()) {
    case ParameterKind::kMatrix:
    case ParameterKind::kOutputMatrix: {
      const auto fan_in = static_cast<double>(parameter.spec().global_shape.back());
      return {0.0, std::sqrt(3.0) * 1.7 / std::sqrt(fan_in)};
    }
    case ParameterKind::kTable:
      return {0.0, std::sqrt(3.0) * 0.3};
    case ParameterKind::kGain:
      return {1.0, 0.1};
    case ParameterKind::kBias:
      return {0.0, 0.1};
  }
  return {};
}

Distribution seeded_distribution(const Parameter& parameter, const StartOptions& options) {
  switch (parameter.kind()) {
    case ParameterKind::kMatrix:
    case ParameterKind::kTable:
      return {0.0, options.init_method_std};
    case ParameterKind::kOutputMatrix:
      return {0.0,
              options.init_method_std / std::sqrt(2.0 * static_cast<double>(options.num_layers))};
    case ParameterKind::kGain:
      return {1.0, 0.0};
    case ParameterKind::kBias:
      return {0.0, 0.0};
  }
  return {};
}

template <typename T>
T converted(double value) {
  if constexpr (std::is_same_v<T, double>) return value;
  return static_cast<T>(static_cast<float>(value));
}

// Writes the slice's values in row-major order; rows are the last dimension of the slice.
template <typename T, typename Draw>
void fill_slice(T* values, const std::vector<int64_t>& global_shape, const Slice& slice,
                const Draw& draw) {
  const size_t dims = global_shape.size();
  const int64_t row = slice.sizes.back();
  std::vector<int64_t> position(dims, 0);
  for (int64_t done = 0; done < slice.num_elements(); done += row) {
    int64_t index = 0;
    for (size_t d = 0; d < dims; ++d)
      index = index * global_shape[d] + slice.offsets[d] + position[d];
    for (int64_t i = 0; i < row; ++i)
      values[done + i] = converted<T>(draw(static_cast<uint64_t>(index + i)));
    for (size_t d = dims - 1; d-- > 0;) {
      if (++position[d] < slice.sizes[d]) break;
      position[d] = 0;
    }
  }
}

}  // namespace

void fill_start_values(const at::Tensor& values, const Parameter& parameter,
                       const StartOptions& options, const Slice& slice) {
  const bool hot = options.kind == StartKind::kHot;
  const Distribution distribution =
      hot ? hot_distribution(parameter) : seeded_distribution(parameter, options);
  const ElementStream stream = hot ? ElementStream::hot(parameter.name())
                                   : ElementStream::seeded(parameter.name(), options.seed);
  const auto draw = [&](uint64_t index) {
    if (distribution.scale == 0.0) return distribution.offset;
    return distribution.offset +
           distribution.scale * (hot ? stream.uniform(index) : stream.normal(index));
  };
  SEVENFOLD_CHECK_EQ(values.numel(), slice.num_elements());
  SEVENFOLD_CHECK(values.is_contiguous());
  const std::vector<int64_t>& shape = parameter.spec().global_shape;
  switch (values.scalar_type()) {
    case at::kDouble:
      return fill_slice(values.data_ptr<double>(), shape, slice, draw);
    case at::kFloat:
      return fill_slice(values.data_ptr<float>(), shape, slice, draw);
    case at::kBFloat16:
      return fill_slice(values.data_ptr<at::BFloat16>(), shape, slice, draw);
    case at::kHalf:
      return fill_slice(values.data_ptr<at::Half>(), shape, slice, draw);
    default:
      raise<InternalError>("start values of type {}", at::toString(values.scalar_type()));
  }
}

void fill_start_values(Parameter& parameter, const StartOptions& options, const Slice& slice) {
  fill_start_values(parameter.weight(), parameter, options, slice);
}

}  // namespace sevenfold
