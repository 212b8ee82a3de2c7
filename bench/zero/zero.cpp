// bench_zero [rounds] [fp32|bf16]: ZeRO stages 1, 2 and 3 against replicated training, two
// data-parallel ranks on two cores: 60 million parameters, one sequence of 1024 tokens per rank and
// step.
// bench_zero serve: the same for compare.py, in fp32. Reads `step N` (contestant N) or `quit` from
// stdin, a line each, and answers with a line of JSON.

#include <fmt/format.h>

#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>

#include "bench/layouts/contest.h"
#include "bench/measure/processor.h"
#include "bench/measure/ratios.h"
#include "sevenfold/core/units.h"
#include "sevenfold/dist/allocator.h"
#include "sevenfold/model/model.h"

namespace sevenfold::bench {
namespace {

// compare.py makes the same model in PyTorch.
Config zero_config(ZeroStage stage, Precision precision) {
  Config config =
      layout_config({.num_layers = 10, .hidden_size = 640, .ffn_hidden_size = 1728}, precision);
  config.batch.global_batch_size = 2;
  config.mesh.dp = 2;
  config.parallel.zero = stage;
  config.run.gradient_bucket_elements = 10'000'000;
  return config;
}

std::vector<Contestant> zero_contestants(Precision precision) {
  return {{"no ZeRO", zero_config(ZeroStage::kNone, precision)},
          {"stage 1", zero_config(ZeroStage::kOptimizer, precision)},
          {"stage 2", zero_config(ZeroStage::kGradients, precision)},
          {"stage 3", zero_config(ZeroStage::kParameters, precision)}};
}

void run(int rounds, Precision precision) {
  const std::vector<Contestant> contestants = zero_contestants(precision);
  constexpr double kAims[] = {1.0, 1.02, 1.05, 1.15};
  fmt::print("{}\n{} parameters, {}, two ranks, {} rounds in turn; medians with 95 % intervals\n",
             processor_name(), with_commas(num_parameters(contestants[0].config.model)),
             precision_name(precision), rounds);
  std::vector<std::vector<double>> seconds;
  for (const auto& steps : run_in_turn(contestants, rounds)) seconds.push_back(seconds_of(steps));
  for (size_t i = 0; i < contestants.size(); ++i) print_times(contestants[i].name, seconds[i]);
  for (size_t i = 1; i < contestants.size(); ++i)
    print_ratio(contestants[i].name + " / no ZeRO", seconds[i], seconds[0],
                Aim{Aim::Kind::kAtMost, kAims[i]});
}

void answer(const nlohmann::ordered_json& line) {
  std::cout << line.dump() << std::endl;
}

void serve() {
  Contest contest(zero_contestants(Precision::kFp32));
  std::vector<std::string> names;
  for (size_t i = 0; i < contest.size(); ++i) names.push_back(contest.contestant(i).name);
  answer({{"processor", processor_name()},
          {"contestants", names},
          {"parameters", num_parameters(contest.contestant(0).config.model)}});
  size_t index = 0;
  for (std::string command; std::cin >> command && command == "step" && std::cin >> index;) {
    if (index >= contest.size()) return answer({{"error", "there is no such contestant"}});
    const ContestStep step = contest.step(index);
    answer({{"seconds", step.seconds}, {"loss", step.loss}, {"gradient_norm", step.gradient_norm}});
  }
}

}  // namespace
}  // namespace sevenfold::bench

int main(int argc, char** argv) {
  using namespace sevenfold;
  const std::string first = argc > 1 ? argv[1] : "30";
  const std::string precision = argc > 2 ? argv[2] : "fp32";
  const int rounds = std::atoi(first.c_str());
  if (first != "serve" && (rounds < 6 || (precision != "fp32" && precision != "bf16"))) {
    fmt::print(stderr, "bench_zero [rounds, at least 6] [fp32|bf16], or bench_zero serve\n");
    return 2;
  }
  configure_process_memory();
  install_allocator();
  if (first == "serve") {
    bench::serve();
  } else {
    bench::run(rounds, precision == "bf16" ? Precision::kBf16 : Precision::kFp32);
  }
}
