// bench_zero [rounds]: ZeRO stages 1, 2 and 3 against replicated training, two data-parallel ranks
// on two cores: 60 million parameters, one sequence of 1024 tokens per rank and step.

#include <fmt/format.h>

#include <cstdlib>

#include "bench/layouts/contest.h"
#include "bench/measure/processor.h"
#include "bench/measure/ratios.h"
#include "bench/step/step_model.h"
#include "sevenfold/core/units.h"
#include "sevenfold/dist/allocator.h"
#include "sevenfold/model/model.h"

namespace sevenfold::bench {
namespace {

Config zero_config(ZeroStage stage, Precision precision) {
  Config config = step_config(precision);
  config.model.num_layers = 10;
  config.model.hidden_size = 640;
  config.model.ffn_hidden_size = 1728;
  config.model.num_attention_heads = 10;
  config.model.num_query_groups = 10;
  config.model.seq_length = 1024;
  config.model.max_position_embeddings = 1024;
  config.batch = {.micro_batch_size = 1, .global_batch_size = 2, .num_microbatches = 1};
  config.mesh.dp = 2;
  config.parallel.zero = stage;
  config.run.gradient_bucket_elements = 10'000'000;
  return config;
}

void print_ratio(const std::string& name, const std::vector<double>& a,
                 const std::vector<double>& b, double aim) {
  std::vector<double> ratios;
  for (size_t i = 0; i < a.size(); ++i) ratios.push_back(a[i] / b[i]);
  const Interval ratio = median_interval(ratios);
  fmt::print("{:<24} {:.3f} [{:.3f}, {:.3f}]   aim {:.2f}: {}\n", name, ratio.median, ratio.low,
             ratio.high, aim, ratio.median <= aim ? "met" : "missed");
}

void run(int rounds, Precision precision) {
  const std::vector<Contestant> contestants = {
      {"no ZeRO", zero_config(ZeroStage::kNone, precision)},
      {"stage 1", zero_config(ZeroStage::kOptimizer, precision)},
      {"stage 2", zero_config(ZeroStage::kGradients, precision)},
      {"stage 3", zero_config(ZeroStage::kParameters, precision)}};
  constexpr double kAims[] = {1.0, 1.02, 1.05, 1.15};
  fmt::print("{}\n{} parameters, {}, two ranks, {} rounds in turn; medians with 95 % intervals\n",
             processor_name(), with_commas(num_parameters(contestants[0].config.model)),
             precision_name(precision), rounds);
  const auto seconds = run_in_turn(contestants, rounds);
  for (size_t i = 0; i < contestants.size(); ++i) {
    const Interval time = median_interval(seconds[i]);
    fmt::print("{:<24} {:8.1f} ms [{:.1f}, {:.1f}]\n", contestants[i].name, 1e3 * time.median,
               1e3 * time.low, 1e3 * time.high);
  }
  for (size_t i = 1; i < contestants.size(); ++i)
    print_ratio(contestants[i].name + " / no ZeRO", seconds[i], seconds[0], kAims[i]);
}

}  // namespace
}  // namespace sevenfold::bench

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 30;
  const std::string precision = argc > 2 ? argv[2] : "fp32";
  if (rounds < 6 || (precision != "fp32" && precision != "bf16")) {
    fmt::print(stderr, "bench_zero [rounds, at least 6] [fp32|bf16]\n");
    return 2;
  }
  sevenfold::configure_process_memory();
  sevenfold::install_allocator();
  sevenfold::bench::run(
      rounds, precision == "bf16" ? sevenfold::Precision::kBf16 : sevenfold::Precision::kFp32);
}
