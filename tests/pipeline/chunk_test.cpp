#include "sevenfold/pipeline/chunk.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>

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
  const double loss = llama.chunk->evaluate(microbatch, {}).loss_sum.item<double>();
  EXPECT_TRUE(llama.chunk->idle());
  EXPECT_EQ(llama.chunk->loss_sum().item<double>(), 0.0);
  llama.chunk->forward(microbatch, {});
  EXPECT_EQ(llama.chunk->loss_sum().item<double>(), loss);
}

// Bytes of activations that a forward pass of `num_layers` decoder layers leaves alive.
int64_t kept_bytes(int64_t num_layers, const RecomputeConfig& recompute = {}) {
  SmallLlama llama(SmallLlama::ignore, num_layers, recompute);
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

RecomputeConfig uniform(int64_t num_layers) {
  return {.layers = RecomputedLayers::kUniform, .num_layers = num_layers};
}
RecomputeConfig block(int64_t num_layers) {
  return {.layers = RecomputedLayers::kBlock, .num_layers = num_layers};
}

constexpr int64_t kOneInput = 2 * 6 * 8 * 8;  // of a layer: samples, tokens, hidden size, fp64

TEST(Recomputation, KeepsOneInputPerGroupOfLayers) {
  install_allocator();
  EXPECT_EQ(kept_bytes(5, uniform(1)) - kept_bytes(2, uniform(1)), 3 * kOneInput);
  EXPECT_EQ(kept_bytes(6, uniform(2)) - kept_bytes(2, uniform(2)), 2 * kOneInput);
  EXPECT_EQ(kept_bytes(3, uniform(2)) - kept_bytes(2, uniform(2)), kOneInput);
  EXPECT_EQ(kept_bytes(4, uniform(9)), kept_bytes(2, uniform(9)));
  const int64_t layer = kept_bytes(3) - kept_bytes(2);
  EXPECT_EQ(kept_bytes(5) - kept_bytes(5, block(2)), 2 * (layer - kOneInput));
  EXPECT_EQ(kept_bytes(5, block(9)), kept_bytes(5, uniform(1)));
  const RecomputeConfig named{.layers = RecomputedLayers::kNamed, .layer_ids = {1, 4}};
  EXPECT_EQ(kept_bytes(5, named), kept_bytes(5, block(2)));
}

// What a layer keeps less, per token: row figures of the softmax, of norms (d wide outputs) and of
// the feed-forward part.
TEST(Recomputation, OfPartsKeepsTheirInputsOnly) {
  install_allocator();
  constexpr int64_t kTokens = 2 * 6, kHidden = 8, kFfn = 12, kHeads = 2;
  const auto kept_by_layer = [](const RecomputeConfig& recompute) {
    return kept_bytes(3, recompute) - kept_bytes(2, recompute);
  };
  const auto saved_per_token = [&](const RecomputeConfig& recompute) {
    return (kept_by_layer({}) - kept_by_layer(recompute)) / (kTokens * 8);
  };
  EXPECT_EQ(saved_per_token({.core_attention = true}), kHeads);
  EXPECT_EQ(saved_per_token({.norms = true}), 2 * kHidden);
  EXPECT_EQ(saved_per_token({.activation = true}), kFfn);
  EXPECT_EQ(saved_per_token({.feed_forward = true}), 3 * kFfn);
  EXPECT_EQ(saved_per_token({.activation = true, .feed_forward = true}), 3 * kFfn);
  EXPECT_EQ(saved_per_token({.norms = true, .feed_forward = true}), 2 * kHidden + 3 * kFfn + 1);
}

// Forward and backward of two micro batches; the most bytes of activations under way.
int64_t peak_bytes(SmallLlama& llama) {
  const std::vector<Microbatch> microbatches = {llama.microbatch(0), llama.microbatch(1)};
  const MemoryScope scope(&llama.rank.memory, MemoryCategory::kActivations);
  llama.rank.memory.reset_peaks();
  for (const Microbatch& microbatch : microbatches) llama.chunk->forward(microbatch, {});
  for (const Microbatch& microbatch : microbatches)
    llama.chunk->backward(microbatch, {}, BackwardPart::kFull, microbatch.index == 1);
  return llama.rank.memory.peak(MemoryCategory::kActivations);
}

TEST(Recomputation, GivesTheSameBitsAndCountsTheLossOnce) {
  SmallLlama plain(SmallLlama::ignore, 5);
  peak_bytes(plain);
  EXPECT_FALSE(is_zero(plain.all_gradients()));
  for (const RecomputeConfig& recompute :
       {uniform(1), uniform(2), uniform(9), block(3), RecomputeConfig{.core_attention = true},
        RecomputeConfig{.norms = true}, RecomputeConfig{.activation = true},
        RecomputeConfig{.feed_forward = true},
        RecomputeConfig{.core_attention = true, .norms = true, .activation = true},
        RecomputeConfig{.core_attention = true, .norms = true, .feed_forward = true}}) {
    SmallLlama again(SmallLlama::ignore, 5, recompute);
    peak_bytes(again);
    EXPECT_TRUE(again.chunk->idle());
    EXPECT_TRUE(at::equal(again.all_gradients(), plain.all_gradients()));
    EXPECT_EQ(again.chunk->loss_sum().item<double>(), plain.chunk->loss_sum().item<double>());
  }
}

TEST(Recomputation, GivesTheSameBitsWithASplitBackward) {
  SmallLlama plain, layers(SmallLlama::ignore, 3, uniform(2)),
      parts(SmallLlama::ignore, 3, {.core_attention = true, .norms = true, .feed_forward = true}),
      activation(SmallLlama::ignore, 3, {.norms = true, .activation = true});
  for (SmallLlama* llama : {&plain, &layers, &parts, &activation}) {
    const Microbatch microbatch = llama->microbatch(0);
    llama->chunk->forward(microbatch, {});
    llama->chunk->backward(microbatch, {}, BackwardPart::kInputOnly, false);
    llama->chunk->backward_weights(microbatch, true);
  }
  EXPECT_TRUE(at::equal(layers.all_gradients(), plain.all_gradients()));
  EXPECT_TRUE(at::equal(parts.all_gradients(), plain.all_gradients()));
  EXPECT_TRUE(at::equal(activation.all_gradients(), plain.all_gradients()));
}

// Bytes of a micro batch between its B and its W.
int64_t live_after_b(int64_t num_layers, const RecomputeConfig& recompute = {}) {
  SmallLlama llama(SmallLlama::ignore, num_layers, recompute);
  const Microbatch microbatch = llama.microbatch(0);
  const MemoryScope scope(&llama.rank.memory, MemoryCategory::kActivations);
  llama.chunk->forward(microbatch, {});
  llama.chunk->backward(microbatch, {}, BackwardPart::kInputOnly, false);
  return llama.rank.memory.live_total();
}

// What weight gradients are products of: each linear layer's input, shared by those that read one,
// and the gradient of its output.
TEST(SplitBackward, KeepsInputsAndOutputGradientsOfLinearLayers) {
  install_allocator();
  constexpr int64_t kTokens = 2 * 6, kHidden = 8, kFfn = 12, kHeads = 2, kGroups = 1, kHeadSize = 4;
  constexpr int64_t kInputs = kHidden + kHeads * kHeadSize + kHidden + kFfn;
  constexpr int64_t kOutputs = (kHeads + 2 * kGroups) * kHeadSize + kHidden + 2 * kFfn + kHidden;
  EXPECT_EQ(live_after_b(3) - live_after_b(2), kTokens * (kInputs + kOutputs) * 8);
  EXPECT_EQ(live_after_b(5) - live_after_b(2), 3 * kTokens * (kInputs + kOutputs) * 8);
}

// They live there whether they were kept or computed again.
TEST(Recomputation, OfPartsKeepsNoMoreBetweenTheHalvesOfASplitBackward) {
  install_allocator();
  const int64_t kept = live_after_b(3);
  EXPECT_EQ(live_after_b(3, {.norms = true, .activation = true}), kept);
  EXPECT_EQ(live_after_b(3, {.core_attention = true, .norms = true, .feed_forward = true}), kept);
}

// The ledger says where in the run the most memory was in use.
TEST(Chunk, NamesTheLayerOfThePeak) {
  install_allocator();
  SmallLlama llama;
  const MemoryScope scope(&llama.rank.memory, MemoryCategory::kActivations);
  const Microbatch microbatch = llama.microbatch(1);
  const auto moment_at_peak = [&](const char* work, const std::function<void()>& body) {
    llama.rank.memory.reset_peaks();
    const MomentScope moment(work, microbatch.index);
    body();
    const WorkMoment found = llama.rank.memory.moment_at_peak();
    EXPECT_STREQ(found.work, work);
    EXPECT_EQ(found.microbatch, 1);
    return found.layer;
  };
  // Activations grow up to the head; in backward they are most where the last decoder layer's
  // gradients come to them (the head is small here).
  constexpr int64_t kHead = 4, kLastDecoder = 3;
  EXPECT_EQ(moment_at_peak("forward", [&] { llama.chunk->forward(microbatch, {}); }), kHead);
  EXPECT_EQ(
      moment_at_peak("backward",
                     [&] { llama.chunk->backward(microbatch, {}, BackwardPart::kFull, false); }),
      kLastDecoder);
}

// Two micro batches of eight layers: all but one layer's activations are gone from the peak.
TEST(Recomputation, LowersThePeakByWhatItDoesNotKeep) {
  install_allocator();
  SmallLlama plain(SmallLlama::ignore, 8), again(SmallLlama::ignore, 8, uniform(1));
  const int64_t layer = kept_bytes(3) - kept_bytes(2);
  const int64_t saved = peak_bytes(plain) - peak_bytes(again);
  EXPECT_LE(saved, 2 * 8 * (layer - kOneInput));
  EXPECT_GE(saved, (2 * 8 - 2) * (layer - kOneInput));
}

// A layer with a loss of its own, as routing has: it counts once though the layer runs twice.
class LossInTheMiddle final : public Layer {
 public:
  LayerOutput forward(const LayerInput& input) const override {
    const at::Tensor x = input.boundary.hidden_BTD.defined() ? input.boundary.hidden_BTD
                                                             : input.anchor.expand({2, 6, 8});
    ++runs;
    return {.boundary = {x * 2.0}, .losses = {{x.sum() + 5.0, input.microbatch->loss_seed}}};
  }
  std::vector<Parameter*> parameters() const override { return {}; }
  mutable int runs = 0;
};

TEST(Recomputation, CountsTheLossOfARecomputedLayerOnce) {
  SmallLlama llama;
  std::vector<std::unique_ptr<Layer>> layers;
  for (int i = 0; i < 2; ++i) layers.push_back(std::make_unique<LossInTheMiddle>());
  Chunk chunk(layers, *llama.weights, *llama.reducer, {}, {std::nullopt, 1});
  const Microbatch microbatch = llama.microbatch(0);
  chunk.forward(microbatch, {});
  const at::Tensor d_output = at::zeros({2, 6, 8}, at::TensorOptions().dtype(at::kDouble));
  chunk.backward(microbatch, {d_output}, BackwardPart::kFull, false);
  EXPECT_EQ(static_cast<const LossInTheMiddle&>(*layers[0]).runs, 1);
  EXPECT_EQ(static_cast<const LossInTheMiddle&>(*layers[1]).runs, 2);
  EXPECT_EQ(chunk.loss_sum().item<double>(), 10.0);
}

TEST(RecomputationPlan, NumbersNamedLayersByTheWholeModel) {
  const RecomputeConfig named{.layers = RecomputedLayers::kNamed, .layer_ids = {1, 6}};
  EXPECT_EQ(recomputation_plan(named, {.position = 0, .first_id = 4, .count = 4}),
            (RecomputationPlan{std::nullopt, std::nullopt, 2, std::nullopt}));
  EXPECT_EQ(recomputation_plan(uniform(2), {.position = 1, .first_id = 0, .count = 3}),
            (RecomputationPlan{std::nullopt, 1, 1, 3}));
}

}  // namespace
}  // namespace sevenfold
