// What tensor and sequence parallelism send and keep, against the formulas of
// docs/tensor_parallelism.md.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "parity/tensor_cases.h"
#include "sevenfold/dist/allocator.h"
#include "sevenfold/dist/ring_bytes.h"
#include "sevenfold/dist/threads/cluster.h"
#include "sevenfold/model/model.h"
#include "sevenfold/parallel/sequence/sequence_shards.h"
#include "sevenfold/train/rank_trainer.h"

namespace sevenfold {
namespace {

using testing::TemporaryDirectory;
using testing::tensor_experiment;

constexpr int64_t kTp = 4, kDouble = 8;

struct Sent {
  int64_t operations = 0;
  int64_t bytes = 0;
  Sent& add(int64_t count, int64_t bytes_each) {
    operations += count;
    bytes += count * bytes_each;
    return *this;
  }
};

Sent sent(const RankContext& rank, const std::string& operation) {
  const auto& entries = rank.traffic.entries();
  const auto found = entries.find({"tp", operation});
  if (found == entries.end()) return {};
  return {found->second.operations, found->second.bytes_sent};
}

void expect_sent(const RankContext& rank, const std::string& operation, const Sent& expected) {
  EXPECT_EQ(sent(rank, operation).operations, expected.operations) << operation;
  EXPECT_EQ(sent(rank, operation).bytes, expected.bytes) << operation;
}

// Every step: sums over the ranks of what the softmax needs, [N] maxima and [2, N] sums in fp64.
void add_cross_entropy(const Config& config, int64_t rank, Sent& all_reduce, Sent& maxima) {
  const int64_t micro = config.batch.num_microbatches;
  const int64_t tokens = config.batch.micro_batch_size * config.model.seq_length;
  all_reduce.add(micro, ring_bytes::all_reduce(2 * tokens, 8, kTp, rank));
  maxima.add(micro, ring_bytes::all_reduce(tokens, kDouble, kTp, rank));
}

int64_t hidden_elements(const Config& config) {
  return config.batch.micro_batch_size * config.model.seq_length * config.model.hidden_size;
}

// Two all-reduces of b s h per layer in forward and two in backward, one for the embedding, one for
// the gradient of the head's input.
TEST(TensorParallelTraffic, IsFourAllReducesPerLayerAndMicrobatch) {
  install_allocator();
  const TemporaryDirectory directory;
  const testing::Experiment experiment =
      tensor_experiment(directory, {.model = "llama", .groups = 4, .tp = kTp});
  const SampleStream samples(experiment.config, *experiment.data);
  run_ranks(Mesh(experiment.config.mesh), {}, [&](RankContext& rank) {
    RankTrainer trainer(experiment.config, samples, rank);
    rank.traffic.clear();
    trainer.compute_gradients();
    const Config& config = experiment.config;
    const int64_t sums = config.batch.num_microbatches * (4 * config.model.num_layers + 2);
    Sent all_reduce, maxima;
    all_reduce.add(sums, ring_bytes::all_reduce(hidden_elements(config), kDouble, kTp, rank.rank));
    add_cross_entropy(config, rank.rank, all_reduce, maxima);
    expect_sent(rank, "all_reduce", all_reduce);
    expect_sent(rank, "all_reduce_max", maxima);
    expect_sent(rank, "all_gather", {});
    expect_sent(rank, "reduce_scatter", {});
  });
}

// The same bytes as all-gathers and reduce-scatters, and one more all-gather for each input that
// was not kept; the gradients of norms are summed once per step.
TEST(SequenceParallelTraffic, IsThatOfTensorParallelismAndTheGatheringAgain) {
  install_allocator();
  const TemporaryDirectory directory;
  const testing::Experiment experiment =
      tensor_experiment(directory, {.model = "llama", .groups = 4, .tp = kTp, .sequence = true});
  const SampleStream samples(experiment.config, *experiment.data);
  run_ranks(Mesh(experiment.config.mesh), {}, [&](RankContext& rank) {
    RankTrainer trainer(experiment.config, samples, rank);
    rank.traffic.clear();
    trainer.compute_gradients();
    const Config& config = experiment.config;
    const int64_t layers = config.model.num_layers, micro = config.batch.num_microbatches;
    const int64_t part = (kTp - 1) * hidden_elements(config) / kTp * kDouble;
    Sent all_reduce, maxima;
    add_cross_entropy(config, rank.rank, all_reduce, maxima);
    const int64_t norms = (2 * layers + 1) * config.model.hidden_size;
    all_reduce.add(1, ring_bytes::all_reduce(norms, kDouble, kTp, rank.rank));
    expect_sent(rank, "all_reduce", all_reduce);
    expect_sent(rank, "all_reduce_max", maxima);
    expect_sent(rank, "reduce_scatter", Sent{}.add(micro * (4 * layers + 2), part));
    const int64_t again = 2 * layers + 1;
    expect_sent(rank, "all_gather", Sent{}.add(micro * (4 * layers + 2 + again), part));
  });
}

// Copies of KV heads: their gradients, k_proj and v_proj of every layer, once per step.
TEST(KeyValueCopies, AreSummedOncePerStepAmongThoseThatHoldThem) {
  install_allocator();
  const TemporaryDirectory directory;
  const testing::Experiment experiment =
      tensor_experiment(directory, {.model = "llama", .groups = 2, .tp = kTp});
  const SampleStream samples(experiment.config, *experiment.data);
  run_ranks(Mesh(experiment.config.mesh), {}, [&](RankContext& rank) {
    RankTrainer trainer(experiment.config, samples, rank);
    rank.traffic.clear();
    trainer.compute_gradients();
    const ModelConfig& model = experiment.config.model;
    const int64_t elements = model.num_layers * 2 * model.kv_channels * model.hidden_size;
    const TrafficEntry sums = rank.traffic.of_group("tp-copies");
    EXPECT_EQ(sums.operations, 1);
    EXPECT_EQ(sums.bytes_sent, elements * kDouble);
  });
}

struct Kept {
  const char* model;
  bool sequence;
  at::ScalarType type;
};

class KeptActivations : public ::testing::TestWithParam<Kept> {};

struct Layers {
  ModelPart model;
  std::vector<Bucket> buckets;
  Layers(const Config& config, const TensorParallel& tensor, at::ScalarType type, RankContext& rank)
      : model(build_model(config.model, {.dtype = type, .tensor = tensor})),
        buckets(build_buckets(model.layer_parameters(), rank, type, 1 << 20)) {}
};

// Bytes that a layer's forward leaves alive, its output among them.
int64_t kept_by(const Layer& layer, const LayerInput& input, RankContext& rank) {
  const int64_t before = rank.memory.live_total();
  const LayerOutput output = layer.forward(input);
  return rank.memory.live_total() - before;
}

// Per rank: b s tokens, of which it holds s_part of each sequence outside the linear layers.
struct Formula {
  int64_t tokens, part_tokens, hidden, q, kv, heads, ffn, vocabulary;
  int64_t element, wide;
  bool is_gpt;

  // Norm outputs, h and y are kept on the part; q, k, v and the attention's output, and the
  // feed-forward's wide activations, of this rank's heads and columns for all tokens.
  int64_t decoder() const {
    const int64_t on_part = 4 * part_tokens * hidden;
    const int64_t attention = tokens * (2 * q + 2 * kv);
    const int64_t feed_forward = (is_gpt ? 2 : 3) * tokens * ffn;
    const int64_t norm_rows = 2 * (is_gpt ? 2 : 1) * part_tokens;
    return element * (on_part + attention + feed_forward) + wide * (norm_rows + tokens * heads);
  }
  // Its output; ids of tokens where they are counted from this rank's first row.
  int64_t embedding(bool has_own_ids) const {
    return element * part_tokens * hidden + (has_own_ids ? 8 * tokens : 0);
  }
  // The norm's output, logits, labels counted from the first row, maximum and sum of each row.
  int64_t head() const {
    return element * (part_tokens * hidden + tokens * vocabulary) +
           wide * ((is_gpt ? 2 : 1) * part_tokens + 2 * tokens) + 8 * tokens + 8;
  }
};

TEST_P(KeptActivations, AreWhatTheFormulaSays) {
  install_allocator();
  const auto [name, sequence, type] = GetParam();
  const TemporaryDirectory directory;
  const bool is_gpt = std::string(name) == "gpt";
  const Config config =
      tensor_experiment(directory, {.model = name, .groups = 4, .tp = kTp, .sequence = sequence})
          .config;
  const auto samples = config.batch.micro_batch_size, length = config.model.seq_length;
  run_ranks(Mesh(config.mesh), {}, [&, type = type, sequence = sequence](RankContext& rank) {
    const TensorParallel tensor{.group = &rank.group("tp"), .sequence = sequence};
    const Layers layers(config, tensor, type, rank);
    const at::ScalarType wide = gradient_type(type);
    Microbatch microbatch;
    microbatch.inputs_BT = at::zeros({samples, length}, at::kLong);
    microbatch.labels_BT = at::ones({samples, length}, at::kLong);
    microbatch.mask_BT = at::ones({samples, length}, wide);
    WeightGradients gradients;
    const int64_t part = sequence ? length / kTp : length;
    const at::Tensor hidden = at::randn({samples, part, config.model.hidden_size}).to(type);
    const LayerInput input{.boundary = {hidden.detach().set_requires_grad(true)},
                           .anchor = at::zeros({1}, wide).set_requires_grad(true),
                           .microbatch = &microbatch,
                           .weight_gradients = &gradients};
    const Slice rows = local_slice(layers.model.layers.back()->parameters().back()->spec(),
                                   *rank.mesh, rank.coordinates);
    const int64_t head_size = config.model.kv_channels;
    const Formula formula{.tokens = samples * length,
                          .part_tokens = samples * part,
                          .hidden = config.model.hidden_size,
                          .q = config.model.num_attention_heads / kTp * head_size,
                          .kv = config.model.num_query_groups / kTp * head_size,
                          .heads = config.model.num_attention_heads / kTp,
                          .ffn = config.model.ffn_hidden_size / kTp,
                          .vocabulary = rows.sizes[0],
                          .element = static_cast<int64_t>(c10::elementSize(type)),
                          .wide = static_cast<int64_t>(c10::elementSize(wide)),
                          .is_gpt = is_gpt};
    EXPECT_EQ(kept_by(*layers.model.layers[0], input, rank), formula.embedding(rank.rank > 0));
    EXPECT_EQ(kept_by(*layers.model.layers[1], input, rank), formula.decoder());
    EXPECT_EQ(kept_by(*layers.model.layers.back(), input, rank), formula.head());
  });
}

std::vector<Kept> kept_cases() {
  std::vector<Kept> cases;
  for (const char* model : {"llama", "gpt"})
    for (const bool sequence : {false, true})
      for (const at::ScalarType type : {at::kFloat, at::kBFloat16})
        cases.push_back({model, sequence, type});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Kinds, KeptActivations, ::testing::ValuesIn(kept_cases()),
                         [](const auto& instance) {
                           const Kept& kept = instance.param;
                           return std::string(kept.model) + (kept.sequence ? "_tp_sp_" : "_tp_") +
                                  at::toString(kept.type);
                         });

}  // namespace
}  // namespace sevenfold
