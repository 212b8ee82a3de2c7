#include "sevenfold/dataset/order/torch_random.h"

#include <numeric>
#include <random>
#include <utility>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

// Plain modulo without rejection; the last element draws nothing.
void shuffle_forwards(std::vector<int64_t>& values, std::mt19937& engine) {
  for (size_t i = 0; i + 1 < values.size(); ++i) {
    const uint64_t left = values.size() - i;
    std::swap(values[i], values[i + static_cast<uint32_t>(engine()) % left]);
  }
}

void fill_inside_out(std::vector<int64_t>& values, std::mt19937& engine) {
  for (size_t i = 0; i < values.size(); ++i) {
    const uint64_t high = engine();
    const uint64_t place = (high << 32 | engine()) % (i + 1);
    values[i] = values[place];
    values[place] = static_cast<int64_t>(i);
  }
}

}  // namespace

std::vector<int64_t> torch_randperm(int64_t n, uint64_t seed, int64_t inside_out_from) {
  SEVENFOLD_CHECK(n >= 0, "randperm({})", n);
  std::mt19937 engine(static_cast<uint32_t>(seed));
  std::vector<int64_t> values(static_cast<size_t>(n));
  std::iota(values.begin(), values.end(), int64_t{0});
  if (n >= inside_out_from) {
    fill_inside_out(values, engine);
  } else {
    shuffle_forwards(values, engine);
  }
  return values;
}

}  // namespace sevenfold
