// bench_tensor [rounds]: two tensor-parallel ranks on two cores, with and without sequence
// parallelism, against one rank on one core; hidden size 1024, 4 layers, sequences of 1024.

#include <fmt/format.h>

#include <cstdlib>

#include "bench/layouts/contest.h"
#include "bench/measure/processor.h"
#include "bench/measure/ratios.h"
#include "bench/step/step_model.h"
#include "sevenfold/dist/allocator.h"

namespace sevenfold::bench {
namespace {

Config tensor_config(int64_t tp, bool sequence) {
  Config config = layout_config({.num_layers = 4, .hidden_size = 1024, .ffn_hidden_size = 2816},
                                Precision::kFp32);
  config.mesh.tp = tp;
  config.mesh.etp = tp;
  config.parallel.sequence = sequence;
  return config;
}

void run(int rounds) {
  fmt::print("{}\nfp32 step, {} rounds in turn; medians with their 95 % intervals\n",
             processor_name(), rounds);
  const std::vector<Contestant> contestants = {{"one rank", tensor_config(1, false)},
                                               {"TP 2", tensor_config(2, false)},
                                               {"TP 2 and SP", tensor_config(2, true)}};
  std::vector<std::vector<double>> seconds;
  for (const auto& steps : run_in_turn(contestants, rounds)) seconds.push_back(seconds_of(steps));
  for (size_t i = 0; i < contestants.size(); ++i) print_times(contestants[i].name, seconds[i]);
  print_ratio("one rank / TP 2", seconds[0], seconds[1], Aim{Aim::Kind::kAtLeast, 1.7});
  print_ratio("TP 2 / TP 2 and SP", seconds[1], seconds[2], Aim{Aim::Kind::kAtLeast, 0.97});
  const double flops = step_product_flops(contestants[0].config);
  fmt::print("products of the step: {:.1f} Gflop\n", flops / 1e9);
}

}  // namespace
}  // namespace sevenfold::bench

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 30;
  if (rounds < 6) {
    fmt::print(stderr, "bench_tensor [rounds], at least 6\n");
    return 2;
  }
  sevenfold::configure_process_memory();
  sevenfold::install_allocator();
  sevenfold::bench::run(rounds);
}
