#include "bench/measure/processor.h"

#include <fstream>

#include "sevenfold/core/instruction_set.h"

namespace sevenfold::bench {
namespace {

std::string model_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

}  // namespace

std::string processor_name() {
  switch (instruction_set()) {
    case InstructionSet::kAvx512:
      return model_name() + ", AVX-512 loops";
    case InstructionSet::kAvx2:
      return model_name() + ", AVX2 loops";
    case InstructionSet::kPortable:
      return model_name() + ", portable loops";
  }
  return model_name();
}

}  // namespace sevenfold::bench
