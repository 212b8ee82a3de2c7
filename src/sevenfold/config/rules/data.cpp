#include <cmath>
#include <filesystem>
#include <sstream>

#include "sevenfold/config/rules/rules.h"
#include "sevenfold/config/split_weights.h"
#include "sevenfold/config/yaml/scalar.h"

namespace sevenfold::config {
namespace {

constexpr double kLargestWeight = 1e300;  // the sum of some is finite

// A string is cut at blanks; an item of a list stays whole, so a path may hold some.
std::vector<std::string> words(const Value& value) {
  std::vector<std::string> result;
  if (value.is_null()) return result;
  if (value.is_list()) {
    for (const Value& item : value.list)
      result.push_back(item.is_map() || item.is_list() ? brief(item) : item.text);
    return result;
  }
  std::istringstream text(value.is_map() ? brief(value) : value.text);
  for (std::string word; text >> word;) result.push_back(word);
  return result;
}

bool is_number(const std::string& word) {
  const Value value = retype_substituted(word);
  return value.kind == ValueKind::kInt || value.kind == ValueKind::kFloat;
}

// What keeps a list with numbers from being weights and prefixes in turn.
std::string misplaced_weight(const std::vector<std::string>& parts) {
  if (parts.size() % 2 != 0) return fmt::format("there are {} words, an odd number", parts.size());
  for (size_t i = 0; i < parts.size(); i += 2)
    if (!is_number(parts[i])) return fmt::format("`{}` is no number", parts[i]);
  return "";
}

// Megatron takes such words for file names; who writes a number means a weight.
void refuse_numbers(const Parameters& parameters, const char* key,
                    const std::vector<std::string>& prefixes) {
  for (size_t i = 0; i < prefixes.size(); ++i) {
    if (!is_number(prefixes[i])) continue;
    raise_rule(
        "data.weight",
        "config: {}: `{}` is a number, but the words are not weight prefix weight prefix ... "
        "({}); correct the list (a file of that name: ./{})",
        parameters.where(key), prefixes[i], misplaced_weight(prefixes), prefixes[i]);
  }
}

// Megatron's reading: an odd count, or an even one whose 1st, 3rd, ... words are not all numbers,
// is prefixes without weights.
BlendConfig read_blend(const Parameters& parameters, const char* key) {
  const std::vector<std::string> parts = words(parameters.at(key));
  BlendConfig blend{.where = parameters.where(key)};
  bool is_weighted = !parts.empty() && parts.size() % 2 == 0;
  for (size_t i = 0; i < parts.size() && is_weighted; i += 2) is_weighted = is_number(parts[i]);
  if (!is_weighted) {
    refuse_numbers(parameters, key, parts);
    blend.prefixes = parts;
    return blend;
  }
  for (size_t i = 0; i < parts.size(); i += 2) {
    const Value weight = retype_substituted(parts[i]);
    blend.weights.push_back(weight.kind == ValueKind::kInt ? static_cast<double>(weight.integer)
                                                           : weight.number);
    blend.prefixes.push_back(parts[i + 1]);
  }
  return blend;
}

// A set of weight 0 is left out, and said so: Megatron stops with an error there.
BlendConfig without_empty_shares(Parameters& parameters, const char* key,
                                 const BlendConfig& blend) {
  BlendConfig kept{.where = blend.where};
  std::string left_out;
  for (size_t i = 0; i < blend.weights.size(); ++i) {
    if (!(blend.weights[i] >= 0.0 && blend.weights[i] <= kLargestWeight))
      raise_rule(
          "data.weight",
          "config: {}: {} has the weight {}; a weight is a number of at least 0 (which leaves "
          "the set out) and at most {}",
          parameters.where(key), blend.prefixes[i], blend.weights[i], kLargestWeight);
    if (blend.weights[i] == 0.0) {
      left_out += (left_out.empty() ? "" : ", ") + blend.prefixes[i];
      continue;
    }
    kept.prefixes.push_back(blend.prefixes[i]);
    kept.weights.push_back(blend.weights[i]);
  }
  if (kept.empty())
    raise_rule("data.weight", "config: {}: every weight is 0; give one set a weight above 0",
               parameters.where(key));
  if (!left_out.empty())
    parameters.notice(fmt::format("{}: left out for their weight 0: {}", key, left_out));
  return kept;
}

BlendConfig resolve_blend(Parameters& parameters, const char* key) {
  const BlendConfig blend = read_blend(parameters, key);
  return blend.weights.empty() ? blend : without_empty_shares(parameters, key, blend);
}

void resolve_split(Parameters& parameters, DataConfig& data) {
  if (data.mock_data) {
    data.split = "1,1,1";
  } else if (const auto split = parameters.optional_string("split")) {
    data.split = *split;
    data.split_where = parameters.where("split");
    const std::string fault = read_split(*split).fault;
    if (!fault.empty() && !data.data.empty())
      raise_rule("data.split", "config: {}: {}", data.split_where, fault);
  } else if (!data.data.empty()) {
    parameters.notice(fmt::format("{}: read as `{}` (training, validation, test)",
                                  parameters.where("split"), data.split));
  }
}

// Text that is tokenized is meant to be trained on.
void check_prepared_is_read(const Parameters& parameters, const DataConfig& data) {
  if (!data.prepare) return;
  const std::filesystem::path output = data.prepare->output;
  for (const BlendConfig* blend : {&data.data, &data.train, &data.valid, &data.test})
    for (const std::string& prefix : blend->prefixes)
      if (std::filesystem::path(prefix).lexically_normal() == output.lexically_normal()) return;
  const char* key = data.data.empty() ? "train_data_path" : "data_path";
  raise_rule(
      "data.prepare",
      "config: {}: the text of sevenfold.prepare goes to output={}, which nothing would read; "
      "use {}=null to train on it, or sevenfold.prepare=null",
      parameters.where(key), data.prepare->output, key);
}

// Synthetic data needs no files, so no text is prepared for it.
void resolve_mock(Parameters& parameters, const SevenfoldBlock& block, DataConfig& data) {
  data.prepare.reset();
  if (block.prepare)
    parameters.notice(
        fmt::format("{}: not done, because mock_data=true reads no files", block.where("prepare")));
}

void resolve_sources(Parameters& parameters, const SevenfoldBlock& block, DataConfig& data) {
  data.data = resolve_blend(parameters, "data_path");
  data.train = resolve_blend(parameters, "train_data_path");
  data.valid = resolve_blend(parameters, "valid_data_path");
  data.test = resolve_blend(parameters, "test_data_path");
  if (!data.data.empty() && (!data.train.empty() || !data.valid.empty() || !data.test.empty()))
    raise_rule("data.one_source",
               "config: {}: a path of a part (train_data_path, valid_data_path or test_data_path) "
               "is set too; keep data_path (cut by split) or the paths of the parts",
               parameters.where("data_path"));
  const bool has_any = !data.data.empty() || !data.train.empty();
  if (has_any) check_prepared_is_read(parameters, data);
  if (!has_any && data.prepare)
    data.data = {.prefixes = {data.prepare->output}, .where = block.where("prepare")};
  if (!has_any && !data.prepare)
    parameters.unsupported("data_path",
                           fmt::format("config: {}: there is no training data; set data_path or "
                                       "train_data_path to a .bin/.idx prefix",
                                       parameters.where("data_path")));
}

// The generator of Megatron's order takes 32 bits.
void check_seed(const Parameters& parameters, const SevenfoldBlock& block) {
  constexpr int64_t kLargest = (int64_t{1} << 32) - 1;
  if (!block.shuffle || parameters.optional_integer("seed").value_or(0) <= kLargest) return;
  raise_rule(
      "data.seed",
      "config: {}: is above {}, the largest seed of Megatron's data order; use a smaller one",
      parameters.where("seed"), kLargest);
}

// The cyclic loader shuffles by itself, whatever the order of the data is.
void resolve_cyclic(Parameters& parameters, const SevenfoldBlock& block, DataConfig& data) {
  if (data.shuffle)
    data.loader = LoaderKind::kCyclic;
  else
    parameters.notice(fmt::format("{}: gives way to single, because {} asks for the file's order",
                                  parameters.where("dataloader_type"), block.where("shuffle")));
}

void resolve_order(Parameters& parameters, const SevenfoldBlock& block, DataConfig& data) {
  data.data_sharding = parameters.boolean("data_sharding");
  const auto type = parameters.optional_string("dataloader_type");
  if (!type || *type == "single") return;
  if (*type == "cyclic")
    resolve_cyclic(parameters, block, data);
  else if (*type == "external")
    parameters.unsupported(
        "dataloader_type",
        fmt::format("config: {} is not supported yet; use dataloader_type=single",
                    parameters.where("dataloader_type")));
  else
    raise_rule("data.loader", "config: {} is not a loader; use single or cyclic",
               parameters.where("dataloader_type"));
}

void resolve_cache(const Parameters& parameters, DataConfig& data) {
  data.cache_directory = parameters.optional_string("data_cache_path").value_or("");
  data.surplus = parameters.number("mid_level_dataset_surplus");
  if (!(data.surplus >= 0.0) || data.surplus > 1.0)
    raise_rule("data.surplus", "config: {}: must be at least 0 and at most 1; 0.005 is usual",
               parameters.where("mid_level_dataset_surplus"));
}

}  // namespace

DataConfig resolve_data(Parameters& parameters, const SevenfoldBlock& block,
                        const Vocabulary& vocabulary) {
  DataConfig data;
  data.prepare = block.prepare;
  data.shuffle = block.shuffle;
  data.eod_mask_loss = parameters.boolean("eod_mask_loss");
  data.reset_position_ids = parameters.boolean("reset_position_ids");
  data.reset_attention_mask = parameters.boolean("reset_attention_mask");
  data.eod_token_id = vocabulary.eod_token_id;
  data.pad_token_id = block.pad_token_id;
  data.mock_data = parameters.boolean("mock_data");
  if (data.mock_data)
    resolve_mock(parameters, block, data);
  else
    resolve_sources(parameters, block, data);
  resolve_split(parameters, data);
  check_seed(parameters, block);
  resolve_order(parameters, block, data);
  resolve_cache(parameters, data);
  return data;
}

}  // namespace sevenfold::config
