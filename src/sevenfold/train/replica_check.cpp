#include "sevenfold/train/replica_check.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <string>

#include "sevenfold/core/error.h"
#include "sevenfold/dist/replicas.h"

namespace sevenfold {
namespace {

struct Replicated {
  const Parameter* parameter;
  std::string_view part;  // "weight" or a state's name
  at::Tensor tensor;
};

// What the members of the group hold copies of.
std::vector<Replicated> replicated_tensors(const std::vector<Parameter*>& parameters,
                                           const Optimizer& optimizer, bool is_sharded,
                                           const std::string& group) {
  std::vector<Replicated> tensors;
  for (const Parameter* parameter : parameters) {
    const std::vector<std::string> groups = replica_groups(parameter->spec());
    if (std::find(groups.begin(), groups.end(), group) == groups.end()) continue;
    tensors.push_back({parameter, "weight", parameter->weight()});
    if (is_sharded) continue;
    for (const OptimizerState& state : optimizer.states(*parameter))
      tensors.push_back({parameter, state.name, state.tensor});
  }
  return tensors;
}

// [members, 1 + tensors]: rank in the world, then hashes.
at::Tensor gather_hashes(const std::vector<Replicated>& tensors, const RankContext& rank,
                         Communicator& group) {
  const auto columns = static_cast<int64_t>(tensors.size()) + 1;
  const at::TensorOptions integers = at::TensorOptions().dtype(at::kLong);
  const at::Tensor mine = at::empty({columns}, integers);
  auto* values = mine.data_ptr<int64_t>();
  *values++ = rank.rank;
  for (const Replicated& replicated : tensors)
    *values++ = static_cast<int64_t>(hash_bits(replicated.tensor));
  at::Tensor all = at::empty({group.size() * columns}, integers);
  group.all_gather(all, mine).wait();
  return all.view({group.size(), columns});
}

void check_group(const std::vector<Replicated>& tensors, const RankContext& rank,
                 Communicator& group, int64_t iteration) {
  const at::Tensor hashes = gather_hashes(tensors, rank, group);
  const auto rows = hashes.accessor<int64_t, 2>();
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto column = static_cast<int64_t>(i) + 1;
    std::string others;
    for (int64_t member = 1; member < rows.size(0); ++member)
      if (rows[member][column] != rows[0][column])
        others += fmt::format("{}{}", others.empty() ? "" : ", ", rows[member][0]);
    if (others.empty()) continue;
    raise<Error>(
        "train: iteration {}: replicas differ: the {} of {} on rank {} is not the same bits as on "
        "rank {}; the figures of this run cannot be trusted from here on",
        iteration, tensors[i].part, tensors[i].parameter->name(), others, rows[0][0]);
  }
}

}  // namespace

void check_replicas(const std::vector<Parameter*>& parameters, const Optimizer& optimizer,
                    bool is_sharded, const RankContext& rank, int64_t iteration) {
  for (const char* group : {"dp-cp", "tp", "tp-copies", "embedding", "pp-twins"}) {
    const std::vector<Replicated> tensors =
        replicated_tensors(parameters, optimizer, is_sharded, group);
    if (!tensors.empty()) check_group(tensors, rank, rank.group(group), iteration);
  }
}

}  // namespace sevenfold
