#include "sevenfold/config/sevenfold_block.h"

#include <algorithm>
#include <vector>

#include "sevenfold/config/parameters.h"
#include "sevenfold/core/error.h"

namespace sevenfold::config {
namespace {

const std::vector<std::string_view> kBlockKeys = {
    "ranks",         "backend",           "device",           "precision", "shuffle",
    "start",         "eod_token_id",      "pad_token_id",     "prepare",   "schedule",
    "schedule_file", "checkpoint_folder", "keep_checkpoints", "decay_all"};
const std::vector<std::string_view> kPrepareKeys = {
    "input",     "tokenizer",          "output",       "format", "json_key", "append_eod",
    "eod_token", "add_special_tokens", "skip_invalid", "workers"};

std::string place(const std::string& name, const Value& value) {
  return fmt::format("config: {} {}={}", value.origin.text(), name, brief(value));
}

void check_names(const Value& map, const std::string& prefix,
                 const std::vector<std::string_view>& known) {
  for (const auto& [key, value] : map.map) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const auto suggestion = suggest(key, known);
    std::string list;
    for (const std::string_view name : known)
      list += fmt::format("{}{}", list.empty() ? "" : ", ", name);
    raise<ConfigError>(
        "{}: there is no key {}{}; {}", place(prefix + key, value), prefix, key,
        suggestion ? "did you mean " + prefix + *suggestion + "?" : "use one of " + list);
  }
}

// The member as `type`; nothing if it is absent or null.
std::optional<Value> member(const Value& map, const std::string& prefix, const std::string& key,
                            KeyType type) {
  const Value* value = map.find(key);
  if (value == nullptr || value->is_null()) return std::nullopt;
  const auto coerced = coerce(*value, type);
  if (!coerced)
    raise<ConfigError>("{} is not {}; correct the value", place(prefix + key, *value),
                       type_name(type));
  return coerced->is_null() ? std::nullopt : coerced;
}

std::optional<std::string> string_member(const Value& map, const std::string& prefix,
                                         const std::string& key) {
  const auto value = member(map, prefix, key, KeyType::kString);
  return value ? std::optional(value->text) : std::nullopt;
}

std::optional<bool> flag_member(const Value& map, const std::string& key) {
  const auto value = member(map, "sevenfold.", key, KeyType::kBool);
  return value ? std::optional(value->boolean) : std::nullopt;
}

std::optional<int64_t> integer_member(const Value& map, const std::string& key) {
  const auto value = member(map, "sevenfold.", key, KeyType::kInt);
  return value ? std::optional(value->integer) : std::nullopt;
}

void read_prepare_options(const Value& prepare, PrepareConfig& result) {
  const std::string prefix = "sevenfold.prepare.";
  const auto read_text = [&](const std::string& key, std::string& into) {
    if (const auto text = string_member(prepare, prefix, key)) into = *text;
  };
  const auto read_flag = [&](const std::string& key, bool& into) {
    if (const auto flag = member(prepare, prefix, key, KeyType::kBool)) into = flag->boolean;
  };
  read_text("format", result.format);
  read_text("json_key", result.json_key);
  read_text("eod_token", result.eod_token);
  read_flag("append_eod", result.append_eod);
  read_flag("add_special_tokens", result.add_special_tokens);
  read_flag("skip_invalid", result.skip_invalid);
  if (const auto workers = member(prepare, prefix, "workers", KeyType::kInt))
    result.workers = workers->integer;
}

PrepareConfig read_prepare(const Value& prepare) {
  if (!prepare.is_map())
    raise<ConfigError>("{}: a map with input, tokenizer and output is needed",
                       place("sevenfold.prepare", prepare));
  check_names(prepare, "sevenfold.prepare.", kPrepareKeys);
  PrepareConfig result;
  const Value* input = prepare.find("input");
  if (input != nullptr && input->is_string()) result.inputs = {input->text};
  if (input != nullptr && input->is_list())
    for (const Value& item : input->list)
      result.inputs.push_back(item.is_string() ? item.text : brief(item));
  if (result.inputs.empty())
    raise<ConfigError>("{}: the key input is missing or empty; write input: [\"/usr/share/doc/*\"]",
                       place("sevenfold.prepare", prepare));
  if (const auto tokenizer = string_member(prepare, "sevenfold.prepare.", "tokenizer"))
    result.tokenizer = *tokenizer;
  const auto output = string_member(prepare, "sevenfold.prepare.", "output");
  if (!output || output->empty())
    raise<ConfigError>(
        "{}: the key output is missing; write output: PREFIX of the .bin and .idx files",
        place("sevenfold.prepare", prepare));
  result.output = *output;
  read_prepare_options(prepare, result);
  return result;
}

}  // namespace

std::string SevenfoldBlock::where(const std::string& key) const {
  if (const auto other = wheres.find(key); other != wheres.end()) return other->second;
  const Value* value = written.find(key);
  return value == nullptr
             ? "sevenfold." + key
             : fmt::format("{} sevenfold.{}={}", value->origin.text(), key, brief(*value));
}

SevenfoldBlock read_sevenfold_block(const Value& block) {
  check_names(block, "sevenfold.", kBlockKeys);
  SevenfoldBlock result;
  result.written = block;
  result.ranks = integer_member(block, "ranks");
  result.backend = string_member(block, "sevenfold.", "backend");
  result.device = string_member(block, "sevenfold.", "device");
  result.precision = string_member(block, "sevenfold.", "precision");
  result.start = string_member(block, "sevenfold.", "start");
  result.schedule = string_member(block, "sevenfold.", "schedule");
  result.schedule_file = string_member(block, "sevenfold.", "schedule_file");
  result.eod_token_id = integer_member(block, "eod_token_id");
  result.pad_token_id = integer_member(block, "pad_token_id");
  result.checkpoint_folder = string_member(block, "sevenfold.", "checkpoint_folder");
  result.keep_checkpoints = integer_member(block, "keep_checkpoints");
  result.shuffle = flag_member(block, "shuffle").value_or(true);
  result.decay_all = flag_member(block, "decay_all");
  if (const Value* prepare = block.find("prepare"); prepare != nullptr && !prepare->is_null())
    result.prepare = read_prepare(*prepare);
  if (result.eod_token_id && *result.eod_token_id < 0)
    raise<ConfigError>("config: {}: a token id is 0 or more; correct the value",
                       result.where("eod_token_id"));
  return result;
}

}  // namespace sevenfold::config
