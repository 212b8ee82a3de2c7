#include <filesystem>
#include <sstream>

#include "sevenfold/config/rules/rules.h"
#include "sevenfold/config/yaml/scalar.h"

namespace sevenfold::config {
namespace {

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

// One prefix, or `weight prefix`. Several are a blend.
std::string single_prefix(Parameters& parameters, const char* key) {
  const std::vector<std::string> parts = words(parameters.at(key));
  if (parts.empty()) return "";
  if (parts.size() == 1) return parts[0];
  if (parts.size() == 2 && is_number(parts[0])) return parts[1];
  parameters.unsupported(
      key,
      fmt::format("config: {}: blending several data sets is not supported yet; name one prefix",
                  parameters.where(key)));
  return is_number(parts[0]) ? parts[1] : parts[0];
}

void resolve_split(Parameters& parameters, DataConfig& data) {
  if (const auto split = parameters.optional_string("split")) {
    data.split = *split;  // read when the data is opened
  } else if (!data.data_prefix.empty()) {
    parameters.notice(fmt::format("{}: read as `{}` (training, validation, test)",
                                  parameters.where("split"), data.split));
  }
}

// Text that is tokenized is meant to be trained on.
void check_prepared_is_read(const Parameters& parameters, const DataConfig& data) {
  if (!data.prepare) return;
  const std::filesystem::path output = data.prepare->output;
  for (const std::string& prefix : {data.data_prefix, data.train_prefix, data.valid_prefix})
    if (std::filesystem::path(prefix).lexically_normal() == output.lexically_normal()) return;
  const char* key = data.data_prefix.empty() ? "train_data_path" : "data_path";
  raise_rule(
      "data.prepare",
      "config: {}: the text of sevenfold.prepare goes to output={}, which nothing would read; "
      "use {}=null to train on it, or sevenfold.prepare=null",
      parameters.where(key), data.prepare->output, key);
}

void resolve_sources(Parameters& parameters, DataConfig& data) {
  data.mock_data = parameters.boolean("mock_data");
  if (data.mock_data) {
    parameters.unsupported(
        "mock_data", fmt::format("config: {}: synthetic data is not supported yet by `train`; use "
                                 "mock_data=false and set train_data_path",
                                 parameters.where("mock_data")));
    return;  // its paths are dropped, as in Primus
  }
  data.data_prefix = single_prefix(parameters, "data_path");
  data.train_prefix = single_prefix(parameters, "train_data_path");
  data.valid_prefix = single_prefix(parameters, "valid_data_path");
  if (!data.data_prefix.empty() && (!data.train_prefix.empty() || !data.valid_prefix.empty()))
    raise_rule("data.one_source",
               "config: {}: train_data_path or valid_data_path is set too; keep data_path (cut by "
               "split) or the paths of the parts",
               parameters.where("data_path"));
  const bool has_any = !data.data_prefix.empty() || !data.train_prefix.empty();
  if (has_any) check_prepared_is_read(parameters, data);
  if (!has_any && data.prepare) data.data_prefix = data.prepare->output;
  if (!has_any && !data.prepare)
    parameters.unsupported("data_path",
                           fmt::format("config: {}: there is no training data; set data_path or "
                                       "train_data_path to a .bin/.idx prefix",
                                       parameters.where("data_path")));
}

void resolve_end_of_document(Parameters& parameters, const SevenfoldBlock& block,
                             int64_t vocab_size, DataConfig& data) {
  constexpr int64_t kByteEndOfDocument = 256;
  data.eod_token_id = block.eod_token_id;
  if (!data.eod_token_id && data.prepare && data.prepare->tokenizer == "byte")
    data.eod_token_id = kByteEndOfDocument;
  if (data.eod_token_id && *data.eod_token_id >= vocab_size)
    raise_rule(
        "data.eod",
        "config: {}: the end of a document is token {}, beyond vocab_size={}; use an id below it",
        block.where("eod_token_id"), *data.eod_token_id, vocab_size);
  if (data.eod_mask_loss && !data.eod_token_id && !data.mock_data)
    parameters.unsupported(
        "eod_token_id", fmt::format("config: {}: reading the id of the end of a document from the "
                                    "tokenizer is not supported yet; set sevenfold.eod_token_id",
                                    parameters.where("eod_mask_loss")));
}

void resolve_order(Parameters& parameters) {
  const auto type = parameters.optional_string("dataloader_type");
  if (!type || *type == "single") return;
  if (*type == "cyclic")
    parameters.notice(fmt::format(
        "{}: runs as `single` (every layout reads the same global batches) until its sampler "
        "is there",
        parameters.where("dataloader_type")));
  else if (*type == "external")
    parameters.unsupported(
        "dataloader_type",
        fmt::format("config: {} is not supported yet; use dataloader_type=single",
                    parameters.where("dataloader_type")));
  else
    raise_rule("data.loader", "config: {} is not a loader; use single or cyclic",
               parameters.where("dataloader_type"));
}

}  // namespace

DataConfig resolve_data(Parameters& parameters, const SevenfoldBlock& block, int64_t vocab_size) {
  DataConfig data;
  data.prepare = block.prepare;
  data.shuffle = block.shuffle;
  data.eod_mask_loss = parameters.boolean("eod_mask_loss");
  resolve_sources(parameters, data);
  resolve_end_of_document(parameters, block, vocab_size, data);
  resolve_split(parameters, data);
  resolve_order(parameters);
  return data;
}

}  // namespace sevenfold::config
