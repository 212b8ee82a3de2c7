#include "sevenfold/schedule/search/steady.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "sevenfold/schedule/search/justify.h"

namespace sevenfold {
namespace {

constexpr double kRounding = 1e-9;
constexpr size_t kMaxSpans = 16;  // that are tried: in a steady middle most are alike

size_t at(PassId pass) {
  return static_cast<size_t>(pass);
}

// Where the span begins in each rank's list. All ranks run as many passes in it.
using Span = std::vector<size_t>;

bool has_each_step_once(const PassProblem& problem, const std::vector<PassId>& list, size_t begin,
                        size_t count) {
  std::vector<int64_t> steps;  // kind and stage as one number
  for (size_t i = begin; i < begin + count; ++i)
    steps.push_back(list[i] / problem.num_microbatches);
  std::sort(steps.begin(), steps.end());
  return std::adjacent_find(steps.begin(), steps.end()) == steps.end();
}

class Spans {
 public:
  Spans(const PassProblem& problem, const PassOrder& order, const std::vector<double>& end)
      : problem_(problem),
        order_(order),
        count_(order.front().size() / static_cast<size_t>(problem.num_microbatches)) {
    for (const std::vector<PassId>& list : order) {
      starts_.emplace_back();
      for (const PassId pass : list)
        starts_.back().push_back(end[at(pass)] - problem.duration[at(pass)]);
    }
  }

  size_t passes_per_rank() const { return count_; }

  // Those that begin with a pass of rank 0.
  std::vector<Span> all() const {
    std::vector<Span> spans;
    for (const double start : starts_.front())
      if (std::optional<Span> span = from(start)) spans.push_back(*std::move(span));
    return spans;
  }

 private:
  std::optional<Span> from(double start) const {
    Span span;
    double last = start;        // start in the span
    double next = kUnfinished;  // first start after it
    for (size_t rank = 0; rank < order_.size(); ++rank) {
      const std::vector<double>& starts = starts_[rank];
      const auto first = std::lower_bound(starts.begin(), starts.end(), start - kRounding);
      const auto begin = static_cast<size_t>(first - starts.begin());
      const size_t end = begin + count_;
      if (end > starts.size() || !has_each_step_once(problem_, order_[rank], begin, count_))
        return std::nullopt;
      last = std::max(last, starts[end - 1]);
      if (end < starts.size()) next = std::min(next, starts[end]);
      span.push_back(begin);
    }
    if (next <= last + kRounding) return std::nullopt;
    return span;
  }

  const PassProblem& problem_;
  const PassOrder& order_;
  size_t count_;
  std::vector<std::vector<double>> starts_;  // [rank][position]
};

PassOrder repeated_span(const PassProblem& core, const PassOrder& order, const PassProblem& wanted,
                        const Span& span, size_t count) {
  const int64_t times = 1 + wanted.num_microbatches - core.num_microbatches;
  PassOrder result;
  for (size_t rank = 0; rank < order.size(); ++rank) {
    const auto begin = order[rank].begin() + static_cast<std::ptrdiff_t>(span[rank]);
    const auto end = begin + static_cast<std::ptrdiff_t>(count);
    std::vector<PassId> list(order[rank].begin(), begin);
    for (int64_t i = 0; i < times; ++i) list.insert(list.end(), begin, end);
    list.insert(list.end(), end, order[rank].end());
    result.push_back(std::move(list));
  }
  return numbered(core, result, wanted);
}

}  // namespace

std::optional<PassOrder> stretched(const PassProblem& core, const PassOrder& order,
                                   const PassProblem& wanted) {
  if (wanted.num_microbatches + 1 < core.num_microbatches) return std::nullopt;
  const std::vector<double> end = end_times(core, order);
  if (end.empty()) return std::nullopt;
  const Spans spans(core, order, end);
  const std::vector<Span> all = spans.all();
  const size_t stride = 1 + all.size() / kMaxSpans;
  std::optional<PassOrder> best;
  double best_time = kUnfinished;
  for (size_t i = 0; i < all.size(); i += stride) {
    PassOrder one = repeated_span(core, order, wanted, all[i], spans.passes_per_rank());
    const double time = time_of(wanted, one, Objective::kMakespan);
    if (time >= best_time) continue;
    best_time = time;
    best = std::move(one);
  }
  return best;
}

}  // namespace sevenfold
