#include "sevenfold/train/replica_check.h"

#include <ATen/ATen.h>

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

std::vector<Replicated> replicated_tensors(const std::vector<Parameter*>& parameters,
                                           const Optimizer& optimizer) {
  std::vector<Replicated> tensors;
  for (const Parameter* parameter : parameters) {
    tensors.push_back({parameter, "weight", parameter->weight()});
    for (const OptimizerState& state : optimizer.states(*parameter))
      tensors.push_back({parameter, state.name, state.tensor});
  }
  return tensors;
}

// [members, 1 + tensors]: rank in the world, then hashes.
at::Tensor gather_hashes(const std::vector<Replicated>& tensors, const RankContext& rank) {
  Communicator& group = rank.group("dp-cp");
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

}  // namespace

void check_replicas(const std::vector<Parameter*>& parameters, const Optimizer& optimizer,
                    const RankContext& rank, int64_t iteration) {
  const std::vector<Replicated> tensors = replicated_tensors(parameters, optimizer);
  const at::Tensor hashes = gather_hashes(tensors, rank);
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

}  // namespace sevenfold
