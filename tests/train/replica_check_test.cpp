#include "sevenfold/train/replica_check.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "sevenfold/core/error.h"
#include "sevenfold/dist/threads/cluster.h"

namespace sevenfold {
namespace {

std::unique_ptr<Parameter> parameter_named(const std::string& name) {
  auto parameter = std::make_unique<Parameter>(name, ParameterKind::kMatrix, replicated_spec({4}));
  return parameter;
}

// Three ranks with two parameters under AdamW; `disturb` changes what rank 2 holds.
std::string message_after(
    const std::function<void(const Parameter& second, const Optimizer&)>& disturb,
    MomentType moments = MomentType::kFull) {
  std::string message;
  try {
    run_ranks(Mesh(MeshShape{.dp = 3}), {}, [&](RankContext& rank) {
      const auto first = parameter_named("first"), second = parameter_named("second");
      const std::vector<Parameter*> parameters = {first.get(), second.get()};
      std::vector<Bucket> buckets = build_buckets({parameters}, rank, at::kFloat, 1);
      LayerWeights weights(buckets, rank);
      for (const Parameter* parameter : parameters) {
        parameter->weight().fill_(1.0);
        parameter->gradient().fill_(1.0);
      }
      const auto optimizer = make_optimizer(
          {.kind = OptimizerKind::kAdamW, .exp_avg_type = moments, .exp_avg_sq_type = moments},
          parameters);
      optimizer->step({.lr = 0.1});
      if (rank.rank == 2) disturb(*second, *optimizer);
      check_replicas(parameters, weights, *optimizer, /*is_sharded=*/false, rank, 7);
    });
  } catch (const Error& error) {
    message = error.what();
  }
  return message;
}

TEST(CheckReplicas, IsContentWithEqualBits) {
  EXPECT_EQ(message_after([](const Parameter&, const Optimizer&) {}), "");
}

TEST(CheckReplicas, NamesIterationParameterPartAndRanks) {
  const std::string message = message_after([](const Parameter& second, const Optimizer&) {
    second.weight()[3] = std::nextafter(second.weight()[3].item<float>(), 2.0f);
  });
  EXPECT_THAT(message, ::testing::HasSubstr(
                           "iteration 7: replicas differ: the weight of second on rank 2 is not "
                           "the same bits as on rank 0"));
}

TEST(CheckReplicas, ComparesOptimizerStates) {
  const std::string message =
      message_after([](const Parameter& second, const Optimizer& optimizer) {
        optimizer.states(second)[1].tensor[0] = 1.0;
      });
  EXPECT_THAT(message, ::testing::HasSubstr("the exp_avg_sq of second on rank 2"));
}

// The same fp16 bits in another unit are other values.
TEST(CheckReplicas, ComparesUnitsOfFp16States) {
  EXPECT_EQ(message_after([](const Parameter&, const Optimizer&) {}, MomentType::kFp16), "");
  const std::string message =
      message_after([](const Parameter& second,
                       const Optimizer& optimizer) { *optimizer.states(second)[0].unit *= 2.0F; },
                    MomentType::kFp16);
  EXPECT_THAT(message, ::testing::HasSubstr("the exp_avg of second on rank 2"));
}

}  // namespace
}  // namespace sevenfold
