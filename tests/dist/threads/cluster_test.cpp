#include "sevenfold/dist/threads/cluster.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sevenfold/core/error.h"
#include "sevenfold/dist/aborted.h"

namespace sevenfold {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(RunRanks, GivesEveryRankItsContextAndGroups) {
  const Mesh mesh(MeshShape{.tp = 2, .dp = 2, .pp = 2});
  std::vector<int> runs(8);
  run_ranks(mesh, {.faults = FaultSet().enable(Fault::kStartPerRank)}, [&](RankContext& context) {
    ++runs[context.rank];
    EXPECT_EQ(context.coordinates, mesh.coordinates(context.rank));
    EXPECT_EQ(context.group("world").size(), 8);
    EXPECT_EQ(context.group("world").rank(), context.rank);
    EXPECT_EQ(context.group("tp").size(), 2);
    EXPECT_EQ(context.group("cp").size(), 1);
    EXPECT_EQ(context.group("dp").rank(), context.coordinates[static_cast<size_t>(Axis::kDp)]);
    EXPECT_EQ(context.group("dp-cp").name(), "dp-cp");
    EXPECT_TRUE(context.faults.any());
    EXPECT_EQ(at::get_num_threads(), 1);
  });
  EXPECT_EQ(runs, std::vector<int>(8, 1));
}

TEST(RunRanks, SumsOverEachAxisAlone) {
  run_ranks(Mesh(MeshShape{.tp = 2, .dp = 3}), {}, [](RankContext& context) {
    at::Tensor over_tp = at::full({5}, static_cast<double>(context.rank), at::kDouble);
    at::Tensor over_dp = over_tp.clone();
    Work first = context.group("dp").all_reduce(over_dp);
    context.group("tp").all_reduce(over_tp).wait();
    first.wait();
    const auto tp = static_cast<double>(context.coordinates[static_cast<size_t>(Axis::kTp)]);
    const auto dp = static_cast<double>(context.coordinates[static_cast<size_t>(Axis::kDp)]);
    EXPECT_EQ(over_tp[0].item<double>(), 4 * dp + 1);
    EXPECT_EQ(over_dp[4].item<double>(), 6 + 3 * tp);
  });
}

TEST(RunRanks, RethrowsTheFirstFailureOnce) {
  try {
    run_ranks(Mesh(MeshShape{.dp = 4}), {}, [](RankContext& context) {
      if (context.rank == 2) throw DataError("data: train.bin ends early");
      at::Tensor tensor = at::ones({100'000});
      context.group("dp").all_reduce(tensor).wait();
      ADD_FAILURE() << "a sum without rank 2";
    });
    ADD_FAILURE() << "the failure was lost";
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(), "data: train.bin ends early");
  }
}

TEST(RunRanks, ReportsBugsAndErrorsOfLibTorchWithTheirRank) {
  const auto run = [](const std::function<void()>& body_of_rank_1) {
    run_ranks(Mesh(MeshShape{.dp = 2}), {}, [&](RankContext& context) {
      if (context.rank == 1) body_of_rank_1();
      context.group("dp").barrier();
    });
  };
  try {
    run([] { at::ones({2, 3}).matmul(at::ones({2, 3})); });
    ADD_FAILURE();
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 1: LibTorch: "));
    EXPECT_THAT(error.what(), Not(HasSubstr("frame #"))) << "a stack trace is not for users";
  }
  try {
    run([] { throw std::bad_alloc(); });
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 1: out of memory"));
  }
  try {
    run([] { SEVENFOLD_CHECK_EQ(2 + 2, 5); });
    ADD_FAILURE();
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 1: "));
  }
}

TEST(RunRanks, MayBeCalledAgainAfterAFailure) {
  EXPECT_THROW(
      run_ranks(Mesh(MeshShape{.dp = 2}), {}, [](RankContext&) { throw InternalError("planted"); }),
      InternalError);
  run_ranks(Mesh(MeshShape{.dp = 2}), {}, [](RankContext& context) {
    EXPECT_EQ(context.memory.live_total(), 0);
    context.group("dp").barrier();
  });
}

TEST(RankContext, NamesTheGroupsItHas) {
  try {
    run_ranks(Mesh(MeshShape{}), {}, [](RankContext& context) { context.group("pd"); });
    ADD_FAILURE();
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 0 has no group \"pd\"; it has: "));
    EXPECT_THAT(error.what(), HasSubstr("world"));
  }
}

}  // namespace
}  // namespace sevenfold
