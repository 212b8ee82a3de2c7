#include "sevenfold/schedule/algorithms.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "sevenfold/core/error.h"
#include "sevenfold/core/units.h"
#include "sevenfold/schedule/automatic.h"
#include "sevenfold/schedule/generators/generators.h"
#include "sevenfold/schedule/generators/one_f_one_b.h"
#include "sevenfold/schedule/simulate.h"
#include "sevenfold/schedule/validate.h"

namespace sevenfold {
namespace {

constexpr int64_t kAnyChunks = 1024;

Schedule one_f_one_b_of(const ScheduleRequest& request) {
  return one_f_one_b(request.num_ranks, request.num_microbatches);
}

// Lower case, without PyTorch's "Schedule" and without - and _.
std::string normalized(std::string_view name) {
  std::string result;
  for (const char c : name)
    if (c != '-' && c != '_')
      result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  constexpr std::string_view kPrefix = "schedule";
  if (result.size() > kPrefix.size() && result.rfind(kPrefix, 0) == 0)
    result.erase(0, kPrefix.size());
  return result;
}

bool answers_to(const Algorithm& algorithm, const std::string& wanted) {
  if (normalized(algorithm.name) == wanted) return true;
  std::string_view rest = algorithm.aliases;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    if (normalized(rest.substr(0, comma)) == wanted) return true;
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  return false;
}

// A table of more, with what is made of it, would not fit into memory.
constexpr int64_t kMaxForwards = 2'500'000;

void check_forwards(const ScheduleRequest& request) {
  const int64_t chunks = std::max<int64_t>(1, request.num_chunks);
  const int64_t forwards = request.num_ranks * chunks * request.num_microbatches;
  if (forwards <= kMaxForwards) return;
  raise<ConfigError>(
      "schedule: {} stages x {} micro batches x {} chunk{} are {} forwards, more than the {} that "
      "a "
      "table holds; use fewer of them",
      request.num_ranks, request.num_microbatches, chunks, chunks == 1 ? "" : "s", forwards,
      kMaxForwards);
}

void check_sizes(const Algorithm& algorithm, const ScheduleRequest& request) {
  const auto check = [](const char* what, int64_t value, int64_t limit) {
    if (value < 1 || value > limit)
      raise<ConfigError>("schedule: {} {} are out of range; use 1 to {}", value, what, limit);
  };
  check("stages", request.num_ranks, 4096);
  check("micro batches", request.num_microbatches, 65536);
  check_forwards(request);
  if (algorithm.chooses && request.num_chunks == 0) return;
  if (request.num_chunks >= algorithm.min_chunks && request.num_chunks <= algorithm.max_chunks)
    return;
  if (algorithm.min_chunks == algorithm.max_chunks)
    raise<ConfigError>("schedule: {} has {} chunk{} per rank, not {}; leave --chunks out",
                       algorithm.name, algorithm.min_chunks, algorithm.min_chunks == 1 ? "" : "s",
                       request.num_chunks);
  raise<ConfigError>("schedule: {} wants {} to {} chunks per rank, not {}", algorithm.name,
                     algorithm.min_chunks, algorithm.max_chunks, request.num_chunks);
}

}  // namespace

const std::vector<Algorithm>& algorithms() {
  static const std::vector<Algorithm> kAlgorithms = {
      {"gpipe", "GPipe", Placement::kLinear, 1, 1, 1, false, false, false, gpipe,
       "all forwards, then all backwards"},
      {"1f1b", "1F1B,pipedream-flush", Placement::kLinear, 1, 1, 1, false, false, false,
       one_f_one_b_of, "one forward, one backward; memory of P micro batches"},
      {"looped-bfs", "LoopedBFS", Placement::kLoop, 1, kAnyChunks, 2, false, false, false,
       looped_bfs, "chunk by chunk, all micro batches: each chunk's weights are touched once"},
      {"1f1b-interleaved", "Interleaved1F1B,interleaved-1f1b,vpp", Placement::kLoop, 2, kAnyChunks,
       2, false, true, false, interleaved_1f1b,
       "several chunks per rank: bubble of 1F1B divided by their number"},
      {"zb-h1", "zero-bubble,zerobubble,zb1p", Placement::kLinear, 1, 1, 1, true, false, false,
       zb_h1, "B and W apart: a third of the bubble of 1F1B at its memory"},
      {"zb-h2", "", Placement::kLinear, 1, 1, 1, true, false, false, zb_h2,
       "no bubble on any rank at twice the memory, if the optimizer needs no barrier"},
      {"zero-bubble-heuristic", "zerobubble-heuristic,seaailab-ilp", Placement::kLinear, 1, 1, 1,
       true, false, false, zero_bubble_heuristic,
       "B and W apart, W into the gaps, under --max-memory (P: ZB-1p, 2P: ZB-2p)"},
      {"zb-interleaved", "InterleavedZeroBubble", Placement::kLoop, 1, kAnyChunks, 2, true, true,
       false, zb_interleaved, "zb-h1 with several chunks per rank"},
      {"zbv-formatted", "ZBVZeroBubble,zbv", Placement::kVee, 2, 2, 2, true, false, false,
       zbv_formatted, "two chunks in a V: no bubble on any rank at the memory of 1F1B"},
      {"zbv-heuristic", "", Placement::kVee, 2, 2, 2, true, false, false, zbv_heuristic,
       "the V for the times at hand: the shortest of the longest rank"},
      {"v-half", "zbv-greedy-half", Placement::kVee, 2, 2, 2, true, false, false, v_half,
       "half the memory of 1F1B, about half of its bubble"},
      {"v-min", "zbv-greedy-min", Placement::kVee, 2, 2, 2, true, false, false, v_min,
       "a third of the memory of 1F1B, about two thirds of its bubble"},
      {"v-zb", "", Placement::kVee, 2, 2, 2, true, false, false, v_zb,
       "the V with a building block without bubble, at the memory of 1F1B"},
      {"1f1b-v", "v1f1b", Placement::kVee, 2, 2, 2, false, false, false, one_f_one_b_v,
       "two thirds of the memory of 1F1B without dividing backward"},
      {"v-adaptive", "", Placement::kVee, 2, 2, 2, true, false, false, v_adaptive,
       "the shortest V schedule found under --max-memory"},
      {"dualpipe", "", Placement::kBidirectional, 1, 2, 2, true, false, false, dualpipe,
       "from both ends, forward and backward overlapped; two copies of the weights"},
      {"dualpipev", "DualPipeV", Placement::kVee, 2, 2, 2, true, false, false, dualpipev,
       "dualpipe folded into a V, with one copy of the weights"},
      {"auto", "", Placement::kLinear, 1, kAnyChunks, 0, true, true, true, shortest_schedule,
       "the shortest of all that keep one copy of the weights and fit --max-memory"},
  };
  return kAlgorithms;
}

const Algorithm* look_up_algorithm(std::string_view name) {
  const std::string wanted = normalized(name);
  for (const Algorithm& algorithm : algorithms())
    if (answers_to(algorithm, wanted)) return &algorithm;
  return nullptr;
}

std::string algorithms_near(std::string_view name) {
  constexpr int64_t kFar = 4;
  const std::string wanted = normalized(name);
  std::string near, all;
  int64_t least = kFar;
  for (const Algorithm& algorithm : algorithms()) {
    const int64_t distance = edit_distance(normalized(algorithm.name), wanted);
    if (distance < least) near.clear();
    if (distance <= least && distance < kFar)
      near += (near.empty() ? "" : " or ") + std::string(algorithm.name);
    least = std::min(least, distance);
    all += (all.empty() ? "" : ", ") + std::string(algorithm.name);
  }
  return near.empty() ? "use one of " + all : fmt::format("use {}; there are {}", near, all);
}

const Algorithm& find_algorithm(std::string_view name) {
  const Algorithm* algorithm = look_up_algorithm(name);
  if (algorithm == nullptr)
    raise<ConfigError>("schedule: no algorithm is called '{}'; {}", name, algorithms_near(name));
  return *algorithm;
}

Schedule generate(std::string_view name, ScheduleRequest request) {
  const Algorithm& algorithm = find_algorithm(name);
  if (request.num_chunks == 0) request.num_chunks = algorithm.default_chunks;
  check_sizes(algorithm, request);
  check_costs(request.costs);
  ScheduleRequest in_unit = request;
  in_unit.costs = in_own_unit(request.costs);
  Schedule schedule = algorithm.generate(in_unit);
  const std::optional<std::string> fault = find_fault(schedule);
  SEVENFOLD_CHECK(!fault, "{}: {}", algorithm.name, *fault);
  if (const auto excess = find_excess(schedule, request.costs, request.max_memory))
    raise<ConfigError>(
        "schedule: {} on {} ranks with {} micro batches: {}; use --algorithm auto, which finds one "
        "that fits, or a larger --max-memory",
        algorithm.name, request.num_ranks, request.num_microbatches, *excess);
  return schedule;
}

std::optional<Schedule> try_generate(const Algorithm& algorithm, const ScheduleRequest& request) {
  try {
    return generate(algorithm.name, request);
  } catch (const ConfigError&) {  // its message is about an algorithm that nobody asked for
    return std::nullopt;
  }
}

}  // namespace sevenfold
