#include "sevenfold/dist/threads/threads_communicator.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sevenfold/core/error.h"
#include "sevenfold/dist/threads/cluster.h"

namespace sevenfold {
namespace {

using testing::HasSubstr;

void run(int64_t num_ranks, const std::function<void(RankContext&, Communicator&)>& body) {
  run_ranks(Mesh(MeshShape{.dp = num_ranks}), {},
            [&](RankContext& context) { body(context, context.group("dp")); });
}

at::Tensor values_of(int64_t rank, int64_t count, at::ScalarType type) {
  return at::arange(count, at::kDouble).add_(17 * rank).remainder_(101).sub_(50).to(type);
}

bool same(const at::Tensor& left, const at::Tensor& right) {
  return left.scalar_type() == right.scalar_type() && at::equal(left, right);
}

class ElementTypes : public testing::TestWithParam<at::ScalarType> {};

TEST_P(ElementTypes, ReduceInRankOrder) {
  run(3, [](RankContext& context, Communicator& group) {
    const at::ScalarType wide = at::isFloatingType(GetParam()) ? at::kDouble : GetParam();
    at::Tensor sum = values_of(context.rank, 30'001, GetParam());
    at::Tensor greatest = sum.clone();
    Work summing = group.all_reduce(sum);
    group.all_reduce_max(greatest).wait();
    summing.wait();
    at::Tensor expected = values_of(0, 30'001, GetParam()).to(wide);
    at::Tensor expected_greatest = values_of(0, 30'001, GetParam());
    for (int64_t rank : {1, 2}) {
      expected += values_of(rank, 30'001, GetParam()).to(wide);
      expected_greatest = at::maximum(expected_greatest, values_of(rank, 30'001, GetParam()));
    }
    EXPECT_TRUE(same(sum, expected.to(GetParam())));
    EXPECT_TRUE(same(greatest, expected_greatest));
  });
}

TEST_P(ElementTypes, MoveUnevenShards) {
  const std::vector<int64_t> sizes{7, 0, 20'000};
  run(3, [&](RankContext& context, Communicator& group) {
    const auto pieces = values_of(5, 20'007, GetParam()).split_with_sizes(sizes);
    at::Tensor whole = at::empty({20'007}, GetParam());
    group.all_gather(whole, pieces[context.rank].contiguous(), sizes).wait();
    EXPECT_TRUE(same(whole, values_of(5, 20'007, GetParam())));
    at::Tensor shard = at::empty({sizes[context.rank]}, GetParam());
    group.reduce_scatter(shard, whole, sizes).wait();
    EXPECT_TRUE(same(shard, pieces[context.rank] * 3));
  });
}

INSTANTIATE_TEST_SUITE_P(All, ElementTypes,
                         testing::Values(at::kDouble, at::kFloat, at::kBFloat16, at::kHalf,
                                         at::kLong, at::kInt, at::kByte),
                         [](const auto& instance) { return c10::toString(instance.param); });

TEST(ThreadsCommunicator, GathersInPlace) {
  run(4, [](RankContext& context, Communicator& group) {
    at::Tensor whole = at::zeros({40});
    at::Tensor own = whole.narrow(0, context.rank * 10, 10);
    own.fill_(static_cast<double>(context.rank));
    group.all_gather(whole, own).wait();
    EXPECT_EQ(whole.sum().item<float>(), 60);
    group.reduce_scatter(own, whole).wait();
    EXPECT_EQ(own[0].item<float>(), static_cast<float>(4 * context.rank));
  });
}

TEST(ThreadsCommunicator, BooksExactlyWhatARingSends) {
  run(3, [](RankContext& context, Communicator& group) {
    const int64_t rank = context.rank;
    const auto sent = [&](const std::string& operation) {
      return context.traffic.entries().at({"dp", operation}).bytes_sent;
    };
    const std::vector<int64_t> shards{4, 3, 3};  // of 10 elements
    group.all_reduce(at::ones({10}, at::kDouble)).wait();
    EXPECT_EQ(sent("all_reduce"), 8 * (20 - shards[rank] - shards[(rank + 1) % 3]));
    group.reduce_scatter(at::ones({2}), at::ones({6})).wait();
    EXPECT_EQ(sent("reduce_scatter"), 4 * 4);
    const std::vector<int64_t> sizes{1, 0, 5};
    group.all_gather(at::ones({6}), at::ones({sizes[rank]}), sizes).wait();
    EXPECT_EQ(sent("all_gather"), 4 * (6 - sizes[(rank + 1) % 3]));
    group.all_to_all(at::ones({3}, at::kHalf), at::ones({3}, at::kHalf), {}, {}).wait();
    EXPECT_EQ(sent("all_to_all"), 2 * 2);
    group.broadcast(at::ones({5}), 1).wait();
    EXPECT_EQ(sent("broadcast"), rank == 0 ? 0 : 20);
    group.exchange({{(rank + 1) % 3, at::ones({7})}}, {{(rank + 2) % 3, at::ones({7})}}).wait();
    EXPECT_EQ(sent("exchange"), 28);
    group.barrier();
    EXPECT_EQ(sent("barrier"), 0);
    EXPECT_EQ(context.traffic.of_group("dp").operations, 7);
    EXPECT_EQ(context.traffic.total().operations, 7);
    EXPECT_GE(context.traffic.total().seconds_in_flight, context.traffic.total().seconds_blocked);
  });
}

TEST(ThreadsCommunicator, BooksNothingForAGroupOfOne) {
  run(1, [](RankContext& context, Communicator& group) {
    at::Tensor tensor = at::arange(4, at::kFloat), copy = at::zeros({4});
    group.all_reduce(tensor).wait();
    group.broadcast(tensor, 0).wait();
    group.barrier();
    group.all_gather(copy, tensor).wait();
    EXPECT_TRUE(at::equal(copy, tensor));
    group.reduce_scatter(copy.zero_(), tensor).wait();
    EXPECT_TRUE(at::equal(copy, tensor));
    group.all_to_all(copy.zero_(), tensor, {4}, {4}).wait();
    EXPECT_TRUE(at::equal(copy, tensor));
    EXPECT_EQ(context.traffic.total().operations, 0);
  });
}

TEST(ThreadsCommunicator, KeepsTensorsAliveThatTheCallerDropped) {
  for (int turn = 0; turn < 20; ++turn) {
    run(2, [](RankContext& context, Communicator& group) {
      at::Tensor kept = at::full({100'000}, 1.0);
      if (context.rank == 0) {
        group.all_reduce(kept).wait();
        EXPECT_EQ(kept.sum().item<float>(), 300'000.f);
      } else {
        Work dropped = group.all_reduce(at::full({100'000}, 2.0));
        EXPECT_TRUE(dropped.pending());
      }
      group.barrier();
    });
  }
}

TEST(ThreadsCommunicator, WaitingTwiceIsHarmless) {
  run(2, [](RankContext&, Communicator& group) {
    at::Tensor tensor = at::ones({3});
    Work work = group.all_reduce(tensor);
    work.wait();
    EXPECT_FALSE(work.pending());
    work.wait();
    EXPECT_EQ(tensor[2].item<float>(), 2);
  });
}

// What a wrong call on one rank says.
std::string complaint(const std::function<void(Communicator&)>& call) {
  try {
    run(2, [&](RankContext& context, Communicator& group) {
      if (context.rank == 0) call(group);
      group.barrier();
    });
  } catch (const InternalError& error) {
    return error.what();
  }
  return "";
}

TEST(ThreadsCommunicator, RefusesWhatItCannotMove) {
  EXPECT_THAT(complaint([](Communicator& group) {
                group.all_reduce(at::ones({4, 4}).t());
              }),
              HasSubstr("all_reduce of 64 bytes needs a contiguous CPU tensor; got strides 1,4"));
  EXPECT_THAT(complaint([](Communicator& group) { group.all_reduce(at::ones({4}, at::kBool)); }),
              HasSubstr("all_reduce does not support element type Bool"));
  EXPECT_THAT(complaint([](Communicator& group) { group.all_reduce({}); }),
              HasSubstr("undefined tensor"));
  EXPECT_THAT(
      complaint([](Communicator& group) { group.all_gather(at::ones({5}), at::ones({2})); }),
      HasSubstr("all_gather of 5 elements does not divide evenly over the 2 members of group dp"));
  EXPECT_THAT(
      complaint([](Communicator& group) { group.all_gather(at::ones({6}), at::ones({2})); }),
      HasSubstr("input of member 0 has 2 elements, its sizes say 3"));
  EXPECT_THAT(complaint([](Communicator& group) { group.broadcast(at::ones({6}), 2); }),
              HasSubstr("broadcast names member 2 of group dp, which has 2 members"));
}

}  // namespace
}  // namespace sevenfold
