#include "sevenfold/dist/threads/group.h"

#include <gtest/gtest.h>

#include <list>
#include <random>

#include "dist/threads/raw_ranks.h"

namespace sevenfold::threads {
namespace {

using namespace raw;

// A value that differs by call, team rank and place, and whose sums depend on the order of
// addition.
float value_at(int64_t call, int64_t rank, int64_t index) {
  const auto hash = static_cast<uint32_t>(call * 7919 + rank * 104729 + index * 31 + 17);
  return static_cast<float>(hash * 2654435761u) * (rank % 2 == 0 ? 1e-3f : 1e-7f);
}

std::vector<float> values_of(int64_t call, int64_t rank, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) values[i] = value_at(call, rank, i);
  return values;
}

std::vector<float> sum_in_rank_order(int64_t call, const std::vector<int64_t>& ranks,
                                     int64_t count) {
  std::vector<float> sums = values_of(call, ranks[0], count);
  for (size_t member = 1; member < ranks.size(); ++member) {
    for (int64_t i = 0; i < count; ++i) sums[i] += value_at(call, ranks[member], i);
  }
  return sums;
}

std::vector<float> part(const std::vector<float>& values, int64_t begin, int64_t count) {
  return {values.begin() + begin, values.begin() + begin + count};
}

TEST(AllReduce, GivesEveryMemberTheBitsOfAPlainLoop) {
  for (int64_t num_ranks : {1, 2, 3, 4, 8}) {
    for (int64_t count : {0, 1, 5, 1000, 100'003}) {
      run(num_ranks, [&](Member& member) {
        const Floats values = floats(values_of(0, member.rank(), count));
        all_reduce(member, values).wait();
        EXPECT_EQ(*values, sum_in_rank_order(0, ranks_below(num_ranks), count));
      });
    }
  }
}

TEST(AllReduce, TakesTheMaximum) {
  run(4, [&](Member& member) {
    const auto rank = static_cast<float>(member.rank());
    const Floats values = floats({rank, -rank, 7});
    all_reduce(member, values, Operation::kAllReduceMax).wait();
    EXPECT_EQ(*values, (std::vector<float>{3, 0, 7}));
  });
}

TEST(ReduceScatterAndAllGather, TakeUnevenAndEmptyShards) {
  const std::vector<int64_t> sizes{20'000, 0, 3, 0, 40'001};
  run(5, [&](Member& member) {
    const int64_t rank = member.rank();
    const int64_t begin = std::accumulate(sizes.begin(), sizes.begin() + rank, int64_t{0});
    const auto expected = sum_in_rank_order(1, ranks_below(5), 60'004);
    const Floats shard = floats(std::vector<float>(static_cast<size_t>(sizes[rank])));
    reduce_scatter(member, shard, floats(values_of(1, rank, 60'004)), sizes).wait();
    EXPECT_EQ(*shard, part(expected, begin, sizes[rank]));
    const Floats whole = floats(std::vector<float>(60'004));
    all_gather(member, whole, shard, sizes).wait();
    EXPECT_EQ(*whole, expected);
  });
}

TEST(AllToAll, TakesSplitsThatDifferByMember) {
  const auto elements = [](int64_t from, int64_t to) {
    return from * to == 2 ? 0 : from * 100 + to;
  };
  run(4, [&](Member& member) {
    const int64_t rank = member.rank();
    std::vector<int64_t> sent, received;
    std::vector<float> input, expected;
    for (int64_t peer = 0; peer < 4; ++peer) {
      sent.push_back(elements(rank, peer));
      received.push_back(elements(peer, rank));
      for (float value : values_of(rank * 4 + peer, 0, sent.back())) input.push_back(value);
      for (float value : values_of(peer * 4 + rank, 0, received.back())) expected.push_back(value);
    }
    const Floats output = floats(std::vector<float>(expected.size()));
    all_to_all(member, output, floats(input), received, sent).wait();
    EXPECT_EQ(*output, expected);
  });
}

TEST(Broadcast, CopiesTheRoot) {
  for (int64_t root : {0, 2}) {
    run(3, [&](Member& member) {
      const Floats values = floats(values_of(5, member.rank(), 30'000));
      broadcast(member, values, root).wait();
      EXPECT_EQ(*values, values_of(5, root, 30'000));
    });
  }
}

TEST(PointToPoint, RingsCannotDeadlock) {
  run(5, [](Member& member) {
    const int64_t next = (member.rank() + 1) % 5, previous = (member.rank() + 4) % 5;
    Floats held = floats(values_of(0, member.rank(), 20'000));
    for (int64_t step = 1; step < 5; ++step) {
      const Floats arriving = floats(std::vector<float>(20'000));
      member.exchange({message(next, held)}, {message(previous, arriving)}).wait();
      held = arriving;
      EXPECT_EQ(*held, values_of(0, (member.rank() + 5 - step) % 5, 20'000));
    }
  });
}

TEST(PointToPoint, MatchesInCallOrderWithoutTheRestOfTheGroup) {
  run(3, [](Member& member) {
    if (member.rank() == 2) return;
    if (member.rank() == 0) {
      Pending first = member.exchange({message(1, floats({1, 2}))}, {});
      Pending second = member.exchange({message(1, floats({3}))}, {});
      second.wait();
      first.wait();
    } else {
      const Floats first = floats({0, 0}), second = floats({0});
      member.exchange({}, {message(0, first), message(0, second)}).wait();
      EXPECT_EQ(*first, (std::vector<float>{1, 2}));
      EXPECT_EQ(*second, (std::vector<float>{3}));
    }
  });
}

TEST(PointToPoint, DeliversToTheSenderItself) {
  run(1, [](Member& member) {
    const Floats arriving = floats({0});
    member.exchange({message(0, floats({4}))}, {message(0, arriving)}).wait();
    EXPECT_EQ(*arriving, std::vector<float>{4});
  });
}

TEST(Group, OneWaitingRankFinishesAnExchangeForAll) {
  std::atomic<bool> is_done{false};
  run(2, [&](Member& member) {
    const Floats values = floats(values_of(0, member.rank(), 200'000));
    Pending pending = all_reduce(member, values);
    if (member.rank() == 0) {
      pending.wait();
      is_done = true;
    } else {
      while (!is_done) std::this_thread::yield();  // computes: takes no part in the copying
      EXPECT_EQ(*values, sum_in_rank_order(0, {0, 1}, 200'000));
      pending.wait();
    }
  });
}

TEST(Group, FinishesWithManyMoreRanksThanCores) {
  run(16, [](Member& member) {
    const Floats sum = floats({0});
    for (int turn = 0; turn < 200; ++turn) {
      (*sum)[0] = 1;
      all_reduce(member, sum).wait();
      ASSERT_EQ((*sum)[0], 16);
      barrier(member);
    }
  });
}

// One call of a random program, the same on all ranks.
struct Call {
  size_t group = 0;
  Operation operation = Operation::kBarrier;
  int64_t root = 0;
  std::vector<int64_t> sizes;  // per member; the first one where all have the same
};

struct Started {
  Pending pending;
  Floats result;
  std::vector<float> expected;
};

class RandomProgram {
 public:
  RandomProgram(int64_t num_ranks, uint32_t seed) : random_(seed) {
    groups_.push_back(ranks_below(num_ranks));
    for (int i = 0; i < 4; ++i) {
      std::vector<int64_t> ranks;
      for (int64_t rank = 0; rank < num_ranks; ++rank) {
        if (random_() % 2) ranks.push_back(rank);
      }
      if (!ranks.empty()) groups_.push_back(ranks);
    }
    for (int i = 0; i < 40; ++i) calls_.push_back(random_call());
  }

  const std::vector<std::vector<int64_t>>& groups() const { return groups_; }
  const std::vector<Call>& calls() const { return calls_; }

  // Starts call number `index` as `member`; its result is known in advance.
  Started start(int64_t index, Member& member) const {
    const Call& call = calls_[index];
    const std::vector<int64_t>& ranks = groups_[call.group];
    const int64_t own = ranks[member.rank()], size = static_cast<int64_t>(ranks.size());
    const int64_t count = call.sizes[0], own_size = call.sizes[member.rank()];
    const int64_t total = std::accumulate(call.sizes.begin(), call.sizes.end(), int64_t{0});
    const int64_t begin =
        std::accumulate(call.sizes.begin(), call.sizes.begin() + member.rank(), int64_t{0});
    Started started;
    switch (call.operation) {
      case Operation::kAllReduce:
        started.result = floats(values_of(index, own, count));
        started.expected = sum_in_rank_order(index, ranks, count);
        started.pending = all_reduce(member, started.result);
        return started;
      case Operation::kReduceScatter:
        started.result = floats(std::vector<float>(static_cast<size_t>(own_size)));
        started.expected = part(sum_in_rank_order(index, ranks, total), begin, own_size);
        started.pending = reduce_scatter(member, started.result,
                                         floats(values_of(index, own, total)), call.sizes);
        return started;
      case Operation::kAllGather:
        started.result = floats(std::vector<float>(static_cast<size_t>(total)));
        for (int64_t from = 0; from < size; ++from) {
          for (float value : values_of(index, ranks[from], call.sizes[from])) {
            started.expected.push_back(value);
          }
        }
        started.pending =
            all_gather(member, started.result, floats(values_of(index, own, own_size)), call.sizes);
        return started;
      case Operation::kBroadcast:
        started.result = floats(values_of(index, own, count));
        started.expected = values_of(index, ranks[call.root], count);
        started.pending = broadcast(member, started.result, call.root);
        return started;
      default: {  // a ring shift
        const int64_t next = (member.rank() + 1) % size;
        const int64_t previous = (member.rank() + size - 1) % size;
        started.result = floats(std::vector<float>(static_cast<size_t>(count)));
        started.expected = values_of(index, ranks[previous], count);
        started.pending = member.exchange({message(next, floats(values_of(index, own, count)))},
                                          {message(previous, started.result)});
        return started;
      }
    }
  }

 private:
  Call random_call() {
    static constexpr Operation kOperations[] = {Operation::kAllReduce, Operation::kReduceScatter,
                                                Operation::kAllGather, Operation::kBroadcast,
                                                Operation::kExchange};
    Call call;
    call.group = random_() % groups_.size();
    call.operation = kOperations[random_() % std::size(kOperations)];
    const size_t size = groups_[call.group].size();
    call.root = static_cast<int64_t>(random_() % size);
    for (size_t member = 0; member < size; ++member) {
      call.sizes.push_back(random_() % 4 == 0 ? 0 : static_cast<int64_t>(random_() % 20'000));
    }
    return call;
  }

  std::mt19937 random_;
  std::vector<std::vector<int64_t>> groups_;
  std::vector<Call> calls_;
};

void run_program(const RandomProgram& program, int64_t num_ranks, uint32_t seed) {
  Team team(num_ranks, kPatience, kPatience);
  std::list<Group> groups;
  for (const auto& ranks : program.groups()) groups.emplace_back(team, "group", ranks);
  team.run([&](int64_t rank) {
    std::mt19937 random(seed + static_cast<uint32_t>(rank));
    std::vector<std::unique_ptr<Member>> members;
    auto group = groups.begin();
    for (const auto& ranks : program.groups()) {
      const auto found = std::find(ranks.begin(), ranks.end(), rank);
      members.push_back(
          found == ranks.end() ? nullptr : std::make_unique<Member>(*group, found - ranks.begin()));
      ++group;
    }
    std::vector<Started> open;
    const auto wait_for_one = [&] {
      std::swap(open[random() % open.size()], open.back());
      open.back().pending.wait();
      ASSERT_EQ(*open.back().result, open.back().expected);
      open.pop_back();
    };
    for (size_t index = 0; index < program.calls().size(); ++index) {
      Member* member = members[program.calls()[index].group].get();
      if (!member) continue;
      open.push_back(program.start(static_cast<int64_t>(index), *member));
      while (!open.empty() && random() % 3 == 0) wait_for_one();
    }
    while (!open.empty()) wait_for_one();
  });
}

TEST(Group, RunsRandomProgramsOnOverlappingGroupsWithWaitsInAnyOrder) {
  for (int64_t num_ranks = 2; num_ranks <= 8; ++num_ranks) {
    for (uint32_t seed = 0; seed < 2; ++seed) {
      run_program(RandomProgram(num_ranks, seed), num_ranks, seed);
    }
  }
}

}  // namespace
}  // namespace sevenfold::threads
