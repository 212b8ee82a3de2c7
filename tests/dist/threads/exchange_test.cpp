#include "sevenfold/dist/threads/exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "dist/threads/raw_ranks.h"
#include "sevenfold/core/error.h"
#include "sevenfold/dist/aborted.h"

namespace sevenfold::threads {
namespace {

using namespace raw;
using testing::AllOf;
using testing::HasSubstr;

// What the run throws, as text; empty if it does not.
template <typename E>
std::string failure_of(int64_t num_ranks, const std::function<void(Member&)>& body,
                       std::chrono::milliseconds timeout = kPatience) {
  try {
    run(num_ranks, body, timeout);
  } catch (const E& error) {
    return error.what();
  }
  return "";
}

// Memory that becomes unusable when its last owner lets go, so that a reader who comes too late is
// seen.
Floats poisoned_floats(std::vector<float> values) {
  return Floats(new std::vector<float>(std::move(values)), [](std::vector<float>* memory) {
    for (float& value : *memory) value = std::numeric_limits<float>::quiet_NaN();
    delete memory;
  });
}

TEST(Exchange, FinishesForTheOthersWhenAMemberDropsItsPart) {
  for (int turn = 0; turn < 50; ++turn) {
    run(3, [](Member& member) {
      if (member.rank() == 1) {
        all_reduce(member, poisoned_floats(std::vector<float>(50'000, 2.f)));  // dropped at once
      } else {
        const Floats values = floats(std::vector<float>(50'000, 1.f));
        all_reduce(member, values).wait();
        EXPECT_EQ(*values, std::vector<float>(50'000, 4.f));
      }
      barrier(member);
    });
  }
}

TEST(Exchange, ReleasesAMembersMemoryWhenItLeaves) {
  run(2, [](Member& member) {
    std::weak_ptr<std::vector<float>> memory;
    {
      const Floats values = floats({1.f});
      memory = values;
      all_reduce(member, values).wait();
    }
    EXPECT_TRUE(memory.expired());  // whatever the other member is doing
  });
}

TEST(Exchange, NamesBothMembersOfAMismatch) {
  const auto sizes_differ = failure_of<InternalError>(2, [](Member& member) {
    all_reduce(member, floats(std::vector<float>(member.rank() == 0 ? 4 : 5))).wait();
  });
  EXPECT_THAT(sizes_differ,
              AllOf(HasSubstr("rank 0 called all_reduce of 16 bytes"),
                    HasSubstr("rank 1 called all_reduce of 20 bytes"), HasSubstr("group world")));
  const auto operations_differ = failure_of<InternalError>(2, [](Member& member) {
    const Floats values = floats({1, 2});
    (member.rank() == 0 ? all_reduce(member, values) : broadcast(member, values, 1)).wait();
  });
  EXPECT_THAT(operations_differ, AllOf(HasSubstr("rank 0 called all_reduce of 8 bytes"),
                                       HasSubstr("rank 1 called broadcast of 8 bytes")));
  const auto splits_differ = failure_of<InternalError>(2, [](Member& member) {
    const int64_t own = member.rank();
    all_to_all(member, floats({0, 0}), floats({0, 0}), {1, 1}, {own == 0 ? 0 : 1, own == 0 ? 2 : 1})
        .wait();
  });
  EXPECT_THAT(splits_differ, HasSubstr("rank 0 sends 0 bytes to rank 0, which expects 4"));
  const auto messages_differ = failure_of<InternalError>(2, [](Member& member) {
    if (member.rank() == 0) member.exchange({message(1, floats({1, 2}))}, {}).wait();
    if (member.rank() == 1) member.exchange({}, {message(0, floats({1}))}).wait();
  });
  EXPECT_THAT(messages_differ, AllOf(HasSubstr("rank 0 called exchange of 8 bytes"),
                                     HasSubstr("rank 1 called exchange of 4 bytes")));
}

TEST(Exchange, TimeoutShowsWhatEveryRankWasIn) {
  std::atomic<bool> has_given_up{false};
  const auto text = failure_of<CommError>(
      3,
      [&](Member& member) {
        barrier(member);
        if (member.rank() == 2) {
          while (!has_given_up) std::this_thread::yield();
          return;
        }
        try {
          all_reduce(member, floats({1, 2, 3})).wait();
        } catch (const CommError&) {
          has_given_up = true;
          throw;
        }
      },
      std::chrono::milliseconds(300));
  EXPECT_THAT(text, AllOf(HasSubstr("all_reduce 1 of group world (12 bytes): 300 ms have passed"),
                          HasSubstr("missing ranks: 2"), HasSubstr("waiting"),
                          HasSubstr("computing"), HasSubstr("barrier")));
}

TEST(Exchange, SaysAtOnceThatAMissingRankHasFinished) {
  const auto text = failure_of<CommError>(2, [](Member& member) {
    if (member.rank() == 0) barrier(member);
  });
  EXPECT_THAT(text, AllOf(HasSubstr("a missing rank has already finished its work"),
                          HasSubstr("missing ranks: 1")));
}

TEST(Exchange, NeverFreesUnderAReaderWhenARankFails) {
  for (int turn = 0; turn < 50; ++turn) {
    const auto text = failure_of<std::runtime_error>(4, [&](Member& member) {
      const Floats values = poisoned_floats(std::vector<float>(100'000, 1.f));
      Pending pending = all_reduce(member, values);
      if (member.rank() == turn % 4) throw std::runtime_error("planted");
      try {
        pending.wait();
        EXPECT_EQ(*values, std::vector<float>(100'000, 4.f));
      } catch (const Aborted&) {
        throw;  // allowed: the failure came before the copying was done
      }
      barrier(member);  // cannot succeed
      ADD_FAILURE() << "a barrier without the failed rank";
    });
    EXPECT_EQ(text, "planted");
  }
}

TEST(Exchange, RefusesToStartAfterAFailure) {
  std::atomic<int> num_refused{0};
  failure_of<std::runtime_error>(2, [&](Member& member) {
    if (member.rank() == 0) throw std::runtime_error("planted");
    while (!member.group().team().is_aborted()) std::this_thread::yield();
    try {
      barrier(member);
    } catch (const Aborted&) {
      ++num_refused;
      throw;
    }
  });
  EXPECT_EQ(num_refused, 1);
}

}  // namespace
}  // namespace sevenfold::threads
