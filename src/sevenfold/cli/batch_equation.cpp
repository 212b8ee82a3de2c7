#include "sevenfold/cli/batch_equation.h"

#include <algorithm>
#include <string>
#include <utility>

#include "sevenfold/core/error.h"

namespace sevenfold::cli {
namespace {

// "micro batch 2 x dp 2": the given factors, with their product.
struct Factors {
  int64_t product = 1;
  std::string text;
};

Factors given_factors(const BatchRequest& request) {
  Factors factors;
  for (const auto& [name, value] :
       {std::pair{"micro batch", request.micro_batch}, std::pair{"dp", request.dp},
        std::pair{"accumulation", request.accumulation}}) {
    if (!value) continue;
    if (__builtin_mul_overflow(factors.product, *value, &factors.product) ||
        factors.product > kMaxBatchSize * kMaxBatchSize / 2)
      raise<ConfigError>(
          "batch: {} x {} {} is more than a global batch can be (at most {}); use "
          "smaller sizes",
          factors.text, name, *value, kMaxBatchSize);
    factors.text += fmt::format("{}{} {}", factors.text.empty() ? "" : " x ", name, *value);
  }
  return factors;
}

std::string nearest(int64_t value, int64_t unit) {
  const int64_t lower = value / unit * unit;
  return lower < unit ? std::to_string(unit) : fmt::format("{} or {}", lower, lower + unit);
}

void check_equation(const BatchRequest& request, const Factors& factors) {
  if (!request.global_batch) return;
  const bool is_complete = request.num_given() == 4;
  if (is_complete && *request.global_batch != factors.product)
    raise<ConfigError>(
        "batch: --global-batch {} is not {} = {}; use --global-batch {}, or leave one "
        "of the four out",
        *request.global_batch, factors.text, factors.product, factors.product);
  if (*request.global_batch % factors.product != 0)
    raise<ConfigError>(
        "batch: --global-batch {}: {} is not {} x a whole number; use --global-batch "
        "{}",
        *request.global_batch, *request.global_batch, factors.text,
        nearest(*request.global_batch, factors.product));
}

std::vector<int64_t> divisors(int64_t value) {
  std::vector<int64_t> found;
  for (int64_t i = 1; i <= value / i; ++i) {
    if (value % i != 0) continue;
    found.push_back(i);
    if (i != value / i) found.push_back(value / i);
  }
  std::sort(found.begin(), found.end());
  return found;
}

// The given sizes; of the others, in the order of the equation, the first is `first`.
BatchSizes complete(const BatchRequest& request, int64_t first, int64_t second) {
  bool is_taken = false;
  const auto size = [&](const std::optional<int64_t>& given) {
    if (given) return *given;
    return std::exchange(is_taken, true) ? second : first;
  };
  BatchSizes sizes;
  sizes.global_batch = *request.global_batch;
  sizes.micro_batch = size(request.micro_batch);
  sizes.dp = size(request.dp);
  sizes.accumulation = size(request.accumulation);
  return sizes;
}

// Every way to write `rest` as the product of the sizes that are not given.
std::vector<BatchSizes> fill(const BatchRequest& request, int64_t rest) {
  if (request.num_given() >= 3) return {complete(request, rest, rest)};
  std::vector<BatchSizes> solutions;
  for (const int64_t second : divisors(rest))
    solutions.push_back(complete(request, rest / second, second));
  return solutions;
}

// Without a global batch: with one factor open, its first values.
std::vector<BatchSizes> multiples(const BatchRequest& request, const Factors& factors) {
  constexpr int64_t kShown = 8;
  const int64_t num_shown = request.num_given() == 3 ? 1 : kShown;
  std::vector<BatchSizes> solutions;
  for (int64_t times = 1; times <= num_shown && factors.product * times <= kMaxBatchSize; ++times)
    solutions.push_back({factors.product * times, request.micro_batch.value_or(times),
                         request.dp.value_or(times), request.accumulation.value_or(times)});
  if (solutions.empty())
    raise<ConfigError>(
        "batch: {} = {} is more than a global batch can be (at most {}); use smaller "
        "sizes",
        factors.text, factors.product, kMaxBatchSize);
  return solutions;
}

}  // namespace

int BatchRequest::num_given() const {
  return static_cast<int>(global_batch.has_value()) + static_cast<int>(micro_batch.has_value()) +
         static_cast<int>(dp.has_value()) + static_cast<int>(accumulation.has_value());
}

std::vector<BatchSizes> solve_batch(const BatchRequest& request) {
  if (request.num_given() < 2)
    raise<ConfigError>(
        "batch: global batch = micro batch x dp x accumulation has four sizes, and {} of them is "
        "given; give two or three of --global-batch, --micro-batch, --dp and --accumulation, or a "
        "FILE",
        request.num_given());
  const Factors factors = given_factors(request);
  check_equation(request, factors);
  return request.global_batch ? fill(request, *request.global_batch / factors.product)
                              : multiples(request, factors);
}

}  // namespace sevenfold::cli
