#include <algorithm>

#include "sevenfold/config/rules/pipeline_layout.h"
#include "sevenfold/config/rules/rules.h"

// How the layers are cut into stages and pieces.

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
  if (letters.empty() || letters.front() != 'E' || letters.back() != 'L' || count('E') != 1 ||
      count('L') != 1)
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

int64_t layout_chunks(const Parameters& parameters, int64_t pp) {
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
  return num_stages / pp;
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
  if (chunks < 1 || per_rank % chunks != 0)
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

// First and last stage of their own sizes.
void check_uneven(const Parameters& parameters, int64_t layers, int64_t pp, int64_t chunks) {
  int64_t middle_layers = layers;
  int64_t middle_stages = pp;
  for (const char* key : {kFirst, kLast}) {
    const auto size = parameters.optional_integer(key);
    if (!size) continue;
    if (*size < 1 || *size > layers || *size % chunks != 0)
      raise_rule("pipeline.uneven",
                 "config: {}: a stage holds at least 1 of the num_layers={} layers, in {} equal "
                 "pieces; use a multiple of {}",
                 parameters.where(key), layers, chunks, chunks);
    middle_layers -= *size;
    --middle_stages;
  }
  const bool is_left = middle_layers > 0 && middle_stages > 0;
  const bool is_even =
      is_left && middle_layers % middle_stages == 0 && middle_layers / middle_stages % chunks == 0;
  if (is_even || (middle_layers == 0 && middle_stages == 0)) return;
  raise_rule("pipeline.uneven",
             "config: {}: it leaves {} layers for the {} stages between, in {} piece{} each; use "
             "sizes that leave a multiple of {}",
             parameters.where(first_set(parameters, {kFirst, kLast})), middle_layers, middle_stages,
             chunks, chunks == 1 ? "" : "s", std::max<int64_t>(1, middle_stages * chunks));
}

// Embedding and loss count as a layer each.
void check_accounted(const Parameters& parameters, int64_t layers, int64_t pp, int64_t chunks) {
  const int64_t extra = static_cast<int64_t>(parameters.boolean(kEmbedding)) +
                        static_cast<int64_t>(parameters.boolean(kLoss));
  const int64_t total = layers + extra;
  const int64_t per_rank = total / pp;
  if (total % pp != 0 || per_rank % chunks != 0)
    raise_rule(
        "pipeline.accounted",
        "config: {}: num_layers={} and {} more do not go into {} stages of {} equal "
        "piece{}; use num_layers={}",
        parameters.where(first_set(parameters, {kEmbedding, kLoss})), layers, extra, pp, chunks,
        chunks == 1 ? "" : "s",
        std::max<int64_t>(1, (total + pp * chunks - 1) / (pp * chunks) * pp * chunks - extra));
  check_per_chunk(parameters, per_rank);
}

void check_list(const Parameters& parameters, int64_t layers, int64_t num_stages) {
  const Value& list = parameters.at(kList);
  int64_t sum = 0;
  bool is_valid = list.is_list() && static_cast<int64_t>(list.list.size()) == num_stages;
  for (const Value& item : list.list) {
    is_valid = is_valid && item.kind == ValueKind::kInt && item.integer >= 0;
    if (is_valid) sum = std::min(sum + std::min(item.integer, kMaxSize), kMaxSize);
  }
  if (is_valid && sum == layers) return;
  raise_rule(
      "pipeline.list",
      "config: {}: {} numbers of layers are needed, one for each stage, and their sum must be "
      "num_layers={}; use null to cut evenly",
      parameters.where(kList), num_stages, layers);
}

int64_t chunks_of(const Parameters& parameters, int64_t layers, int64_t pp) {
  if (!parameters.is_null(kLayout)) return layout_chunks(parameters, pp);
  if (const auto per_chunk = parameters.optional_integer(kPerChunk); per_chunk && *per_chunk > 0)
    return std::max<int64_t>(1, layers / pp / *per_chunk);
  return parameters.optional_integer(kChunks).value_or(1);
}

void check_cut(const Parameters& parameters, int64_t layers, int64_t pp, int64_t chunks) {
  if (chunks < 1)
    raise_rule("pipeline.chunks_divide", "config: {}: must be at least 1; use 1 or null",
               parameters.where(kChunks));
  if (!parameters.is_null(kLayout)) return;
  if (first_set(parameters, {kFirst, kLast}) != nullptr)
    return check_uneven(parameters, layers, pp, chunks);
  if (first_set(parameters, {kEmbedding, kLoss}) != nullptr)
    return check_accounted(parameters, layers, pp, parameters.is_null(kPerChunk) ? chunks : 1);
  if (!parameters.is_null(kList)) return check_list(parameters, layers, pp * chunks);
  check_even(parameters, kPp, layers, pp, parameters.is_null(kPerChunk) ? chunks : 1);
  check_per_chunk(parameters, layers / pp);
}

void note_derived(Parameters& parameters, int64_t chunks) {
  constexpr const char* kDerived = "virtual_pipeline_model_parallel_size";
  const auto asked = parameters.optional_integer(kDerived);
  if (asked && *asked != chunks)
    parameters.notice(fmt::format("{}: derived, not an input, so it is ignored; use {}",
                                  parameters.where(kDerived), kChunks));
}

}  // namespace

int64_t pipeline_chunks(const Parameters& parameters, int64_t pp) {
  return chunks_of(parameters, parameters.integer("num_layers"), pp);
}

void check_pipeline(Parameters& parameters, const MeshShape& mesh) {
  check_one_split(parameters);
  check_chunks_need_stages(parameters, mesh.pp);
  const int64_t layers = parameters.integer("num_layers");
  // The model rules refuse a number of layers that makes no sense.
  if (layers < 1 || layers > kMaxSize) return;
  const int64_t chunks = chunks_of(parameters, layers, mesh.pp);
  check_cut(parameters, layers, mesh.pp, chunks);
  note_derived(parameters, chunks);
  if (chunks > 1 && mesh.pp <= 2 && !parameters.boolean("overlap_p2p_comm"))
    raise_rule("pipeline.overlap",
               "config: {}: {} pieces per rank need more than 2 stages then, and {} is {}; use "
               "overlap_p2p_comm=true or {}=4",
               parameters.where("overlap_p2p_comm"), chunks, kPp, mesh.pp, kPp);
}

}  // namespace sevenfold::config
