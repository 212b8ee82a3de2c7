#include "sevenfold/dataset/text/ordered_workers.h"

#include <gmock/gmock.h>

#include <stdexcept>

namespace sevenfold {
namespace {

TEST(OrderedWorkers, GiveResultsInTheOrderOfTheInputs) {
  for (const int64_t num_threads : {1, 2, 7}) {
    OrderedWorkers<int, int> workers(num_threads, [](const int& x) {
      for (volatile int left = 1000 * (50 - x); left > 0;) left = left - 1;  // less work each
      return x * x;
    });
    for (int i = 0; i < 50; ++i) workers.put(i);
    EXPECT_EQ(workers.num_pending(), 50U);
    for (int i = 0; i < 50; ++i) ASSERT_EQ(workers.take(), i * i);
    EXPECT_EQ(workers.num_pending(), 0U);
  }
}

TEST(OrderedWorkers, HandOnWhatTheWorkThrewAndGoOn) {
  OrderedWorkers<int, int> workers(2, [](const int& x) {
    if (x == 1) throw std::runtime_error("one");
    return x;
  });
  for (int i = 0; i < 4; ++i) workers.put(i);
  EXPECT_EQ(workers.take(), 0);
  EXPECT_THROW(workers.take(), std::runtime_error);
  EXPECT_EQ(workers.take(), 2);
  // Leaving with a result not taken is no deadlock.
}

TEST(OrderedWorkers, GoOnWithTheThreadsThatStart) {
  for (const int limit : {0, 1, 2}) {
    int num_started = 0;
    const auto start = [&](std::function<void()> run) {
      if (num_started == limit)
        throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
      ++num_started;
      return std::thread(std::move(run));
    };
    const auto run = [&] {
      OrderedWorkers<int, int> workers(
          4, [](const int& x) { return x + 1; }, start);
      EXPECT_EQ(workers.num_threads(), limit);
      for (int i = 0; i < 9; ++i) workers.put(i);
      for (int i = 0; i < 9; ++i) ASSERT_EQ(workers.take(), i + 1);
    };
    if (limit > 0) {
      EXPECT_NO_THROW(run());
    } else {
      EXPECT_THAT(run, ::testing::ThrowsMessage<ConfigError>(
                           ::testing::HasSubstr("no thread can be started")));
    }
  }
}

}  // namespace
}  // namespace sevenfold
