#include "sevenfold/dist/replicas.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sevenfold/dist/threads/cluster.h"

namespace sevenfold {
namespace {

// The answer of bits_equal_over when rank r holds tensors[r]; all ranks must give the same.
bool all_say_equal(const std::vector<at::Tensor>& tensors) {
  MeshShape shape;
  shape.dp = static_cast<int64_t>(tensors.size());
  std::vector<char> answers(tensors.size());
  run_ranks(Mesh(shape), {}, [&](RankContext& context) {
    answers[context.rank] = bits_equal_over(context.group("dp"), tensors[context.rank]);
  });
  for (char answer : answers) EXPECT_EQ(answer, answers[0]);
  return answers[0] != 0;
}

TEST(Replicas, AcceptEqualBits) {
  const at::Tensor tensor = at::arange(1001, at::kFloat).mul_(0.1);
  EXPECT_TRUE(all_say_equal({tensor, tensor.clone(), tensor.clone()}));
  EXPECT_TRUE(all_say_equal({tensor}));
  EXPECT_TRUE(all_say_equal({at::empty({0}), at::empty({0})}));
  const at::Tensor nan = at::full({3}, std::nan(""));
  EXPECT_TRUE(all_say_equal({nan, nan.clone()}));
}

TEST(Replicas, CatchOneFlippedBitAnywhere) {
  const at::Tensor tensor = at::arange(101, at::kFloat).mul_(0.1);
  for (int64_t byte : {0, 1, 7, 200, 402, 403}) {
    at::Tensor flipped = tensor.clone();
    static_cast<unsigned char*>(flipped.data_ptr())[byte] ^= 1u;
    EXPECT_FALSE(all_say_equal({tensor, tensor, flipped})) << byte;
    EXPECT_FALSE(all_say_equal({flipped, tensor, tensor})) << byte;
  }
}

TEST(Replicas, CatchSwappedElementsSignedZerosAndTypes) {
  EXPECT_FALSE(all_say_equal({at::arange(16, at::kDouble), at::arange(16, at::kDouble).flip({0})}));
  EXPECT_FALSE(all_say_equal({at::zeros({4}), at::zeros({4}).neg()}));
  EXPECT_FALSE(all_say_equal({at::zeros({4}, at::kFloat), at::zeros({4}, at::kInt)}));
  EXPECT_FALSE(all_say_equal({at::zeros({4}), at::zeros({5})}));
}

}  // namespace
}  // namespace sevenfold
