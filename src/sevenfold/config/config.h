#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sevenfold/mesh/mesh.h"

namespace sevenfold {

// What a run is, after presets, precedence, coercion, rules and fix-ups: plain values under our own
// names. The YAML spelling of Primus stays in config/; nothing behind this struct knows it.

enum class NormKind : uint8_t { kRmsNorm, kLayerNorm };
enum class PositionKind : uint8_t { kRotary, kLearned, kNone };
// Feed-forward activation. Gated ones multiply by a second projection (gate, up); the others have
// `up` only.
enum class Activation : uint8_t {
  kSwiglu,       // silu(gate) * up
  kQuickGeglu,   // gate * sigmoid(1.702 gate) * up
  kGelu,         // 0.5 a (1 + erf(a / sqrt 2))
  kGeluTanh,     // openai_gelu: the tanh form
  kSquaredRelu,  // max(a, 0)^2
};
constexpr bool is_gated(Activation activation) {
  return activation == Activation::kSwiglu || activation == Activation::kQuickGeglu;
}

// Llama-3 scaling of the rotary frequencies (use_rope_scaling).
struct RopeScaling {
  double factor = 8.0;
  double low_frequency_factor = 1.0;
  double high_frequency_factor = 4.0;
  int64_t original_max_position_embeddings = 8192;
};

struct ModelConfig {
  int64_t num_layers = 0;
  int64_t hidden_size = 0;
  int64_t ffn_hidden_size = 0;
  int64_t num_attention_heads = 0;
  int64_t num_query_groups = 0;  // KV heads
  int64_t kv_channels = 0;       // head size
  int64_t vocab_size = 0;        // without padding
  int64_t seq_length = 0;
  int64_t max_position_embeddings = 0;
  double norm_epsilon = 1e-5;
  double rotary_base = 10000.0;
  double rotary_percent = 1.0;
  double init_method_std = 0.02;
  bool tied_embeddings = false;
  NormKind norm = NormKind::kRmsNorm;
  PositionKind positions = PositionKind::kRotary;
  Activation activation = Activation::kSwiglu;
  bool linear_bias = false;  // add_bias_linear: q, k, v, o and feed-forward; implies qkv_bias
  bool qkv_bias = false;
  bool qk_norm = false;               // the norm also of each head of q and k, before rotation
  bool rotary_interleaved = false;    // pairs (2i, 2i+1) instead of (i, i + rotary/2)
  double rotary_interpolation = 1.0;  // positions are divided by it
  std::optional<RopeScaling> rope_scaling;
  double hidden_dropout = 0.0;
  double attention_dropout = 0.0;
  // vocab_size rounded up to make_vocab_size_divisible_by * TP: what a checkpoint of Megatron
  // holds. Padded rows are never in a softmax here and no logical parameter has them.
  int64_t padded_vocab_size = 0;
};

// Neighbouring tensor-parallel ranks that hold the same keys and values (MeshShape::tp_copies).
constexpr int64_t key_value_copies(const ModelConfig& model, int64_t tp) {
  return tp > model.num_query_groups ? tp / model.num_query_groups : 1;
}

// Global batch from a number of consumed samples on.
struct BatchStage {
  int64_t from_samples = 0;
  int64_t global_batch_size = 0;
};

struct BatchConfig {
  int64_t micro_batch_size = 1;
  int64_t global_batch_size = 1;
  int64_t num_microbatches = 1;  // per dp rank and step: global = micro * dp * num_microbatches
  // A changing global batch: the last stage whose threshold is reached. Empty: constant; else the
  // first starts at 0 and global_batch_size above is that of the last.
  std::vector<BatchStage> schedule;
};

enum class OptimizerKind : uint8_t { kAdamW, kSgd };
// Element type of a running mean of AdamW; kFull: that of the gradients.
enum class MomentType : uint8_t { kFull, kBf16, kFp16 };
enum class DecayStyle : uint8_t { kConstant, kLinear, kCosine, kInverseSquareRoot, kWsd };
enum class WsdDecayStyle : uint8_t { kLinear, kCosine, kExponential, kMinusSqrt };
// How weight decay moves from its start to its end value over the samples of the run.
enum class WeightDecayStyle : uint8_t { kConstant, kLinear, kCosine };

struct OptimizerConfig {
  OptimizerKind kind = OptimizerKind::kAdamW;
  double weight_decay = 0.0;  // the start value when it changes
  double end_weight_decay = 0.0;
  WeightDecayStyle weight_decay_style = WeightDecayStyle::kConstant;
  bool decay_qk_norm = false;  // apply_wd_to_qk_layernorm
  bool decay_all = false;      // parameters of one dimension too, as TorchTitan
  double adam_beta1 = 0.9;
  double adam_beta2 = 0.999;
  double adam_eps = 1e-8;
  MomentType exp_avg_type = MomentType::kFull;     // of the mean of gradients
  MomentType exp_avg_sq_type = MomentType::kFull;  // of the mean of their squares
  double sgd_momentum = 0.9;
  double clip_grad = 1.0;  // 0: no clipping
};

// Steps are counted in consumed samples (Megatron).
struct LearningRateConfig {
  double lr = 0.0;
  double min_lr = 0.0;
  double warmup_init = 0.0;
  int64_t warmup_samples = 0;
  int64_t decay_samples = 0;
  DecayStyle style = DecayStyle::kCosine;
  int64_t wsd_decay_samples = 0;
  WsdDecayStyle wsd_style = WsdDecayStyle::kExponential;
};

// Scale of the loss in fp16 (bf16 and wider use 1).
struct LossScaleConfig {
  double constant = 0.0;  // loss_scale; 0: dynamic
  double initial = 4294967296.0;
  double smallest = 1.0;
  int64_t window = 1000;   // steps without overflow before it doubles
  int64_t hysteresis = 2;  // overflows before it halves
};

struct PrepareConfig {
  std::vector<std::string> inputs;  // globs
  std::string tokenizer = "byte";   // or a file; see open_tokenizer
  std::string output;               // PREFIX
  std::string format = "auto";      // of the inputs: auto, text, lines or jsonl
  std::string json_key = "text";    // the member of a JSON line that is the document
  bool append_eod = true;           // the end-of-document token after every document
  std::string eod_token;            // its content; empty: what the tokenizer's files say
  bool add_special_tokens = false;  // what the tokenizer puts around a text
  bool skip_invalid = false;        // leave out documents that cannot be read, and count them
  int64_t workers = 0;              // threads; 0: one a core
};

// Data sets of one split, or of all: one prefix, or several blended.
struct BlendConfig {
  std::vector<std::string> prefixes;
  std::vector<double> weights;  // as given, above 0; empty: prefixes without weights
  std::string where;            // "run.yaml:31 data_path=P", for messages; empty: not from a file
  bool empty() const { return prefixes.empty(); }
};

enum class LoaderKind : uint8_t { kSingle, kCyclic };

struct DataConfig {
  // One of: `data`, cut by `split`, or data sets of each part.
  BlendConfig data, train, valid, test;
  LoaderKind loader = LoaderKind::kSingle;
  bool data_sharding = true;  // cyclic: each rank draws from a part of its own
  // cyclic: the dp size whose order is read; 0: the mesh's own. (One rank that is compared with a
  // layout reads what the layout reads.)
  int64_t order_dp_size = 0;
  bool reset_position_ids = false;
  bool reset_attention_mask = false;
  std::optional<int64_t> pad_token_id;
  std::string cache_directory;       // data_cache_path; empty: beside the data
  double surplus = 0.005;            // mid_level_dataset_surplus
  std::string split = "969, 30, 1";  // mock data: always "1,1,1"
  std::string split_where;           // "run.yaml:31 split=98,2"; empty: no file says it
  bool shuffle = true;
  bool mock_data = false;
  bool eod_mask_loss = false;
  std::optional<int64_t> eod_token_id;
  std::optional<PrepareConfig> prepare;
};

enum class Precision : uint8_t { kFp64, kFp32, kBf16, kFp16 };
enum class StartKind : uint8_t { kInit, kHot };
std::string_view precision_name(Precision precision);  // "fp64", ...

struct RunConfig {
  std::string directory;  // workspace/work_group/user_name/exp_name
  std::string backend = "threads";
  std::string device = "auto";  // auto, cpu or cuda
  Precision precision = Precision::kFp32;
  StartKind start = StartKind::kInit;
  uint64_t seed = 1234;
  int64_t train_iters = 0;
  // 0: the run's length is train_iters; else train_iters holds the whole steps of that many
  // samples.
  int64_t train_samples = 0;
  bool skip_train = false;
  int64_t exit_interval = 0;          // steps; 0: none
  int64_t exit_duration_minutes = 0;  // 0: none
  LossScaleConfig loss_scale;
  std::string tensorboard_directory;  // empty: none
  int64_t tensorboard_log_interval = 1;
  bool log_throughput = true;
  bool log_params_norm = false;
  bool log_num_zeros = false;  // log_num_zeros_in_grad
  int64_t eval_interval = 0;
  int64_t eval_iters = 0;
  bool full_validation = false;
  int64_t log_interval = 1;
  bool check_for_nan = true;  // check_for_nan_in_loss_and_grad: a run ends before it steps on one
  int64_t gradient_bucket_elements = 40'000'000;  // ddp_bucket_size
  int64_t timeout_s = 600;                        // of one collective
};

// What of a run is kept in files, and what it begins from instead of start weights.
struct CheckpointConfig {
  std::string save_directory;   // inside the run's directory; empty: nothing is saved
  int64_t interval = 1000;      // steps
  bool saves_last = true;       // after the last step too, whatever the interval
  bool saves_optimizer = true;  // states and position; without them a run cannot be resumed
  // Which stay when a new one is whole: the newest `keep_latest` (0: all), and those of steps that
  // `retain_interval` divides. Without both all stay; with a retain_interval alone the newest and
  // the divided ones.
  int64_t keep_latest = 0;
  int64_t retain_interval = 0;

  // A checkpoint, or a folder of them, to begin from where there is none to resume; empty: none.
  std::string load;
  std::string load_where;            // "run.yaml:31 load=P", for messages
  std::optional<int64_t> load_step;  // of a folder: this one; else the newest
  bool load_is_required = true;      // else a folder without checkpoints means start weights
  bool loads_weights_only = false;   // the run begins at step 0, with a new optimizer
  bool loads_optimizer = true;       // false: position yes, states no
};

// A thing the user should know: a key accepted without effect, a value switched off, a deviation.
struct Notice {
  std::string text;
};

// A value that would change the result or the model and that is not supported yet.
struct Unsupported {
  std::string key;   // the key at fault, for callers that can do without ("mock_data", "data_path",
                     // "bf16", ...)
  std::string text;  // one sentence: file:line key=value, what is missing, the way out
};

// A key with its value after coercion and fix-ups, for listings.
struct ConfigEntry {
  std::string key;
  std::string value_json;
  std::string origin;  // "run.yaml:31", "built-in preset models/megatron/llama2_7B.yaml:4",
                       // "override", "fix-up", ...
};

// A key of the experiment that changes nothing, and why; or one that is not known.
struct KeyNote {
  std::string key;
  std::string origin;
  std::string reason;
};

// Keys that the experiment file (with what it extends) and key=value set; presets do not count.
struct KeyCounts {
  int64_t used = 0;
  int64_t ignored = 0;
  int64_t unknown = 0;
};

// What data-parallel ranks (dp x cp) keep a share of instead of a copy: Rajbhandari et al. 2020.
enum class ZeroStage : uint8_t {
  kNone,        // copies of everything
  kOptimizer,   // stage 1: optimizer states, master weights among them
  kGradients,   // stage 2: summed gradients too
  kParameters,  // stage 3: weights too, whole only while a layer runs
};

// How layers are cut over the ranks, beside the degrees of the mesh.
struct ParallelConfig {
  ZeroStage zero = ZeroStage::kNone;
  // ZeRO stages 1 and 2: weights are gathered while the next forward runs, not before it.
  bool overlap_gather = false;
  // ZeRO stage 3: weights are freed after forward and gathered again for backward.
  bool reshard_after_forward = true;
  bool reduces_in_bf16 = false;  // gradients are rounded to bf16 for their sums over dp and cp
  bool sequence = false;         // sequence parallelism; only with tp above 1
  bool tensor_overlap = true;    // collectives of a backward pass run while weight gradients do
};

// Whole layers whose forward runs again in backward.
enum class RecomputedLayers : uint8_t {
  kNone,
  kUniform,  // all, in groups of `num_layers` neighbours: of a group only its first input is kept
  kBlock,    // each of the first `num_layers` of a stage
  kNamed     // each of `layer_ids`
};

// Activations that backward computes again instead of keeping them (recompute_granularity).
struct RecomputeConfig {
  RecomputedLayers layers = RecomputedLayers::kNone;
  int64_t num_layers = 0;
  std::vector<int64_t> layer_ids;  // of the whole model, ascending
  // Of an input that the ranks of a tensor-parallel group hold alike, each keeps its share.
  bool shares_inputs = false;
  // Parts of every decoder layer, where no whole layers run again.
  bool core_attention = false;  // attention between its projections: q, k and v are kept
  bool norms = false;           // the layer's two norms: their inputs are kept
  bool activation = false;      // activation(gate) * up: gate and up are kept
  bool feed_forward = false;    // the feed-forward part: its input is kept
};

// What one pipeline stage holds of the model.
struct StageLayers {
  int64_t first_layer = 0;
  int64_t num_layers = 0;
  bool has_embedding = false;
  bool has_head = false;

  bool operator==(const StageLayers&) const = default;
};

// How the model is cut into stages, and in what order ranks run them.
struct PipelineConfig {
  std::string algorithm = "1f1b";  // a name of schedule/algorithms.h
  std::string schedule_file;  // a table of PyTorch's form (schedule/csv.h) instead; empty: none
  int64_t num_chunks = 1;     // v: pieces of the model on a rank; the twins of dualpipe are two
  int64_t group_size = 0;     // interleaved: micro batches per group; 0: the algorithm's own
  // For algorithms that search: time of a micro batch through each rank's share of the layers.
  // Empty: 1.
  std::vector<double> forward, backward_input, backward_weight;
  // Of a rank; unit: one micro batch through its share of the layers.
  double max_memory = std::numeric_limits<double>::infinity();
  // Each rank steps before it knows the gradients of the others, and takes the step back if they
  // clip or skip it (enable_optimizer_post_validation).
  bool post_validation = false;
  // In the order of the model, P x v of them, P with dualpipe; one without pipeline parallelism.
  std::vector<StageLayers> stages;
};

struct Config {
  std::string file;
  std::string framework;
  MeshShape mesh;
  ParallelConfig parallel;
  RecomputeConfig recompute;
  PipelineConfig pipeline;
  ModelConfig model;
  BatchConfig batch;
  OptimizerConfig optimizer;
  LearningRateConfig learning_rate;
  DataConfig data;
  RunConfig run;
  CheckpointConfig checkpoint;
  KeyCounts keys;
  std::vector<Notice> notices;
  std::vector<Unsupported> unsupported;  // `train` and `verify` refuse to run when not empty
  std::vector<ConfigEntry> entries;      // sorted by key
  std::vector<KeyNote> ignored;
  std::vector<KeyNote> unknown;
  std::string resolved_yaml;  // every key with its value, for config.resolved.yaml
};

}  // namespace sevenfold
