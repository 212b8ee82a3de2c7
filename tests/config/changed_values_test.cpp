#include "sevenfold/config/changed_values.h"

#include <gtest/gtest.h>

#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

std::string text_of(const std::vector<ChangedValue>& changes) {
  std::string text;
  for (const ChangedValue& change : changes)
    text += change.key + ": " + change.before + " -> " + change.now + "; ";
  return text;
}

TEST(ChangedValues, AreThoseOfTheModuleAndTheTop) {
  const std::string before =
      "exp_name: a\nsevenfold: {ranks: 2}\n"
      "modules: {pre_trainer: {lr: 0.1, seed: 1, split: [1, 2], save: x, parallelism: {tp: 1}}}";
  const std::string now =
      "exp_name: b\nsevenfold: {ranks: 4}\n"
      "modules: {pre_trainer: {lr: 0.2, seed: 1, split: [1, 3], save: y, parallelism: {tp: 2}, "
      "more: z}}";
  EXPECT_EQ(text_of(changed_values(before, before)), "");
  EXPECT_EQ(text_of(changed_values(before, now)),
            "lr: 0.1 -> 0.2; more: null -> \"z\"; parallelism.tp: 1 -> 2; sevenfold.ranks: 2 -> 4; "
            "split: [1,2] -> [1,3]; ");
  EXPECT_EQ(text_of(changed_values(now, before)).substr(0, 15), "lr: 0.2 -> 0.1;");
}

TEST(ChangedValues, NeedYaml) {
  EXPECT_THROW(changed_values("a: [", "a: 1"), ConfigError);
}

}  // namespace
}  // namespace sevenfold
