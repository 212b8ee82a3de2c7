#include "sevenfold/dist/threads/cluster.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <pthread.h>

#include <algorithm>
#include <deque>
#include <new>
#include <numeric>
#include <vector>

#include "sevenfold/core/error.h"
#include "sevenfold/core/units.h"
#include "sevenfold/dist/allocator.h"
#include "sevenfold/dist/blas.h"
#include "sevenfold/dist/threads/team.h"
#include "sevenfold/dist/threads/threads_communicator.h"

namespace sevenfold {
namespace {

// After a failure ranks get this long to finish a kernel and unwind, whatever the timeout of a
// wait.
constexpr std::chrono::milliseconds kMostGrace{60'000};
constexpr std::chrono::milliseconds kLeastGrace{10'000};

// Everything that the rank threads share. Destroyed after they have ended; contexts hold
// communicators, which refer to the groups.
struct Cluster {
  Cluster(const Mesh& mesh, const ClusterOptions& options)
      : team(mesh.world_size(), options.timeout,
             std::clamp(options.timeout, kLeastGrace, kMostGrace)) {
    for (int64_t rank = 0; rank < mesh.world_size(); ++rank) {
      RankContext& context = contexts.emplace_back();
      context.rank = rank;
      context.mesh = &mesh;
      context.coordinates = mesh.coordinates(rank);
      context.faults = options.faults;
    }
    std::vector<int64_t> everyone(static_cast<size_t>(mesh.world_size()));
    std::iota(everyone.begin(), everyone.end(), int64_t{0});
    add_group("world", everyone);
    for (const auto& [name, groups_of_name] : mesh.standard_groups()) {
      for (const RankGroup& group : groups_of_name) add_group(name, group.ranks);
    }
  }

  void add_group(const std::string& name, const std::vector<int64_t>& ranks) {
    threads::Group& group = groups.emplace_back(team, name, ranks);
    for (size_t member = 0; member < ranks.size(); ++member) {
      RankContext& context = contexts[ranks[member]];
      context.groups[name] = std::make_unique<ThreadsCommunicator>(
          group, static_cast<int64_t>(member), context.traffic);
    }
  }

  threads::Team team;
  std::deque<threads::Group> groups;  // deques: addresses stay
  std::deque<RankContext> contexts;
};

void run_rank(RankContext& context, const ClusterOptions& options,
              const std::function<void(RankContext&)>& body) {
  pthread_setname_np(pthread_self(), ("rank " + std::to_string(context.rank)).c_str());
  at::set_num_threads(std::max(options.threads_per_rank, 1));
  MemoryScope scope(&context.memory, MemoryCategory::kActivations);
  try {
    body(context);
  } catch (const InternalError& error) {
    // Bugs are reported with their rank; the other kinds of error say themselves what they are
    // about.
    raise<InternalError>("rank {}: {}", context.rank, error.what());
  } catch (const c10::Error& error) {
    raise<InternalError>("rank {}: LibTorch: {}", context.rank, error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    raise<Error>(
        "rank {}: out of memory with {} of tensors on this rank; use a smaller micro batch, "
        "sequence or model",
        context.rank, format_bytes(context.memory.live_total()));
  }
}

}  // namespace

void run_ranks(const Mesh& mesh, const ClusterOptions& options,
               const std::function<void(RankContext&)>& body) {
  prepare_blas_for_rank_threads();
  install_allocator();
  Cluster cluster(mesh, options);
  cluster.team.run([&](int64_t rank) { run_rank(cluster.contexts[rank], options, body); });
}

}  // namespace sevenfold
