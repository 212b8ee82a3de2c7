// bench_pipeline [rounds]: whole steps of a Llama on two pipeline ranks and two cores, 8 micro
// batches: 1F1B, zero-bubble (ZB-H1) and ZB-V. Beside the measured ratios stand those of the
// simulator with the times that the passes took, and what no schedule of these passes can beat.

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "bench/layouts/contest.h"
#include "bench/measure/processor.h"
#include "bench/measure/ratios.h"
#include "bench/step/step_model.h"
#include "sevenfold/config/run_schedule.h"
#include "sevenfold/dist/allocator.h"
#include "sevenfold/schedule/algorithms.h"
#include "sevenfold/schedule/simulate.h"

namespace sevenfold::bench {
namespace {

constexpr int64_t kRanks = 2, kMicrobatches = 8;

// A small vocabulary: the head unbalances the ranks by 3 % only.
Config pipeline_config(const char* algorithm) {
  Config config = layout_config(
      {.num_layers = 8, .hidden_size = 384, .ffn_hidden_size = 1024, .seq_length = 256},
      Precision::kFp32);
  config.model.vocab_size = 512;
  config.batch = {
      .micro_batch_size = 1, .global_batch_size = kMicrobatches, .num_microbatches = kMicrobatches};
  config.mesh.pp = kRanks;
  config.pipeline.algorithm = algorithm;
  config.pipeline.num_chunks = find_algorithm(algorithm).default_chunks;
  const int64_t num_stages = kRanks * config.pipeline.num_chunks;
  const int64_t layers = config.model.num_layers / num_stages;
  for (int64_t stage = 0; stage < num_stages; ++stage)
    config.pipeline.stages.push_back({.first_layer = stage * layers,
                                      .num_layers = layers,
                                      .has_embedding = stage == 0,
                                      .has_head = stage + 1 == num_stages});
  return config;
}

// Median time of each stage's passes, in seconds: the executor names a pass "backward input 3 stage
// 1 chunk 0". A backward pass that makes both gradients is all backward_input.
std::vector<PassCosts> measured_passes(const std::vector<ContestStep>& steps, int64_t num_stages) {
  std::map<std::pair<std::string, int64_t>, std::vector<double>> times;
  for (const ContestStep& step : steps)
    for (const std::vector<TimeSpan>& rank : step.spans)
      for (const TimeSpan& span : rank) {
        const size_t number = span.name.find_first_of("0123456789");
        const size_t stage = span.name.find(" stage ");
        if (stage == std::string::npos) continue;
        times[{span.name.substr(0, number), std::stoll(span.name.substr(stage + 7))}].push_back(
            span.end_s - span.start_s);
      }
  const auto time_of = [&](const char* pass, int64_t stage) {
    const auto found = times.find({pass, stage});
    return found == times.end() ? 0.0 : median_interval(found->second).median;
  };
  std::vector<PassCosts> costs;
  for (int64_t stage = 0; stage < num_stages; ++stage)
    costs.push_back(
        {.forward = time_of("forward ", stage),
         .backward_input = time_of("backward ", stage) + time_of("backward input ", stage),
         .backward_weight = time_of("backward weight ", stage)});
  return costs;
}

// Times of a contestant's schedule.
struct Expected {
  double equal_passes = 0.0;  // makespan where F, B and W take 1 each
  double makespan = 0.0;      // seconds, of the passes measured
  double floor = 0.0;         // seconds that the busier rank computes
};

Expected expected_times(const Config& config, const std::vector<ContestStep>& steps) {
  const Schedule schedule = run_schedule(config, kMicrobatches);
  ScheduleCosts costs;
  const double equal_passes = simulate(schedule, costs).makespan;
  costs.stages = measured_passes(steps, schedule.num_stages);
  const Simulation plan = simulate(schedule, costs);
  return {equal_passes, plan.makespan, *std::max_element(plan.busy.begin(), plan.busy.end())};
}

void run(int rounds) {
  const std::vector<Contestant> contestants = {{"1F1B", pipeline_config("1f1b")},
                                               {"zero-bubble", pipeline_config("zero-bubble")},
                                               {"ZB-V", pipeline_config("zbv-formatted")}};
  fmt::print(
      "{}\nfp32 step, {} ranks, {} micro batches, {:.1f} Gflop, {} rounds in turn; medians "
      "with 95 % intervals\n",
      processor_name(), kRanks, kMicrobatches, step_product_flops(contestants[0].config) / 1e9,
      rounds);
  const auto steps = run_in_turn(contestants, rounds);
  std::vector<std::vector<double>> seconds;
  std::vector<Expected> expected;
  for (size_t i = 0; i < contestants.size(); ++i) {
    seconds.push_back(seconds_of(steps[i]));
    expected.push_back(expected_times(contestants[i].config, steps[i]));
    print_times(contestants[i].name, seconds[i]);
    fmt::print("    its passes: {:.1f} ms simulated, {:.1f} ms if nobody waited\n",
               1e3 * expected[i].makespan, 1e3 * expected[i].floor);
  }
  for (size_t i = 1; i < contestants.size(); ++i) {
    print_ratio("1F1B / " + contestants[i].name, seconds[0], seconds[i],
                Aim{Aim::Kind::kAtLeast, 1.0});
    fmt::print("    simulated {:.3f}, with equal passes {:.3f}, if nobody waited {:.3f}\n",
               expected[0].makespan / expected[i].makespan,
               expected[0].equal_passes / expected[i].equal_passes,
               expected[0].makespan / expected[i].floor);
  }
}

}  // namespace
}  // namespace sevenfold::bench

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 30;
  if (rounds < 6) {
    fmt::print(stderr, "bench_pipeline [rounds], at least 6\n");
    return 2;
  }
  sevenfold::configure_process_memory();
  sevenfold::install_allocator();
  sevenfold::bench::run(rounds);
}
