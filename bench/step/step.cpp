// bench_step fp32|bf16: one rank's training step on request, for compare.py. Reads `step`, `peak`,
// `products` or `quit` from stdin, a line each, and answers with a line of JSON.

#include <dlfcn.h>
#include <fmt/format.h>
#include <time.h>

#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/measure/processor.h"
#include "bench/step/peak.h"
#include "bench/step/products.h"
#include "bench/step/step_model.h"
#include "sevenfold/dist/allocator.h"
#include "sevenfold/dist/threads/cluster.h"
#include "sevenfold/train/rank_trainer.h"

namespace sevenfold::bench {
namespace {

std::string blas_core() {
  auto* core_name = reinterpret_cast<char* (*)()>(dlsym(RTLD_DEFAULT, "openblas_get_corename"));
  return core_name ? core_name() : "not OpenBLAS";
}

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void answer(const nlohmann::ordered_json& line) {
  std::cout << line.dump() << std::endl;
}

nlohmann::ordered_json step(RankTrainer& trainer) {
  const double cpu_begin = cpu_seconds();
  const auto begin = std::chrono::steady_clock::now();
  const StepResult result = trainer.step();
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
  return {{"seconds", passed.count()},
          {"cpu_seconds", cpu_seconds() - cpu_begin},
          {"loss", result.loss},
          {"gradient_norm", result.gradient_norm}};
}

void serve(const Config& config, RankTrainer& trainer) {
  answer({{"processor", processor_name()},
          {"blas_core", blas_core()},
          {"product_flops", step_product_flops(config)}});
  for (std::string command; std::getline(std::cin, command) && command != "quit";) {
    if (command == "step") {
      answer(step(trainer));
    } else if (command == "peak") {
      const ProductPeak peak = product_peak(config.run.precision);
      answer({{"blas", peak.blas}, {"engine", peak.engine}});
    } else if (command == "products") {
      const bool is_fp32 = config.run.precision == Precision::kFp32;
      answer({{"seconds", is_fp32 ? seconds_of_products(config) : 0.0}});
    } else {
      answer({{"error", "unknown command " + command}});
    }
  }
}

}  // namespace
}  // namespace sevenfold::bench

int main(int argc, char** argv) {
  using namespace sevenfold;
  configure_process_memory();
  install_allocator();
  const std::string precision = argc == 2 ? argv[1] : "";
  if (precision != "fp32" && precision != "bf16") {
    fmt::print(stderr, "bench_step fp32|bf16\n");
    return 2;
  }
  const Config config =
      bench::step_config(precision == "fp32" ? Precision::kFp32 : Precision::kBf16);
  const bench::StepTokens tokens(config.model);
  const Mesh mesh(config.mesh);
  const SampleStream samples(config, tokens);
  run_ranks(mesh, {}, [&](RankContext& rank) {
    RankTrainer trainer(config, samples, rank);
    bench::serve(config, trainer);
  });
}
