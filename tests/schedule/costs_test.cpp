#include "sevenfold/schedule/costs.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "sevenfold/core/error.h"
#include "sevenfold/schedule/algorithms.h"
#include "sevenfold/schedule/simulate.h"

namespace sevenfold {
namespace {

using testing::HasSubstr;

std::string error_of(const ScheduleCosts& costs) {
  try {
    check_costs(costs);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "none";
}

TEST(CheckCosts, TakesNoNumbersThatMeanNothing) {
  const double infinite = std::numeric_limits<double>::infinity();
  for (const double value : {-1.0, -infinite, infinite, std::nan("")})
    for (double PassCosts::*cost : {&PassCosts::forward, &PassCosts::backward_input,
                                    &PassCosts::backward_weight, &PassCosts::activation}) {
      ScheduleCosts costs;
      costs.share.*cost = value;
      EXPECT_THAT(error_of(costs), HasSubstr("is not a cost; use a number of at least 0"));
      costs = {};
      costs.stages.resize(2);
      costs.stages[1].*cost = value;
      EXPECT_THAT(error_of(costs), HasSubstr("is not a cost"));
    }
  ScheduleCosts costs;
  costs.link = 1e308;
  EXPECT_EQ(error_of(costs),
            "schedule: link time 1e+308 is too large to add up; use at most 1e+100, in a larger "
            "unit");
  costs = {};
  costs.weight_memory = 1.5;
  EXPECT_THAT(error_of(costs), HasSubstr("1.5 is more than the whole activation"));
  costs = {};
  costs.share = {0, 0, 0, 1};
  EXPECT_THAT(error_of(costs), HasSubstr("all take no time"));
  EXPECT_EQ(error_of({}), "none");
}

TEST(CheckCosts, LeavesSumsThatAreNumbers) {
  ScheduleRequest request;
  request.num_ranks = 64;
  request.num_microbatches = 512;
  request.costs.share = {1e100, 1e100, 1e100, 1};
  request.costs.link = 1e100;
  const Simulation result = simulate(generate("1f1b", request), request.costs);
  EXPECT_TRUE(std::isfinite(result.makespan));
  EXPECT_GT(result.bubble_rate(), 0);
  EXPECT_LT(result.bubble_rate(), 1);
}

TEST(InOwnUnit, ScalesTimesByAPowerOfTwoUntilTheLongestIsFrom1To2) {
  ScheduleCosts costs;
  costs.share = {3, 10, 0, 0.5};
  costs.link = 1;
  costs = in_own_unit(costs);
  EXPECT_EQ(costs.share.forward, 3.0 / 8);
  EXPECT_EQ(costs.share.backward_input, 10.0 / 8);
  EXPECT_EQ(costs.share.backward_weight, 0);
  EXPECT_EQ(costs.share.activation, 0.5);
  EXPECT_EQ(costs.link, 1.0 / 8);
  costs.stages = {{1e-9, 1e-9, 1e-9, 1}, {1e-12, 1e-12, 1e-12, 1}};
  costs.link = 0;
  EXPECT_THAT(in_own_unit(costs).stages[0].forward, testing::AllOf(testing::Ge(1), testing::Lt(2)));
}

// Seconds, microseconds or years.
TEST(Searches, FindTheSameInAnyUnitOfTime) {
  for (const char* algorithm :
       {"zero-bubble-heuristic", "zbv-heuristic", "v-half", "v-adaptive", "1f1b-v"}) {
    ScheduleRequest request;
    request.num_ranks = 4;
    request.num_microbatches = 6;
    request.costs.share = {18, 20, 14, 1};
    request.costs.link = 1;
    const double makespan = simulate(generate(algorithm, request), request.costs).makespan;
    for (const int exponent : {-60, 90}) {
      ScheduleRequest other = request;
      for (double* time : {&other.costs.share.forward, &other.costs.share.backward_input,
                           &other.costs.share.backward_weight, &other.costs.link})
        *time = std::ldexp(*time, exponent);
      EXPECT_EQ(simulate(generate(algorithm, other), other.costs).makespan,
                std::ldexp(makespan, exponent))
          << algorithm << " 2^" << exponent;
    }
  }
}

TEST(Generate, SaysWhenATableWouldBeTooLarge) {
  ScheduleRequest request;
  request.num_ranks = 4096;
  request.num_microbatches = 65536;
  for (const char* algorithm : {"1f1b", "auto"}) try {
      generate(algorithm, request);
      ADD_FAILURE() << algorithm;
    } catch (const ConfigError& error) {
      EXPECT_STREQ(error.what(),
                   "schedule: 4096 stages x 65536 micro batches x 1 chunk are 268435456 forwards, "
                   "more than the 2500000 that a table holds; use fewer of them");
    }
}

}  // namespace
}  // namespace sevenfold
