#include "sevenfold/core/faults.h"

#include <gmock/gmock.h>

#include <set>
#include <string>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Faults, AreListedInTheOrderOfTheEnumerationWithDistinctNames) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < all_faults().size(); ++i) {
    const FaultInfo& info = all_faults()[i];
    EXPECT_EQ(static_cast<size_t>(info.fault), i) << info.name;
    EXPECT_FALSE(info.meaning.empty()) << info.name;
    names.insert(info.name);
  }
  EXPECT_EQ(names.size(), all_faults().size());
}

TEST(Faults, EmptyTextSwitchesNothingOn) {
  EXPECT_FALSE(FaultSet::parse("").any());
  EXPECT_FALSE(FaultSet::parse(",").any());
  EXPECT_EQ(FaultSet().to_string(), "");
}

TEST(Faults, UnknownNameIsRefusedWithTheKnownOnes) {
  try {
    FaultSet::parse("dp-sum-twice,no-such-fault");
    FAIL() << "nothing was thrown";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("no-such-fault"), HasSubstr("dp-sum-missing"),
                                    HasSubstr("replica-not-updated")));
  }
}

#ifdef SEVENFOLD_FAULTS
TEST(Faults, EveryNameSwitchesOnItsOwnFaultOnly) {
  for (const FaultInfo& chosen : all_faults()) {
    const FaultSet set = FaultSet::parse(chosen.name);
    EXPECT_TRUE(set.any());
    EXPECT_EQ(set.to_string(), chosen.name);
    for (const FaultInfo& other : all_faults())
      EXPECT_EQ(set.has(other.fault), other.fault == chosen.fault)
          << chosen.name << " " << other.name;
  }
}

TEST(Faults, SeveralNamesAreReadInAnyOrder) {
  const FaultSet set = FaultSet::parse("norm-local,dp-sum-twice");
  EXPECT_TRUE(set.has(Fault::kNormOfLocalGradient));
  EXPECT_TRUE(set.has(Fault::kDataParallelSumTwice));
  EXPECT_FALSE(set.has(Fault::kDataParallelSumMissing));
  EXPECT_EQ(set.to_string(), "dp-sum-twice,norm-local");
}
#else
TEST(Faults, BuildWithoutThemRefusesEveryName) {
  EXPECT_THROW(FaultSet::parse("dp-sum-twice"), ConfigError);
}
#endif

}  // namespace
}  // namespace sevenfold
