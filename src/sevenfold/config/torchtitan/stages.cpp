#include "sevenfold/config/torchtitan/stages.h"

#include <algorithm>

#include "sevenfold/config/torchtitan/parts.h"

namespace sevenfold::config {
namespace {

constexpr const char* kModules = "parallelism.module_fqns_per_model_part";
constexpr const char* kPerStage = "parallelism.pipeline_parallel_layers_per_stage";
constexpr const char* kFirst = "parallelism.pipeline_parallel_first_stage_less_layers";
constexpr const char* kLast = "parallelism.pipeline_parallel_last_stage_less_layers";
constexpr const char* kPp = "parallelism.pipeline_parallel_degree";

int64_t weight(const Parameters& own, const char* key) {
  const int64_t value = own.integer(key);
  if (value < 0 || value > kMaxLayers)
    raise_rule("pipeline.weight", "config: {}: must be at least 0 and at most {}", own.where(key),
               kMaxLayers);
  return value;
}

int64_t count_stages(const Parameters& own, int64_t layers, int64_t usual) {
  const auto per_stage = own.optional_integer(kPerStage);
  if (!per_stage) return usual;
  if (*per_stage < 1)
    raise_rule("pipeline.stages", "config: {}: must be at least 1; use null", own.where(kPerStage));
  return 1 + (layers - 1) / *per_stage;  // rounded up; any size of a stage may be asked for
}

void check_share(const Parameters& own, const char* key, int64_t ends, int64_t share) {
  if (ends > share)
    raise_rule(
        "pipeline.share",
        "config: {}: a stage has {} layer{}, embedding and output counted, and this is more; "
        "use at most {}, or fewer stages",
        own.where(key), share, share == 1 ? "" : "s", share);
}

std::vector<int64_t> even_sizes(const Parameters& own, int64_t num_layers, StageSizes& stages,
                                int64_t usual) {
  const int64_t first = weight(own, kFirst);
  const int64_t last = weight(own, kLast);
  const int64_t layers = num_layers + first + last;
  const int64_t num_stages = count_stages(own, layers, usual);
  if (num_stages > layers)
    raise_rule(
        "pipeline.stages",
        "config: {}: {} stages for {} layers, embedding and output counted; use fewer stages",
        stages.where, num_stages, layers);
  const int64_t share = layers / num_stages;
  check_share(own, kFirst, first, share);
  check_share(own, kLast, last, share);
  std::vector<int64_t> sizes(static_cast<size_t>(num_stages), share);
  std::for_each_n(sizes.begin(), layers % num_stages, [](int64_t& size) { ++size; });
  sizes.front() -= first;
  sizes.back() -= last;
  return sizes;
}

[[noreturn]] void raise_modules(const Parameters& own, const std::string& what) {
  raise_rule("pipeline.modules",
             "config: {}: {}; write for example [[tok_embeddings, layers.0], [layers.1, norm, "
             "output]]",
             own.where(kModules), what);
}

// The names in the order in which the model runs them.
std::vector<std::string> all_modules(int64_t num_layers) {
  std::vector<std::string> names{"tok_embeddings"};
  for (int64_t layer = 0; layer < num_layers; ++layer)
    names.push_back("layers." + std::to_string(layer));
  names.insert(names.end(), {"norm", "output"});
  return names;
}

void check_order(const Parameters& own, const std::vector<std::string>& names, int64_t num_layers) {
  const std::vector<std::string> expected = all_modules(num_layers);
  for (size_t i = 0; i < std::max(names.size(), expected.size()); ++i) {
    if (i >= names.size()) raise_modules(own, expected[i] + " is missing");
    if (i >= expected.size()) raise_modules(own, names[i] + " is too many");
    if (names[i] != expected[i])
      raise_modules(own, fmt::format("{} stands where the model has {}", names[i], expected[i]));
  }
}

std::vector<int64_t> listed_sizes(const Parameters& own, int64_t num_layers) {
  const Value& parts = own.at(kModules);
  std::vector<std::string> names;
  std::vector<int64_t> sizes;
  for (const Value& part : parts.list) {
    if (!part.is_list()) raise_modules(own, "a list of names is needed for every stage");
    sizes.push_back(0);
    for (const Value& name : part.list) {
      names.push_back(name.text);
      sizes.back() += name.text.starts_with("layers.") ? 1 : 0;
    }
  }
  if (sizes.empty()) raise_modules(own, "a list of names is needed for every stage");
  check_order(own, names, num_layers);
  // Only the first stage reads tokens, and only the last one knows the loss.
  if (parts.list.front().list.empty()) raise_modules(own, "the first stage is empty");
  if (parts.list.back().list.size() < 2) raise_modules(own, "norm and output belong to one stage");
  return sizes;
}

}  // namespace

StageSizes stage_sizes(const Parameters& own, int64_t num_layers, int64_t usual) {
  StageSizes stages;
  stages.key = !own.is_null(kModules) ? kModules : !own.is_null(kPerStage) ? kPerStage : kPp;
  stages.where = own.where(stages.key);
  stages.layers = stages.key == kModules ? listed_sizes(own, num_layers)
                                         : even_sizes(own, num_layers, stages, usual);
  return stages;
}

}  // namespace sevenfold::config
