#include "sevenfold/pipeline/chunk.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "pipeline/small_llama.h"
#include "sevenfold/core/error.h"
#include "sevenfold/dist/allocator.h"

namespace sevenfold {
namespace {

using testing::SmallLlama;

bool is_zero(const at::Tensor& tensor) {
  return tensor.abs().max().item<double>() == 0.0;
}

// The reduction of a layer starts while the layers below it have not run backward yet.
TEST(Chunk, StartsTheReductionOfALayerBeforeTheLayersBelowRun) {
  std::vector<bool> embedding_was_done;
  SmallLlama* running = nullptr;
  SmallLlama llama([&](const at::Tensor&) {
    embedding_was_done.push_back(!is_zero(running->part.parameters.front()->gradient()));
  });
  running = &llama;
  const Microbatch microbatch = llama.microbatch(0);
  llama.chunk->forward(microbatch, {});
  llama.chunk->backward(microbatch, {}, BackwardPart::kFull, /*gradients_complete=*/true);
  // Head, three decoder layers, embedding: one bucket each, in the order of backward.
  EXPECT_EQ(embedding_was_done, (std::vector<bool>{false, false, false, false, true}));
}

TEST(Chunk, ReducesNothingBeforeTheScheduleSaysSo) {
  int reductions = 0;
  SmallLlama llama([&](const at::Tensor&) { ++reductions; });
  const Microbatch microbatch = llama.microbatch(0);
  llama.chunk->forward(microbatch, {});
  llama.chunk->backward(microbatch, {}, BackwardPart::kFull, /*gradients_complete=*/false);
  EXPECT_EQ(reductions, 0);
}

TEST(Chunk, SplitBackwardGivesTheSameBits) {
  SmallLlama whole, split;
  const Microbatch microbatch = whole.microbatch(0);
  whole.chunk->forward(microbatch, {});
  whole.chunk->backward(microbatch, {}, BackwardPart::kFull, true);
  split.chunk->forward(microbatch, {});
  split.chunk->backward(microbatch, {}, BackwardPart::kInputOnly, false);
  EXPECT_FALSE(split.chunk->idle());
  split.chunk->backward_weights(microbatch, true);
  EXPECT_TRUE(split.chunk->idle());
  EXPECT_TRUE(at::equal(whole.all_gradients(), split.all_gradients()));
  EXPECT_FALSE(is_zero(whole.all_gradients()));
}

TEST(Chunk, AccumulatesOverMicrobatchesInAnyOrderOfBackward) {
  SmallLlama in_order, last_first;
  for (SmallLlama* llama : {&in_order, &last_first}) {
    const std::vector<Microbatch> microbatches = {llama->microbatch(0), llama->microbatch(1)};
    for (const Microbatch& microbatch : microbatches) llama->chunk->forward(microbatch, {});
    const bool reversed = llama == &last_first;
    for (const size_t at : {size_t{0}, size_t{1}})
      llama->chunk->backward(microbatches[reversed ? 1 - at : at], {}, BackwardPart::kFull,
                             at == 1);
  }
  EXPECT_TRUE(at::allclose(in_order.all_gradients(), last_first.all_gradients(), 1e-13, 1e-15));
  EXPECT_EQ(in_order.chunk->loss_sum().item<double>(), last_first.chunk->loss_sum().item<double>());
}

TEST(Chunk, RefusesASecondForwardAndABackwardWithoutOne) {
  SmallLlama llama;
  const Microbatch microbatch = llama.microbatch(0);
  EXPECT_THROW(llama.chunk->backward(microbatch, {}, BackwardPart::kFull, true), InternalError);
  llama.chunk->forward(microbatch, {});
  EXPECT_THROW(llama.chunk->forward(microbatch, {}), InternalError);
}

TEST(Chunk, EvaluationKeepsNothingAndAgreesWithTraining) {
  SmallLlama llama;
  const Microbatch microbatch = llama.microbatch(0);
  const double loss = llama.chunk->evaluate(microbatch).item<double>();
  EXPECT_TRUE(llama.chunk->idle());
  EXPECT_EQ(llama.chunk->loss_sum().item<double>(), 0.0);
  llama.chunk->forward(microbatch, {});
  EXPECT_EQ(llama.chunk->loss_sum().item<double>(), loss);
}

// Bytes of activations that a forward pass of `num_layers` decoder layers leaves alive.
int64_t kept_bytes(int64_t num_layers) {
  SmallLlama llama(SmallLlama::ignore, num_layers);
  const Microbatch microbatch = llama.microbatch(0);
  const MemoryScope scope(&llama.rank.memory, MemoryCategory::kActivations);
  const int64_t before = llama.rank.memory.live(MemoryCategory::kActivations);
  llama.chunk->forward(microbatch, {});
  return llama.rank.memory.live(MemoryCategory::kActivations) - before;
}

// The formula of docs/model.md, with the figures per row that the page leaves out.
TEST(Chunk, KeepsPerDecoderLayerWhatTheFormulaSays) {
  install_allocator();
  constexpr int64_t kTokens = 2 * 6, kHidden = 8, kFfn = 12, kHeads = 2, kGroups = 1, kHeadSize = 4;
  constexpr int64_t kPerToken = 4 * kHidden                           // norms: inputs and outputs
                                + kHeadSize * (kHeads + 2 * kGroups)  // q, k, v
                                + kHeadSize * kHeads                  // what attention gives
                                + 3 * kFfn                            // gate, up, product
                                + 2 + kHeads;  // norms' and softmax's row figures
  EXPECT_EQ(kept_bytes(3) - kept_bytes(2), kTokens * kPerToken * 8);
  EXPECT_EQ(kept_bytes(5) - kept_bytes(2), 3 * kTokens * kPerToken * 8);
}

}  // namespace
}  // namespace sevenfold
