#include "sevenfold/core/error.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <string>

namespace sevenfold {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

template <typename Body>
std::string message_of(Body body) {
  try {
    body();
  } catch (const InternalError& error) {
    return error.what();
  }
  return "";
}

TEST(Raise, FormatsTheMessageAndKeepsTheType) {
  try {
    raise<DataError>("dataset: {} holds {} tokens", "a.bin", 7);
    FAIL() << "nothing was thrown";
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(), "dataset: a.bin holds 7 tokens");
  }
}

TEST(Raise, EveryTypeIsAnError) {
  EXPECT_THROW(raise<ConfigError>("x"), Error);
  EXPECT_THROW(raise<CommError>("x"), Error);
  EXPECT_THROW(raise<InternalError>("x"), Error);
}

TEST(Check, SaysNothingWhenTheConditionHolds) {
  EXPECT_NO_THROW(SEVENFOLD_CHECK(1 + 1 == 2));
  EXPECT_NO_THROW(SEVENFOLD_CHECK_EQ(int64_t{4}, 2 + 2));
}

TEST(Check, ShowsPlaceConditionAndDetail) {
  const int rank = 3;
  const std::string text = message_of([&] { SEVENFOLD_CHECK(rank < 2, "rank {} of {}", rank, 2); });
  EXPECT_THAT(text, AllOf(HasSubstr("error_test.cpp:"), HasSubstr("rank < 2 does not hold"),
                          HasSubstr("rank 3 of 2")));
}

TEST(Check, WorksWithoutDetail) {
  const std::string text = message_of([] { SEVENFOLD_CHECK(1 > 2); });
  EXPECT_THAT(text, AllOf(HasSubstr("1 > 2 does not hold"), Not(HasSubstr("hold:"))));
}

TEST(Check, EqualityShowsBothValues) {
  const int64_t bytes = 12;
  const std::string text = message_of([&] { SEVENFOLD_CHECK_EQ(bytes, int64_t{16}); });
  EXPECT_THAT(text, AllOf(HasSubstr("bytes == int64_t{16}"), HasSubstr("12 against 16")));
}

TEST(Check, EvaluatesItsArgumentsOnce) {
  int calls = 0;
  const auto next = [&] { return ++calls; };
  SEVENFOLD_CHECK_EQ(next(), 1);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace sevenfold
