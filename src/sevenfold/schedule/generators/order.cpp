#include "sevenfold/schedule/generators/order.h"

#include <algorithm>
#include <string>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

bool is_legal_group(int64_t size, const ScheduleRequest& request) {
  const int64_t ranks = request.num_ranks;
  const int64_t microbatches = request.num_microbatches;
  if (size < std::min(ranks, microbatches) || size > microbatches) return false;
  return microbatches % size == 0 || microbatches % size >= ranks;
}

std::string legal_groups(const ScheduleRequest& request) {
  constexpr int kShown = 8;
  std::string list;
  int shown = 0;
  for (int64_t size = 1; size <= request.num_microbatches; ++size) {
    if (!is_legal_group(size, request)) continue;
    if (++shown > kShown) return list + ", ...";
    list += (list.empty() ? "" : ", ") + std::to_string(size);
  }
  return list;
}

}  // namespace

Schedule empty_schedule(const char* algorithm, Placement placement, const ScheduleRequest& request,
                        int64_t num_chunks) {
  Schedule schedule;
  schedule.algorithm = algorithm;
  schedule.num_stages = request.num_ranks * num_chunks;
  schedule.num_microbatches = request.num_microbatches;
  schedule.rows.resize(static_cast<size_t>(request.num_ranks));
  schedule.placement = placement;
  return schedule;
}

void append(Schedule& schedule, int64_t rank, Op op, int64_t chunk, int64_t microbatch) {
  const int64_t stage = stage_of(schedule.placement, schedule.num_ranks(), rank, chunk);
  schedule.rows[static_cast<size_t>(rank)].push_back(
      {.op = op, .stage = stage, .chunk = chunk, .microbatch = microbatch});
}

int64_t interleaved_group_size(const ScheduleRequest& request) {
  const int64_t ranks = request.num_ranks;
  const int64_t microbatches = request.num_microbatches;
  if (request.group_size == 0) {
    int64_t size = std::min(ranks, microbatches);
    while (!is_legal_group(size, request)) ++size;  // M itself is legal
    return size;
  }
  if (!is_legal_group(request.group_size, request))
    raise<ConfigError>(
        "schedule: groups of {} micro batches do not fit {} stages and {} micro batches: a group "
        "holds "
        "at least as many micro batches as there are stages, the last one too; use {}",
        request.group_size, ranks, microbatches, legal_groups(request));
  return request.group_size;
}

std::vector<ChunkPass> interleaved_order(int64_t num_microbatches, int64_t num_chunks,
                                         int64_t group_size, bool backward) {
  std::vector<ChunkPass> order;
  for (int64_t first = 0; first < num_microbatches; first += group_size)
    for (int64_t turn = 0; turn < num_chunks; ++turn)
      for (int64_t m = first; m < std::min(first + group_size, num_microbatches); ++m)
        order.push_back({backward ? num_chunks - 1 - turn : turn, m});
  return order;
}

void append_lagged_weights(Schedule& schedule, int64_t rank, const std::vector<ChunkPass>& forwards,
                           const std::vector<ChunkPass>& backwards, int64_t warmup, int64_t lag) {
  const auto add = [&](Op op, const ChunkPass& pass) {
    append(schedule, rank, op, pass.chunk, pass.microbatch);
  };
  const auto count = static_cast<int64_t>(forwards.size());
  warmup = std::min(warmup, count);
  for (int64_t k = 0; k < warmup; ++k) add(Op::kForward, forwards[static_cast<size_t>(k)]);
  for (int64_t k = 0; k < count + lag; ++k) {
    if (k + warmup < count) add(Op::kForward, forwards[static_cast<size_t>(k + warmup)]);
    if (k < count) add(Op::kBackwardInput, backwards[static_cast<size_t>(k)]);
    if (k >= lag) add(Op::kBackwardWeight, backwards[static_cast<size_t>(k - lag)]);
  }
}

}  // namespace sevenfold
