#include "sevenfold/dataset/text/bpe/tokenizer_json.h"

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "sevenfold/core/error.h"
#include "sevenfold/dataset/text/bpe/regex_dialect.h"

namespace sevenfold {
namespace {

using Json = nlohmann::json;

// GPT-2's pattern, which the ByteLevel step applies by itself.
constexpr std::string_view kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// One object of the file, with its place for messages.
class Node {
 public:
  Node(const Json& json, std::string where) : json_(&json), where_(std::move(where)) {}

  const Json& json() const { return *json_; }
  const std::string& where() const { return where_; }
  bool is_null() const { return json_->is_null(); }

  // A member, null if it is not there.
  Node operator[](const std::string& key) const {
    static const Json kNull;
    const auto found = json_->is_object() ? json_->find(key) : json_->end();
    return {found != json_->end() ? *found : kNull, where_ + "." + key};
  }
  std::vector<Node> items() const {
    if (!json_->is_array()) raise<ConfigError>("{} is no list; the file is damaged", where_);
    std::vector<Node> nodes;
    for (size_t i = 0; i < json_->size(); ++i)
      nodes.emplace_back((*json_)[i], fmt::format("{}[{}]", where_, i));
    return nodes;
  }
  std::string text() const {
    if (!json_->is_string()) raise<ConfigError>("{} is no string; the file is damaged", where_);
    return json_->get<std::string>();
  }
  bool flag(bool if_null) const {
    if (json_->is_null()) return if_null;
    if (!json_->is_boolean()) raise<ConfigError>("{} is neither true nor false", where_);
    return json_->get<bool>();
  }
  int64_t id() const {
    if (!json_->is_number_unsigned() || json_->get<uint64_t>() > 0x7fffffff)
      raise<ConfigError>("{} is no token id; the file is damaged", where_);
    return json_->get<int64_t>();
  }
  // A setting in use that is not there: the way out is the same for all.
  [[noreturn]] void refuse(std::string_view what) const {
    raise<ConfigError>(
        "{}: {} is not supported (byte-level BPE is); use the model's SentencePiece .model file "
        "where there is one, or tokenize with the library that made the file and name the "
        "resulting PREFIX",
        where_, what);
  }
  // Every member is one that the reader looks at or that cannot change ids.
  void allow_only(std::initializer_list<std::string_view> keys) const {
    if (!json_->is_object()) raise<ConfigError>("{} is no object; the file is damaged", where_);
    for (const auto& [key, value] : json_->items())
      if (std::find(keys.begin(), keys.end(), key) == keys.end())
        (*this)[key].refuse("this setting");
  }

 private:
  const Json* json_;
  std::string where_;
};

std::string type_of(const Node& node) {
  return node["type"].text();
}

void read_normalizer(const Node& node, BpeDescription& description) {
  if (node.is_null()) return;
  const std::string type = type_of(node);
  if (type == "Sequence") {
    node.allow_only({"type", "normalizers"});
    for (const Node& item : node["normalizers"].items()) read_normalizer(item, description);
  } else if (type == "NFC") {
    description.normal_forms.push_back(NormalForm::kNfc);
  } else if (type == "NFD") {
    description.normal_forms.push_back(NormalForm::kNfd);
  } else if (type == "NFKC") {
    description.normal_forms.push_back(NormalForm::kNfkc);
  } else if (type == "NFKD") {
    description.normal_forms.push_back(NormalForm::kNfkd);
  } else {
    node.refuse("normalizer " + type);
  }
}

// The text as a pattern that matches just it.
std::string escape_literal(const std::string& text) {
  std::string pattern;
  for (const char c : text) {
    if (c > ' ' && c < 0x7f && std::isalnum(static_cast<unsigned char>(c)) == 0) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

std::string read_pattern(const Node& pattern) {
  pattern.allow_only({"Regex", "String"});
  if (!pattern["Regex"].is_null())
    return translate_pattern(pattern["Regex"].text(), pattern.where());
  return escape_literal(pattern["String"].text());
}

SplitBehavior read_behavior(const Node& split) {
  const std::string behavior = split["behavior"].text();
  if (behavior == "Isolated") return SplitBehavior::kIsolated;
  if (behavior != "Removed") split["behavior"].refuse("behavior " + behavior);
  return split["invert"].flag(false) ? SplitBehavior::kKeepMatches : SplitBehavior::kDropMatches;
}

void read_byte_level(const Node& node, BpeDescription& description) {
  node.allow_only({"type", "add_prefix_space", "trim_offsets", "use_regex"});
  description.add_prefix_space = node["add_prefix_space"].flag(true);
  if (node["use_regex"].flag(true))
    description.last_split = SplitStep{translate_pattern(kByteLevelPattern, node.where())};
}

// Returns whether the step was the ByteLevel one, which has to be the last.
bool read_pre_tokenizer(const Node& node, BpeDescription& description) {
  const std::string type = node.is_null() ? "null" : type_of(node);
  if (type == "Sequence") {
    node.allow_only({"type", "pretokenizers"});
    bool had_byte_level = false;
    for (const Node& item : node["pretokenizers"].items()) {
      if (had_byte_level) item.refuse("a step after ByteLevel");
      had_byte_level = read_pre_tokenizer(item, description);
    }
    return had_byte_level;
  }
  if (type == "ByteLevel") {
    read_byte_level(node, description);
    return true;
  }
  if (type == "Split") {
    node.allow_only({"type", "pattern", "behavior", "invert"});
    description.splits.push_back({read_pattern(node["pattern"]), read_behavior(node)});
  } else if (type == "Digits") {
    node.allow_only({"type", "individual_digits"});
    description.splits.push_back({node["individual_digits"].flag(false) ? "\\p{N}" : "\\p{N}+"});
  } else {
    node.refuse("pre-tokenizer " + type);
  }
  return false;
}

std::pair<std::string, std::string> read_merge(const Node& node) {
  if (node.json().is_array() && node.json().size() == 2)
    return {node.items()[0].text(), node.items()[1].text()};
  const std::string both = node.text();
  const size_t space = both.find(' ');
  if (space == std::string::npos || both.find(' ', space + 1) != std::string::npos)
    raise<ConfigError>("{} is no pair of tokens; the file is damaged", node.where());
  return {both.substr(0, space), both.substr(space + 1)};
}

void read_model(const Node& model, BpeDescription& description) {
  // Older files leave the type out.
  if (!model["type"].is_null() && type_of(model) != "BPE") model.refuse("model " + type_of(model));
  model.allow_only({"type", "dropout", "unk_token", "continuing_subword_prefix",
                    "end_of_word_suffix", "fuse_unk", "byte_fallback", "ignore_merges", "vocab",
                    "merges"});
  const Json& dropout = model["dropout"].json();
  if (!dropout.is_null() && dropout != 0.0) model["dropout"].refuse("dropout");
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (!model[key].is_null() && model[key].text() != "") model[key].refuse("a mark on tokens");
  // unk_token, fuse_unk and byte_fallback speak of characters without a token; the tokenizer
  // demands one for every byte.
  description.ignore_merges = model["ignore_merges"].flag(false);
  const Node vocab = model["vocab"];
  if (!vocab.json().is_object())
    raise<ConfigError>("{} is no object; the file is damaged", vocab.where());
  for (const auto& [token, id] : vocab.json().items())
    description.vocab.emplace_back(token, Node(id, vocab.where()).id());
  for (const Node& merge : model["merges"].items()) description.merges.push_back(read_merge(merge));
}

// The library gives an added token the id of the vocabulary, else the next free one, whatever the
// file says; where the two differ, nobody knows which one a model was trained with.
void check_added_ids(const Node& added, const BpeDescription& description) {
  const std::unordered_map<std::string, int64_t> vocab(description.vocab.begin(),
                                                       description.vocab.end());
  const auto vocab_size = static_cast<int64_t>(vocab.size());
  int64_t next = vocab_size;
  for (const AddedToken& token : description.added_tokens) {
    const auto known = vocab.find(token.content);
    const int64_t expected = known != vocab.end() ? known->second : next;
    if (token.id != expected)
      raise<ConfigError>(
          "{}: token \"{}\" has id {}, but Hugging Face's library gives it {} (the vocabulary's, "
          "else the next free one); mend the file",
          added.where(), token.content, token.id, expected);
    if (token.id >= next) next = token.id + 1;
  }
}

void read_added_tokens(const Node& added, BpeDescription& description) {
  if (added.is_null()) return;
  for (const Node& node : added.items()) {
    node.allow_only({"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
    AddedToken token{.id = node["id"].id(),
                     .content = node["content"].text(),
                     .single_word = node["single_word"].flag(false),
                     .takes_spaces_before = node["lstrip"].flag(false),
                     .takes_spaces_after = node["rstrip"].flag(false),
                     .is_normalized = node["normalized"].flag(!node["special"].flag(false))};
    if (token.content.empty())
      raise<ConfigError>("{}: an added token without content; mend the file", node.where());
    description.added_tokens.push_back(std::move(token));
  }
  check_added_ids(added, description);
}

void read_template(const Node& node, BpeDescription& description) {
  bool is_before = true;
  for (const Node& item : node["single"].items()) {
    if (!item["Sequence"].is_null()) {
      is_before = false;
      continue;
    }
    const std::string token = item["SpecialToken"]["id"].text();
    for (const Node& id : node["special_tokens"][token]["ids"].items())
      (is_before ? description.ids_before : description.ids_after).push_back(id.id());
  }
}

void read_post_processor(const Node& node, BpeDescription& description) {
  if (node.is_null()) return;
  const std::string type = type_of(node);
  if (type == "ByteLevel") return;  // only trims offsets
  if (type == "TemplateProcessing") return read_template(node, description);
  if (type != "Sequence") node.refuse("post-processor " + type);
  for (const Node& item : node["processors"].items()) read_post_processor(item, description);
}

}  // namespace

BpeDescription read_tokenizer_json(const std::string& path, std::string_view json,
                                   bool with_special_tokens) {
  Json document;
  try {
    document = Json::parse(json);
  } catch (const Json::exception& error) {
    raise<ConfigError>("dataset: {} is no JSON ({}); fetch the file again", path, error.what());
  }
  const Node root(document, "dataset: " + path + ": tokenizer");
  root.allow_only({"version", "truncation", "padding", "added_tokens", "normalizer",
                   "pre_tokenizer", "post_processor", "decoder", "model"});
  BpeDescription description;
  read_model(root["model"], description);
  read_normalizer(root["normalizer"], description);
  if (!read_pre_tokenizer(root["pre_tokenizer"], description))
    root["pre_tokenizer"].refuse("a pre-tokenizer without ByteLevel");
  read_added_tokens(root["added_tokens"], description);
  if (with_special_tokens) read_post_processor(root["post_processor"], description);
  return description;
}

}  // namespace sevenfold
