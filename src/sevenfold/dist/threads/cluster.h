#pragma once

#include <chrono>
#include <functional>

#include "sevenfold/core/faults.h"
#include "sevenfold/dist/rank_context.h"
#include "sevenfold/mesh/mesh.h"

namespace sevenfold {

// The simulated cluster: ranks are threads of this process and collectives read peers' memory
// directly. For proving, debugging and testing layouts on any machine.

struct ClusterOptions {
  std::chrono::milliseconds timeout{600'000};  // of one wait
  int threads_per_rank = 1;                    // LibTorch's own threads inside a rank
  FaultSet faults;
};

// Runs `body` once per rank of the mesh and returns when all have returned. If any throws: every
// wait of the others ends, and the exception with the lowest sequence number (the first failure) is
// rethrown here once; the others' secondary failures are dropped. A rank inside a
// computation cannot be interrupted: when another rank has failed or has waited for it in vain, and
// it does not come back within the timeout, the process says which rank is stuck, in what, and
// leaves with _exit(1). One rank alone is never waited for, so its endless loop goes unnoticed.
// Refuses to start (ConfigError) with a BLAS that computes wrong results when several threads call
// it.
void run_ranks(const Mesh& mesh, const ClusterOptions& options,
               const std::function<void(RankContext&)>& body);

}  // namespace sevenfold
