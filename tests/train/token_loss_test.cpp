#include "sevenfold/train/token_loss.h"

#include <gtest/gtest.h>

#include "sevenfold/dist/threads/cluster.h"

namespace sevenfold {
namespace {

// Field case B18: 92 / 10, not the mean 6.0 of the parts' means 2 and 10.
TEST(TokenLoss, WeighsTokensNotParts) {
  EXPECT_EQ((TokenLoss{92.0, 10.0}.mean()), 9.2);
}

TEST(TokenLoss, OverRanksIsTheSameFigureOnAll) {
  run_ranks(Mesh(MeshShape{.dp = 2}), {}, [](RankContext& rank) {
    const TokenLoss part = rank.rank == 0 ? TokenLoss{2.0, 1.0} : TokenLoss{90.0, 9.0};
    EXPECT_EQ(part.over(rank.group("dp-cp"), rank.group("dp")).mean(), 9.2);
  });
}

TEST(TokenLoss, WithoutTokensIsZero) {
  EXPECT_EQ(TokenLoss{}.mean(), 0.0);
}

}  // namespace
}  // namespace sevenfold
