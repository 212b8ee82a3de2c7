// What tensor and sequence parallelism send and keep, against the formulas of
// docs/tensor_parallelism.md.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>

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
using testing::TensorCase;

constexpr int64_t kTp = 4;

struct Sent {
  int64_t operations = 0;
  int64_t bytes = 0;
  Sent& add(int64_t count, int64_t bytes_each) {
    operations += count;
    bytes += count * bytes_each;
    return *this;
  }
};

Sent sent(const RankContext& rank, const std::string& group, const std::string& operation) {
  const auto& entries = rank.traffic.entries();
  const auto found = entries.find({group, operation});
  if (found == entries.end()) return {};
  return {found->second.operations, found->second.bytes_sent};
}

struct SentCase {
  TensorCase layout;
  std::string precision = "fp64";
};

class TensorParallelTraffic : public ::testing::TestWithParam<SentCase> {};

// What docs/tensor_parallelism.md says of one step's gradients, in numbers.
class ExpectedTraffic {
 public:
  ExpectedTraffic(const Config& config, const SentCase& c, int64_t rank)
      : model_(config.model),
        c_(c),
        rank_(rank),
        micro_(config.batch.num_microbatches),
        tokens_(config.batch.micro_batch_size * config.model.seq_length),
        element_(c.precision == "bf16"   ? 2
                 : c.precision == "fp32" ? 4
                                         : 8),
        wide_(c.precision == "fp64" ? 8 : 4) {
    add_hidden_states();
    add_cross_entropy();
    if (const int64_t elements = replicated_elements(); elements > 0)
      all_reduce.add(1, ring_bytes::all_reduce(elements, wide_, c.layout.tp, rank));
    if (const int64_t copies = c.layout.tp / c.layout.groups; copies > 1)
      of_copies.add(1, ring_bytes::all_reduce(copied_elements(), wide_, copies, rank % copies));
  }

  Sent all_reduce, maxima, all_gather, reduce_scatter, of_copies;

 private:
  bool is_gpt() const { return c_.layout.model.starts_with("gpt"); }
  bool is_biased() const { return is_gpt() || c_.layout.model == "biased"; }

  // Two all-reduces of b s h per layer in forward and two in backward, one for the embedding, one
  // for the gradient of the head's input. With sequence parallelism the same bytes as all-gathers
  // and reduce-scatters, and one more all-gather for each input that was not kept.
  void add_hidden_states() {
    const int64_t hidden = tokens_ * model_.hidden_size, layers = model_.num_layers;
    const int64_t sums = micro_ * (4 * layers + 2);
    if (!c_.layout.sequence) {
      all_reduce.add(sums, ring_bytes::all_reduce(hidden, element_, c_.layout.tp, rank_));
      return;
    }
    const int64_t part = (c_.layout.tp - 1) * hidden / c_.layout.tp * element_;
    reduce_scatter.add(sums, part);
    all_gather.add(sums + micro_ * (2 * layers + 1), part);
  }

  // What the softmax needs of the other ranks: [N] maxima, and [2, N] sums in fp64.
  void add_cross_entropy() {
    all_reduce.add(micro_, ring_bytes::all_reduce(2 * tokens_, 8, c_.layout.tp, rank_));
    maxima.add(micro_, ring_bytes::all_reduce(tokens_, wide_, c_.layout.tp, rank_));
  }

  // Parameters that every rank holds whole and of whose gradient it knows a part. Norms of q and k
  // see this rank's heads; with sequence parallelism the others see its tokens.
  int64_t replicated_elements() const {
    const int64_t h = model_.hidden_size, layers = model_.num_layers;
    int64_t elements = c_.layout.model == "qk_norm" ? layers * 2 * model_.kv_channels : 0;
    if (!c_.layout.sequence) return elements;
    elements += (2 * layers + 1) * (is_gpt() ? 2 : 1) * h;  // gains, and biases of LayerNorm
    if (is_biased()) elements += layers * 2 * h;            // of o and down
    if (is_gpt()) elements += model_.max_position_embeddings * h;
    return elements;
  }

  // One KV head of k_proj and v_proj, and of their biases.
  int64_t copied_elements() const {
    return model_.num_layers * 2 * model_.kv_channels *
           (model_.hidden_size + (is_biased() ? 1 : 0));
  }

  const ModelConfig& model_;
  const SentCase& c_;
  int64_t rank_, micro_, tokens_, element_, wide_;
};

TEST_P(TensorParallelTraffic, IsThatOfTheFormula) {
  install_allocator();
  const TemporaryDirectory directory;
  const SentCase& c = GetParam();
  const testing::Experiment experiment = tensor_experiment(
      directory, c.layout, {{"bf16", c.precision == "bf16"}}, {{"precision", c.precision}});
  const SampleStream samples(experiment.config, *experiment.data);
  run_ranks(Mesh(experiment.config.mesh), {}, [&](RankContext& rank) {
    RankTrainer trainer(experiment.config, samples, rank);
    rank.traffic.clear();
    trainer.compute_gradients();
    const ExpectedTraffic expected(experiment.config, c, rank.rank);
    const auto check = [&](const char* group, const char* operation, const Sent& formula) {
      EXPECT_EQ(sent(rank, group, operation).operations, formula.operations) << operation;
      EXPECT_EQ(sent(rank, group, operation).bytes, formula.bytes) << operation;
    };
    check("tp", "all_reduce", expected.all_reduce);
    check("tp", "all_reduce_max", expected.maxima);
    check("tp", "all_gather", expected.all_gather);
    check("tp", "reduce_scatter", expected.reduce_scatter);
    check("tp-copies", "all_reduce", expected.of_copies);
  });
}

std::vector<SentCase> sent_cases() {
  std::vector<SentCase> cases;
  for (const char* model : {"llama", "tied", "qk_norm", "biased", "gpt", "gpt_tied"})
    for (const bool sequence : {false, true})
      for (const int64_t tp : {2, 4, 8})
        cases.push_back({{.model = model, .groups = 4, .tp = tp, .sequence = sequence}});
  for (const char* precision : {"fp32", "bf16"})
    for (const bool sequence : {false, true})
      cases.push_back(
          {{.model = "qk_norm", .groups = 1, .tp = 4, .sequence = sequence}, precision});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Kinds, TensorParallelTraffic, ::testing::ValuesIn(sent_cases()),
                         [](const auto& instance) {
                           return instance.param.layout.name() + "_" + instance.param.precision;
                         });

// Every matrix and table divided by the ranks, but for KV heads that neighbours copy, a vocabulary
// of 101 rows, and the norms.
TEST(TensorParallelWeights, TakeTheBytesOfTheirParts) {
  install_allocator();
  for (const int64_t tp : {1, 2, 4})
    for (const int64_t groups : {1, 2}) {
      const TemporaryDirectory directory;
      const testing::Experiment experiment =
          tensor_experiment(directory, {.model = "llama", .groups = groups, .tp = tp});
      const SampleStream samples(experiment.config, *experiment.data);
      run_ranks(Mesh(experiment.config.mesh), {}, [&](RankContext& rank) {
        const RankTrainer trainer(experiment.config, samples, rank);
        const int64_t h = 32, f = 64, head = 8;
        const int64_t kv = std::max<int64_t>(1, groups / tp) * head;
        const int64_t layer = 2 * h * (4 * head / tp) + 2 * h * kv + 3 * h * f / tp + 2 * h;
        const int64_t rows = 101 * (rank.rank + 1) / tp - 101 * rank.rank / tp;
        EXPECT_EQ(trainer.parameter_bytes(), 8 * (4 * layer + 2 * rows * h + h));
      });
    }
}

struct Kept {
  const char* model;
  bool sequence;
  at::ScalarType type;
  const char* parts = "";  // that backward computes again
  RecomputeConfig again = {};
};

class KeptActivations : public ::testing::TestWithParam<Kept> {};

struct Layers {
  ModelPart model;
  std::vector<Bucket> buckets;
  Layers(const Config& config, const TensorParallel& tensor, at::ScalarType type, RankContext& rank,
         const RecomputeConfig& again)
      : model(build_model(config.model, {.dtype = type, .tensor = tensor, .recompute = again})),
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
  RecomputeConfig again;

  // Norm outputs, h and y are kept on the part; q, k, v and the attention's output, and the
  // feed-forward's wide activations, of this rank's heads and columns for all tokens. What is
  // computed again is not kept: a recomputed feed-forward part keeps its input, the norm's output
  // or, where norms are recomputed too, h alone.
  int64_t decoder() const {
    const int64_t on_part = (again.norms ? 2 : 4) * part_tokens * hidden;
    const int64_t attention = tokens * (2 * q + 2 * kv);
    const int64_t feed_forward = wide_activations() * tokens * ffn;
    const int64_t norms = again.norms && again.feed_forward ? 1 : 2;
    const int64_t norm_rows = norms * (is_gpt ? 2 : 1) * part_tokens;
    const int64_t softmax_rows = again.core_attention ? 0 : tokens * heads;
    return element * (on_part + attention + feed_forward) + wide * (norm_rows + softmax_rows);
  }
  // Of ffn columns: gate (with a gate), up and what the activation makes of them.
  int64_t wide_activations() const {
    if (again.feed_forward) return 0;
    return (is_gpt ? 2 : 3) - (again.activation ? 1 : 0);
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
  const auto [name, sequence, type, parts, again] = GetParam();
  const TemporaryDirectory directory;
  const bool is_gpt = std::string(name) == "gpt";
  const Config config =
      tensor_experiment(directory, {.model = name, .groups = 4, .tp = kTp, .sequence = sequence})
          .config;
  const auto samples = config.batch.micro_batch_size, length = config.model.seq_length;
  run_ranks(Mesh(config.mesh), {}, [&, type = type, sequence = sequence](RankContext& rank) {
    const TensorParallel tensor{.group = &rank.group("tp"), .sequence = sequence};
    const Layers layers(config, tensor, type, rank, GetParam().again);
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
                          .is_gpt = is_gpt,
                          .again = GetParam().again};
    EXPECT_EQ(kept_by(*layers.model.layers[0], input, rank), formula.embedding(rank.rank > 0));
    EXPECT_EQ(kept_by(*layers.model.layers[1], input, rank), formula.decoder());
    EXPECT_EQ(kept_by(*layers.model.layers.back(), input, rank), formula.head());
  });
}

std::vector<Kept> kept_cases() {
  const std::pair<const char*, RecomputeConfig> parts[] = {
      {"", {}},
      {"attention", {.core_attention = true}},
      {"norms", {.norms = true}},
      {"activation", {.activation = true}},
      {"feed_forward", {.feed_forward = true}},
      {"all", {.core_attention = true, .norms = true, .feed_forward = true}}};
  std::vector<Kept> cases;
  for (const char* model : {"llama", "gpt"})
    for (const bool sequence : {false, true})
      for (const at::ScalarType type : {at::kFloat, at::kBFloat16})
        for (const auto& [name, again] : parts)
          cases.push_back({model, sequence, type, name, again});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Kinds, KeptActivations, ::testing::ValuesIn(kept_cases()),
                         [](const auto& instance) {
                           const Kept& kept = instance.param;
                           return std::string(kept.model) + (kept.sequence ? "_tp_sp_" : "_tp_") +
                                  at::toString(kept.type) +
                                  (*kept.parts ? std::string("_") + kept.parts : "");
                         });

}  // namespace
}  // namespace sevenfold
