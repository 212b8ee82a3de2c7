#include "sevenfold/core/instruction_set.h"

#include <algorithm>

namespace sevenfold {
namespace {

InstructionSet newest() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return InstructionSet::kAvx512;
  if (__builtin_cpu_supports("avx2")) return InstructionSet::kAvx2;
#endif
  return InstructionSet::kPortable;
}

const InstructionSet kNewest = newest();
thread_local InstructionSet thread_limit = InstructionSet::kAvx512;

}  // namespace

InstructionSet instruction_set() {
  return std::min(kNewest, thread_limit);
}

ForcedInstructionSet::ForcedInstructionSet(InstructionSet set) {
  thread_limit = set;
}

ForcedInstructionSet::~ForcedInstructionSet() {
  thread_limit = InstructionSet::kAvx512;
}

}  // namespace sevenfold
