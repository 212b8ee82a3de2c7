#include "sevenfold/train/replica_check.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <bit>
#include <map>
#include <string>

#include "sevenfold/core/error.h"
#include "sevenfold/dist/replicas.h"

namespace sevenfold {
namespace {

// What a rank holds a copy of.
struct Replicated {
  const Parameter* parameter;
  std::string_view part;  // "weight" or a state's name
  uint64_t hash;
};

using WeightHashes = std::map<const Parameter*, uint64_t>;

WeightHashes hash_weights(LayerWeights& weights) {
  WeightHashes hashes;
  weights.visit([&](const Bucket& bucket) {
    for (const Parameter* parameter : bucket.parameters)
      hashes[parameter] = hash_bits(parameter->weight());
  });
  return hashes;
}

// The values: of fp16 states the unit is a part of them.
uint64_t hash_state(const OptimizerState& state) {
  const uint64_t hash = hash_bits(state.tensor);
  return state.unit == nullptr ? hash : hash ^ std::bit_cast<uint32_t>(*state.unit);
}

void add_states(const Parameter& parameter, const Optimizer& optimizer,
                std::vector<Replicated>& list) {
  for (const OptimizerState& state : optimizer.states(parameter))
    list.push_back({&parameter, state.name, hash_state(state)});
}

// What the members of the group hold copies of.
std::vector<Replicated> replicated_in(const std::string& group,
                                      const std::vector<Parameter*>& parameters,
                                      const WeightHashes& weights, const Optimizer& optimizer,
                                      bool is_sharded) {
  std::vector<Replicated> list;
  for (const Parameter* parameter : parameters) {
    const std::vector<std::string> groups = replica_groups(parameter->spec());
    if (std::find(groups.begin(), groups.end(), group) == groups.end()) continue;
    list.push_back({parameter, "weight", weights.at(parameter)});
    if (!is_sharded) add_states(*parameter, optimizer, list);
  }
  return list;
}

// Of several sets of shards.
std::vector<Replicated> replicated_shards(const std::vector<Parameter*>& parameters,
                                          const Optimizer& optimizer) {
  std::vector<Replicated> list;
  for (const Parameter* parameter : parameters) add_states(*parameter, optimizer, list);
  return list;
}

// [members, 1 + tensors]: rank in the world, then hashes.
at::Tensor gather_hashes(const std::vector<Replicated>& tensors, const RankContext& rank,
                         Communicator& group) {
  const auto columns = static_cast<int64_t>(tensors.size()) + 1;
  const at::TensorOptions integers = at::TensorOptions().dtype(at::kLong);
  const at::Tensor mine = at::empty({columns}, integers);
  auto* values = mine.data_ptr<int64_t>();
  *values++ = rank.rank;
  for (const Replicated& replicated : tensors) *values++ = static_cast<int64_t>(replicated.hash);
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

void check_replicas(const std::vector<Parameter*>& parameters, LayerWeights& weights,
                    const Optimizer& optimizer, bool is_sharded, const RankContext& rank,
                    int64_t iteration) {
  const WeightHashes hashes = hash_weights(weights);
  const auto check = [&](const char* group, const std::vector<Replicated>& list) {
    if (!list.empty()) check_group(list, rank, rank.group(group), iteration);
  };
  for (const char* group : {"dp-cp", "tp", "tp-copies", "embedding", "pp-twins"})
    check(group, replicated_in(group, parameters, hashes, optimizer, is_sharded));
  if (is_sharded && rank.mesh->shape().dp_replicate > 1)
    check("dp-replicate", replicated_shards(parameters, optimizer));
}

}  // namespace sevenfold
