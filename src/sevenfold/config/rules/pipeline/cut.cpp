#include "sevenfold/config/rules/pipeline/cut.h"

#include <algorithm>

#include "sevenfold/config/rules/pipeline/layout.h"
#include "sevenfold/config/rules/rules.h"

namespace sevenfold::config {
namespace {

constexpr const char* kPp = "pipeline_model_parallel_size";
constexpr const char* kChunks = "num_virtual_stages_per_pipeline_rank";
constexpr const char* kPerChunk = "num_layers_per_virtual_pipeline_stage";
constexpr const char* kLayout = "pipeline_model_parallel_layout";
constexpr const char* kFirst = "decoder_first_pipeline_num_layers";
constexpr const char* kLast = "decoder_last_pipeline_num_layers";
constexpr const char* kList = "decoder_pipeline_manual_split_list";
constexpr const char* kEmbedding = "account_for_embedding_in_pipeline_split";
constexpr const char* kLoss = "account_for_loss_in_pipeline_split";

// The first of `keys` that is set; a flag is set when it is true.
const char* first_set(const Parameters& parameters, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    const Value& value = parameters.at(key);
    if (value.kind == ValueKind::kBool ? value.boolean : !value.is_null()) return key;
  }
  return nullptr;
}

void keep_apart(const Parameters& parameters, std::initializer_list<const char*> ones,
                std::initializer_list<const char*> others) {
  const char* one = first_set(parameters, ones);
  const char* other = first_set(parameters, others);
  if (one == nullptr || other == nullptr) return;
  raise_rule("pipeline.one_split",
             "config: {}: {} is set too, and each of them says how the layers are cut; keep one",
             parameters.where(one), other);
}

void check_one_split(const Parameters& parameters) {
  keep_apart(parameters, {kPerChunk}, {kChunks});
  keep_apart(parameters, {kLayout}, {kChunks, kPerChunk, kFirst, kLast, kList, kEmbedding, kLoss});
  keep_apart(parameters, {kFirst, kLast}, {kPerChunk, kEmbedding, kLoss, kList});
}

void check_chunks_need_stages(const Parameters& parameters, int64_t pp) {
  const char* set = first_set(parameters, {kChunks, kPerChunk, kLayout});
  const bool is_one_chunk = set == kChunks && parameters.integer(kChunks) == 1;
  if (pp > 1 || set == nullptr || is_one_chunk) return;
  raise_rule("pipeline.chunks_need_stages",
             "config: {}: pieces per pipeline rank need more than one stage, and {} is 1; set "
             "{}=2 or more, or {}=null",
             parameters.where(set), kPp, kPp, set);
}

[[noreturn]] void raise_layout(const Parameters& parameters, const std::string& what) {
  raise_rule("pipeline.layout", "config: {}: {}; write for example \"Et*3|t*4|t*4|t*3,L\"",
             parameters.where(kLayout), what);
}

void check_layout_letters(const Parameters& parameters, const std::vector<std::string>& stages) {
  std::string letters;
  for (const std::string& stage : stages) letters += stage;
  const auto count = [&](char letter) {
    return static_cast<int64_t>(std::count(letters.begin(), letters.end(), letter));
  };
  const bool has_ends = stages.front().starts_with('E') && stages.back().ends_with('L');
  if (!has_ends || count('E') != 1 || count('L') != 1)
    raise_layout(parameters, "it must begin with the one E and end with the one L");
  if (count('t') != parameters.integer("num_layers"))
    raise_layout(parameters, fmt::format("its {} layers t are not num_layers={}", count('t'),
                                         parameters.integer("num_layers")));
  const int64_t mtp = parameters.optional_integer("mtp_num_layers").value_or(0);
  if (count('m') != mtp)
    raise_layout(parameters,
                 fmt::format("its {} layers m are not mtp_num_layers={}", count('m'), mtp));
  if (mtp > 0 && letters.find('m') < letters.rfind('t'))
    raise_layout(parameters, "a layer t stands behind a layer m");
}

std::vector<std::string> checked_layout(const Parameters& parameters, int64_t pp) {
  const auto stages = read_pipeline_layout(parameters.at(kLayout));
  if (!stages) raise_layout(parameters, "not stages of E, t, m and L between bars");
  check_layout_letters(parameters, *stages);
  const auto num_stages = static_cast<int64_t>(stages->size());
  if (num_stages % pp != 0)
    raise_layout(parameters,
                 fmt::format("its {} stages are not a multiple of {}={}", num_stages, kPp, pp));
  const auto holds_mtp = [](const std::string& stage) {
    return stage.find('m') != std::string::npos;
  };
  const auto first = std::find_if(stages->begin(), stages->end(), holds_mtp);
  if (first != stages->end() && (std::count_if(first, stages->end(), holds_mtp) != 1 ||
                                 first - stages->begin() < num_stages - pp))
    raise_layout(parameters, fmt::format("all layers m belong to one of the last {} stages", pp));
  return *stages;
}

// `layers` over `parts`, then over `chunks`.
void check_even(const Parameters& parameters, const char* key, int64_t layers, int64_t parts,
                int64_t chunks) {
  if (layers % parts != 0)
    raise_rule("layers.divisible",
               "config: {} does not divide num_layers={}; use {} (or uneven stages: "
               "decoder_first_pipeline_num_layers, "
               "decoder_last_pipeline_num_layers)",
               parameters.where(key), layers, divisor_list(layers));
  const int64_t per_rank = layers / parts;
  if (per_rank % chunks == 0) return;
  if (parameters.is_null(kChunks))
    raise_rule("pipeline.chunks_divide",
               "config: {}: num_layers={} do not go into {} stages of {} pieces each, which the "
               "schedule has; use num_layers={}",
               parameters.where(key), layers, parts, chunks,
               nearest_multiples(layers, parts * chunks));
  raise_rule("pipeline.chunks_divide",
             "config: {} does not divide the {} layers of a pipeline rank; use {}",
             parameters.where(kChunks), per_rank, divisor_list(per_rank));
}

void check_per_chunk(const Parameters& parameters, int64_t per_rank) {
  const int64_t per_chunk = parameters.optional_integer(kPerChunk).value_or(per_rank);
  if (per_chunk < 1 || per_rank % per_chunk != 0)
    raise_rule("pipeline.chunks_divide",
               "config: {} does not divide the {} layers of a pipeline rank; use {}",
               parameters.where(kPerChunk), per_rank, divisor_list(per_rank));
}

int64_t num_accounted(const Parameters& parameters) {
  return static_cast<int64_t>(parameters.boolean(kEmbedding)) +
         static_cast<int64_t>(parameters.boolean(kLoss));
}

// What is left between a first and a last stage of their own sizes.
struct Middle {
  int64_t layers = 0;
  int64_t ranks = 0;
};

Middle check_ends(const Parameters& parameters, int64_t layers, const CutShape& shape) {
  Middle middle{layers, shape.pp};
  for (const char* key : {kFirst, kLast}) {
    const auto size = parameters.optional_integer(key);
    if (!size) continue;
    if (*size < 1 || *size > layers || *size % shape.pieces != 0)
      raise_rule("pipeline.uneven",
                 "config: {}: a stage holds at least 1 of the num_layers={} layers, in {} equal "
                 "pieces; use a multiple of {}",
                 parameters.where(key), layers, shape.pieces, shape.pieces);
    middle.layers -= *size;
    --middle.ranks;
  }
  return middle;
}

// Layers of each rank with a first and a last stage of their own sizes.
std::vector<int64_t> uneven(const Parameters& parameters, int64_t layers, const CutShape& shape) {
  const Middle middle = check_ends(parameters, layers, shape);
  const bool is_even = middle.layers > 0 && middle.ranks > 0 && middle.layers % middle.ranks == 0 &&
                       middle.layers / middle.ranks % shape.pieces == 0;
  if (!is_even && (middle.layers != 0 || middle.ranks != 0))
    raise_rule("pipeline.uneven",
               "config: {}: it leaves {} layers for the {} stages between, in {} piece{} each; use "
               "sizes that leave a multiple of {}",
               parameters.where(first_set(parameters, {kFirst, kLast})), middle.layers,
               std::max<int64_t>(0, middle.ranks), shape.pieces, shape.pieces == 1 ? "" : "s",
               std::max<int64_t>(1, middle.ranks * shape.pieces));
  std::vector<int64_t> sizes(static_cast<size_t>(shape.pp),
                             middle.ranks > 0 ? middle.layers / middle.ranks : 0);
  if (const auto size = parameters.optional_integer(kFirst)) sizes.front() = *size;
  if (const auto size = parameters.optional_integer(kLast)) sizes.back() = *size;
  return sizes;
}

// Each rank's layers in equal pieces.
std::vector<int64_t> over_stages(const std::vector<int64_t>& of_rank, const CutShape& shape) {
  std::vector<int64_t> sizes;
  for (int64_t stage = 0; stage < shape.num_stages(); ++stage) {
    const int64_t rank = site_of(shape.placement, shape.pp, stage, 0).rank;
    sizes.push_back(of_rank[static_cast<size_t>(rank)] / shape.pieces);
  }
  return sizes;
}

// Embedding and loss count as a layer each.
std::vector<int64_t> accounted(const Parameters& parameters, int64_t layers,
                               const CutShape& shape) {
  const int64_t extra = num_accounted(parameters);
  const int64_t total = layers + extra;
  const int64_t per_rank = total / shape.pp;
  // What num_layers_per_virtual_pipeline_stage asks is checked as such.
  const int64_t pieces = parameters.is_null(kPerChunk) ? shape.pieces : 1;
  if (total % shape.pp != 0 || per_rank % pieces != 0)
    raise_rule("pipeline.accounted",
               "config: {}: num_layers={} and {} more do not go into {} stages of {} equal "
               "piece{}; use num_layers={}",
               parameters.where(first_set(parameters, {kEmbedding, kLoss})), layers, extra,
               shape.pp, pieces, pieces == 1 ? "" : "s",
               (total + shape.pp * pieces - 1) / (shape.pp * pieces) * shape.pp * pieces - extra);
  check_per_chunk(parameters, per_rank);
  std::vector<int64_t> sizes(static_cast<size_t>(shape.num_stages()), per_rank / shape.pieces);
  if (parameters.boolean(kEmbedding)) --sizes.front();
  if (parameters.boolean(kLoss)) --sizes.back();
  return sizes;
}

std::vector<int64_t> listed(const Parameters& parameters, int64_t layers, int64_t num_stages) {
  const Value& list = parameters.at(kList);
  std::vector<int64_t> sizes;
  int64_t sum = 0;
  for (const Value& item : list.list) {
    if (item.kind != ValueKind::kInt || item.integer < 0) break;
    sizes.push_back(std::min(item.integer, kMaxSize));
    sum = std::min(sum + sizes.back(), kMaxSize);
  }
  const bool is_valid = list.is_list() && sizes.size() == list.list.size() &&
                        static_cast<int64_t>(sizes.size()) == num_stages && sum == layers;
  if (is_valid) return sizes;
  raise_rule(
      "pipeline.list",
      "config: {}: {} numbers of layers are needed, one for each stage, and their sum must be "
      "num_layers={}; use null to cut evenly",
      parameters.where(kList), num_stages, layers);
}

std::vector<int64_t> written_out(const std::vector<std::string>& stages) {
  std::vector<int64_t> sizes;
  for (const std::string& stage : stages)
    sizes.push_back(static_cast<int64_t>(std::count(stage.begin(), stage.end(), 't')));
  return sizes;
}

std::vector<int64_t> even(const Parameters& parameters, int64_t layers, const CutShape& shape) {
  check_even(parameters, kPp, layers, shape.pp, parameters.is_null(kPerChunk) ? shape.pieces : 1);
  check_per_chunk(parameters, layers / shape.pp);
  return std::vector<int64_t>(static_cast<size_t>(shape.num_stages()), layers / shape.num_stages());
}

std::vector<int64_t> sizes_of(const Parameters& parameters, int64_t layers, const CutShape& shape) {
  if (!parameters.is_null(kLayout)) return written_out(checked_layout(parameters, shape.pp));
  if (first_set(parameters, {kFirst, kLast}) != nullptr)
    return over_stages(uneven(parameters, layers, shape), shape);
  if (num_accounted(parameters) > 0) return accounted(parameters, layers, shape);
  if (!parameters.is_null(kList)) return listed(parameters, layers, shape.num_stages());
  return even(parameters, layers, shape);
}

}  // namespace

void check_cut_keys(const Parameters& parameters, int64_t pp) {
  check_one_split(parameters);
  check_chunks_need_stages(parameters, pp);
}

std::optional<int64_t> pieces_asked(const Parameters& parameters, int64_t pp) {
  if (!parameters.is_null(kLayout))
    return static_cast<int64_t>(checked_layout(parameters, pp).size()) / pp;
  const int64_t layers = parameters.integer("num_layers") + num_accounted(parameters);
  if (const auto per_chunk = parameters.optional_integer(kPerChunk); per_chunk && *per_chunk > 0)
    return std::max<int64_t>(1, layers / pp / *per_chunk);
  const auto pieces = parameters.optional_integer(kChunks);
  if (pieces && *pieces < 1)
    raise_rule("pipeline.chunks_divide", "config: {}: must be at least 1; use 1 or null",
               parameters.where(kChunks));
  return pieces;
}

std::vector<StageLayers> cut_layers(const Parameters& parameters, const CutShape& shape) {
  std::vector<StageLayers> stages;
  int64_t next = 0;
  for (const int64_t size : sizes_of(parameters, parameters.integer("num_layers"), shape)) {
    stages.push_back({.first_layer = next, .num_layers = size});
    next += size;
  }
  stages.front().has_embedding = true;
  stages.back().has_head = true;
  return stages;
}

}  // namespace sevenfold::config
