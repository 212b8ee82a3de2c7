#include "sevenfold/dataset/text/bpe/merge_table.h"

#include <gmock/gmock.h>

#include <map>
#include <random>

namespace sevenfold {
namespace {

using ::testing::ElementsAre;
using Merges = std::map<std::pair<int32_t, int32_t>, MergeTable::Merge>;

MergeTable table_of(const Merges& merges) {
  MergeTable table(merges.size());
  for (const auto& [pair, merge] : merges) table.set(pair.first, pair.second, merge);
  return table;
}

std::vector<int32_t> merged(const MergeTable& table, std::vector<int32_t> ids) {
  PieceMerger merger;
  merger.merge(table, ids);
  return ids;
}

// By the definition: again and again the pair of the lowest rank, the leftmost of equals.
std::vector<int32_t> merged_naively(const Merges& merges, std::vector<int32_t> ids) {
  while (true) {
    size_t best = ids.size();
    MergeTable::Merge found;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto merge = merges.find({ids[i], ids[i + 1]});
      if (merge == merges.end()) continue;
      if (best != ids.size() && merge->second.rank >= found.rank) continue;
      best = i;
      found = merge->second;
    }
    if (best == ids.size()) return ids;
    ids[best] = found.id;
    ids.erase(ids.begin() + static_cast<int64_t>(best) + 1);
  }
}

TEST(PieceMerger, TakesTheLowestRankAndOfEqualsTheLeftmost) {
  const MergeTable table = table_of({{{1, 1}, {1, 2}}, {{2, 3}, {0, 4}}});
  EXPECT_THAT(merged(table, {1, 1, 1}), ElementsAre(2, 1));
  EXPECT_THAT(merged(table, {1, 1, 1, 1}), ElementsAre(2, 2));
  EXPECT_THAT(merged(table, {1, 1, 3}), ElementsAre(4));
  EXPECT_THAT(merged(table, {5}), ElementsAre(5));
  EXPECT_THAT(merged(table, {}), ElementsAre());
}

TEST(PieceMerger, AgreesWithTheDefinitionOnRandomMerges) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    Merges merges;
    int32_t next_id = 4;
    const auto any_id = [&] {
      return static_cast<int32_t>(random() % static_cast<uint32_t>(next_id));
    };
    for (int32_t rank = 0; rank < 30; ++rank) {
      const std::pair<int32_t, int32_t> pair(any_id(), any_id());
      merges[pair] = {rank, next_id++};
    }
    const MergeTable table = table_of(merges);
    std::vector<int32_t> ids(random() % 120);
    for (int32_t& id : ids) id = static_cast<int32_t>(random() % 4);
    ASSERT_EQ(merged(table, ids), merged_naively(merges, ids)) << "round " << round;
  }
}

// A piece may be as long as the text, a run of one letter for example: not quadratic.
TEST(PieceMerger, MergesAMillionTokens) {
  Merges merges;
  for (int32_t i = 0; i < 20; ++i) merges[{i, i}] = {i, i + 1};
  EXPECT_THAT(merged(table_of(merges), std::vector<int32_t>(1 << 20, 0)), ElementsAre(20));
}

TEST(MergeTable, KeepsTheLatestMergeOfAPair) {
  MergeTable table(2);
  table.set(1, 2, {0, 3});
  table.set(1, 2, {5, 4});
  EXPECT_EQ(table.find(1, 2).rank, 5);
  EXPECT_EQ(table.find(2, 1).rank, MergeTable::kNone);
}

}  // namespace
}  // namespace sevenfold
