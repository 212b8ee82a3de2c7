#include <gtest/gtest.h>

#include <random>

#include "sevenfold/core/error.h"
#include "sevenfold/schedule/algorithms.h"
#include "sevenfold/schedule/communication.h"
#include "sevenfold/schedule/simulate.h"
#include "sevenfold/schedule/validate.h"

namespace sevenfold {
namespace {

constexpr double kRounding = 1e-9;

// Numbers that look nice are the ones that hide mistakes.
ScheduleRequest drawn_request(std::mt19937_64& random) {
  const auto draw = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  };
  const auto time = [&] { return static_cast<double>(draw(1, 997)) / 131; };
  ScheduleRequest request;
  request.num_ranks = draw(1, 6);
  request.num_microbatches = draw(1, 14);
  request.costs.share = {time(), time(), time(), 1};
  request.costs.link = draw(0, 2) == 0 ? 0 : time() / 5;
  request.costs.weight_memory = static_cast<double>(draw(0, 4)) / 4;
  return request;
}

// Each stage its own costs, as after an uneven split.
void draw_stages(std::mt19937_64& random, ScheduleRequest& request, int64_t num_stages) {
  const auto factor = [&] { return 0.25 + static_cast<double>(random() % 100) / 100; };
  for (int64_t stage = 0; stage < num_stages; ++stage)
    request.costs.stages.push_back({factor(), factor(), factor(), factor()});
}

// In the simulation nothing starts before what it needs, and ranks do one thing at a time. Checked
// from the definition, not with the code that made it.
void expect_causal(const Schedule& schedule, const Simulation& run, double link) {
  const auto size = static_cast<size_t>(schedule.num_stages * schedule.num_microbatches);
  std::vector<double> forward(size);
  std::vector<double> backward(size);
  const auto at = [&](int64_t stage, int64_t microbatch) {
    return static_cast<size_t>(stage * schedule.num_microbatches + microbatch);
  };
  const auto each = [&](auto visit) {
    for (size_t rank = 0; rank < schedule.rows.size(); ++rank)
      for (size_t i = 0; i < schedule.rows[rank].size(); ++i)
        for (const Pass& pass : passes_of(schedule.rows[rank][i]))
          visit(static_cast<int64_t>(rank), pass, run.spans[rank][i]);
  };
  each([&](int64_t, const Pass& pass, const RowSpan& span) {
    if (pass.op == Op::kForward) forward[at(pass.stage, pass.microbatch)] = span.end;
    if (pass.op == Op::kBackwardInput || pass.op == Op::kBackward)
      backward[at(pass.stage, pass.microbatch)] = span.end;
  });
  const auto hop = [&](int64_t rank, int64_t stage, int64_t flow) {
    return site_of(schedule.placement, schedule.num_ranks(), stage, flow).rank == rank ? 0 : link;
  };
  each([&](int64_t rank, const Pass& pass, const RowSpan& span) {
    const auto [op, stage, chunk, m, flow] = pass;
    const bool is_last = stage + 1 == schedule.num_stages;
    double needed = 0;
    if (op == Op::kForward && stage > 0)
      needed = forward[at(stage - 1, m)] + hop(rank, stage - 1, flow);
    if (op == Op::kBackwardWeight) needed = backward[at(stage, m)];
    if (op == Op::kBackwardInput || op == Op::kBackward)
      needed = is_last ? forward[at(stage, m)]
                       : std::max(forward[at(stage, m)],
                                  backward[at(stage + 1, m)] + hop(rank, stage + 1, flow));
    EXPECT_GE(span.start, needed - kRounding) << describe(pass);
  });
  for (const auto& spans : run.spans)
    for (size_t i = 1; i < spans.size(); ++i)
      EXPECT_GE(spans[i].start, spans[i - 1].end - kRounding);
}

TEST(EveryAlgorithm, MakesASoundScheduleOfAnyNumbers) {
  std::mt19937_64 random(20260730);
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.chooses) continue;
    int made = 0;
    for (int trial = 0; trial < 6; ++trial) {
      ScheduleRequest request = drawn_request(random);
      if (algorithm.max_chunks > 2) request.num_chunks = 2 + static_cast<int64_t>(random() % 2);
      if (algorithm.placement == Placement::kBidirectional)
        request.num_ranks += request.num_ranks % 2;
      if (algorithm.placement == Placement::kBidirectional ||
          algorithm.name == std::string("dualpipev"))
        request.num_microbatches = 2 * (request.num_ranks + static_cast<int64_t>(random() % 5));
      const int64_t chunks =
          request.num_chunks == 0 ? algorithm.default_chunks : request.num_chunks;
      const bool twins = algorithm.placement == Placement::kBidirectional;
      if (trial % 3 == 0) draw_stages(random, request, request.num_ranks * (twins ? 1 : chunks));
      SCOPED_TRACE(fmt::format("{} P={} M={} chunks {} trial {}", algorithm.name, request.num_ranks,
                               request.num_microbatches, chunks, trial));
      const Schedule schedule = generate(algorithm.name, request);
      ++made;
      EXPECT_EQ(find_fault(schedule).value_or(""), "");
      EXPECT_EQ(find_deadlock(schedule, actions_of(schedule)).value_or(""), "");
      const Simulation run = simulate(schedule, request.costs);
      expect_causal(schedule, run, request.costs.link);
      EXPECT_GE(run.makespan, run.longest - kRounding);
      EXPECT_GE(run.bubble_rate(), -kRounding);
    }
    EXPECT_EQ(made, 6) << algorithm.name;
  }
}

// Field case: a batch of fewer micro batches than stages. Only the two DualPipes have a lower
// limit.
TEST(EveryAlgorithm, TakesFewerMicrobatchesThanStagesOrSaysWhyNot) {
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.chooses) continue;
    for (int64_t count = 1; count <= 3; ++count) {
      ScheduleRequest request;
      request.num_ranks = 4;
      request.num_microbatches = count;
      const bool is_dual = std::string(algorithm.name).rfind("dualpipe", 0) == 0;
      if (is_dual)
        EXPECT_THROW(generate(algorithm.name, request), ConfigError) << algorithm.name;
      else
        EXPECT_NO_THROW(generate(algorithm.name, request)) << algorithm.name << " " << count;
    }
  }
}

TEST(FindAlgorithm, KnowsTheNamesOfPrimusAndPyTorch) {
  const std::pair<const char*, const char*> names[] = {
      {"zero-bubble", "zb-h1"},
      {"zerobubble", "zb-h1"},
      {"1F1B", "1f1b"},
      {"Interleaved1F1B", "1f1b-interleaved"},
      {"ScheduleGPipe", "gpipe"},
      {"LoopedBFS", "looped-bfs"},
      {"ZBVZeroBubble", "zbv-formatted"},
      {"InterleavedZeroBubble", "zb-interleaved"},
      {"DualPipeV", "dualpipev"},
      {"zbv-greedy-half", "v-half"},
      {"zbv-greedy-min", "v-min"},
      {"zerobubble-heuristic", "zero-bubble-heuristic"},
      {"v_half", "v-half"}};
  for (const auto& [name, algorithm] : names)
    EXPECT_STREQ(find_algorithm(name).name, algorithm) << name;
}

}  // namespace
}  // namespace sevenfold
