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
  Config config = step_config(Precision::kFp32);
  config.model.num_layers = 4;
  config.model.hidden_size = 1024;
  config.model.ffn_hidden_size = 2816;
  config.model.num_attention_heads = 16;
  config.model.num_query_groups = 16;
  config.model.seq_length = 1024;
  config.model.max_position_embeddings = 1024;
  config.batch = {.micro_batch_size = 1, .global_batch_size = 1, .num_microbatches = 1};
  config.mesh.tp = tp;
  config.mesh.etp = tp;
  config.parallel.sequence = sequence;
  return config;
}

void print_ratio(const char* name, const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> ratios;
  for (size_t i = 0; i < a.size(); ++i) ratios.push_back(a[i] / b[i]);
  const Interval ratio = median_interval(ratios);
  fmt::print("{:<32} {:.3f} [{:.3f}, {:.3f}]\n", name, ratio.median, ratio.low, ratio.high);
}

void run(int rounds) {
  fmt::print("{}\nfp32 step, {} rounds in turn; medians with their 95 % intervals\n",
             processor_name(), rounds);
  const std::vector<Contestant> contestants = {{"one rank", tensor_config(1, false)},
                                               {"TP 2", tensor_config(2, false)},
                                               {"TP 2 and SP", tensor_config(2, true)}};
  const auto seconds = run_in_turn(contestants, rounds);
  for (size_t i = 0; i < contestants.size(); ++i) {
    const Interval time = median_interval(seconds[i]);
    fmt::print("{:<24} {:8.1f} ms [{:.1f}, {:.1f}]\n", contestants[i].name, 1e3 * time.median,
               1e3 * time.low, 1e3 * time.high);
  }
  print_ratio("one rank / TP 2", seconds[0], seconds[1]);
  print_ratio("TP 2 / TP 2 and SP", seconds[1], seconds[2]);
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
