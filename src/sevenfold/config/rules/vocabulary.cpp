#include <filesystem>

#include "sevenfold/config/rules/rules.h"

namespace sevenfold::config {
namespace {

constexpr int64_t kByteVocabulary = 257;  // ids 0-255 and the end of a document
constexpr int64_t kByteEndOfDocument = 256;
// Stands in where the size is not known, so that `config` can show the rest.
constexpr int64_t kUnknownVocabulary = 131072;

bool prepares_bytes(const SevenfoldBlock& block) {
  return block.prepare && block.prepare->tokenizer == "byte";
}

// Keys that give the end of a document a meaning; the first one that does.
const char* reader_of_end_of_document(const Parameters& parameters) {
  for (const char* key : {"eod_mask_loss", "reset_position_ids", "reset_attention_mask"})
    if (parameters.boolean(key)) return key;
  return nullptr;
}

class Tokenizer {
 public:
  Tokenizer(Parameters& parameters, const SevenfoldBlock& block, const LoadOptions& options)
      : parameters_(parameters), options_(options) {
    const bool is_prepared = block.prepare.has_value();
    path_ = is_prepared ? block.prepare->tokenizer
                        : parameters.optional_string("tokenizer_model").value_or("");
    if (is_prepared) eod_token_ = block.prepare->eod_token;
    where_ =
        "config: " + (is_prepared ? block.where("prepare") : parameters.where("tokenizer_model"));
  }

  // Facts of the tokenizer, opened on the first call; nothing, with the reason among the
  // unsupported values, if that cannot be. `key` lacks a value, `what` it should say.
  std::optional<TokenizerFacts> facts(const char* key, const char* what) {
    if (facts_) return facts_;
    const std::string reason = obstacle();
    if (reason.empty()) {
      facts_ = options_.tokenizer_facts(
          {parameters_.optional_string("tokenizer_type").value_or(""), path_, eod_token_});
      return facts_;
    }
    const bool is_ours = std::string_view(key) == "eod_token_id";
    parameters_.unsupported(
        key,
        fmt::format("{}: {}, and {} is needed; set {}{}, or name a tokenizer.json, a .model file "
                    "or a folder with one",
                    where_, reason, what, is_ours ? "sevenfold." : "", key));
    return std::nullopt;
  }

  const std::string& where() const { return where_; }

 private:
  std::string obstacle() const {
    if (path_.empty()) return "no tokenizer is named";
    std::error_code ignored;
    if (!std::filesystem::exists(path_, ignored)) return "there is no such file or folder here";
    return options_.tokenizer_facts ? "" : "this program opens no tokenizers";
  }

  Parameters& parameters_;
  const LoadOptions& options_;
  std::string path_;
  std::string eod_token_;
  std::string where_;
  std::optional<TokenizerFacts> facts_;
};

int64_t vocabulary_size(const Parameters& parameters, const SevenfoldBlock& block,
                        Tokenizer& tokenizer) {
  if (const auto size = parameters.optional_integer("vocab_size")) {
    if (*size < 1 || *size > kMaxSize)
      raise_rule("model.positive", "config: {}: must be at least 1 and at most {}",
                 parameters.where("vocab_size"), kMaxSize);
    return *size;
  }
  if (prepares_bytes(block)) return kByteVocabulary;
  const auto facts = tokenizer.facts("vocab_size", "the size of the vocabulary");
  return facts ? facts->vocab_size : kUnknownVocabulary;
}

void resolve_end_of_document(const Parameters& parameters, const SevenfoldBlock& block,
                             Tokenizer& tokenizer, Vocabulary& vocabulary) {
  std::string where = tokenizer.where();
  if (block.eod_token_id) {
    vocabulary.eod_token_id = block.eod_token_id;
    where = "config: " + block.where("eod_token_id");
  } else if (parameters.optional_string("tokenizer_type") ==
             std::optional<std::string>("NullTokenizer")) {
    vocabulary.eod_token_id = vocabulary.size - 1;
  } else if (prepares_bytes(block)) {
    vocabulary.eod_token_id = kByteEndOfDocument;
  } else if (reader_of_end_of_document(parameters) != nullptr) {
    const auto facts = tokenizer.facts("eod_token_id", "the id of the end of a document");
    if (facts) vocabulary.eod_token_id = facts->eod_token_id;
    if (facts && !facts->eod_token_id)
      raise_rule("data.eod",
                 "{}: this tokenizer knows no end of a document, which {}=true needs; set "
                 "sevenfold.eod_token_id",
                 where, reader_of_end_of_document(parameters));
  }
  if (vocabulary.eod_token_id && *vocabulary.eod_token_id >= vocabulary.size)
    raise_rule("data.eod",
               "{}: the end of a document is token {}, beyond vocab_size={}; use an id below it",
               where, *vocabulary.eod_token_id, vocabulary.size);
}

void check_padding(const SevenfoldBlock& block, const Vocabulary& vocabulary) {
  if (!block.pad_token_id) return;
  const std::string where = "config: " + block.where("pad_token_id");
  if (*block.pad_token_id < 0)
    raise_rule("data.pad", "{}: a token id is 0 or more; correct the value", where);
  if (*block.pad_token_id >= vocabulary.size)
    raise_rule("data.pad", "{}: beyond vocab_size={}; use an id below it", where, vocabulary.size);
  if (block.pad_token_id == vocabulary.eod_token_id)
    raise_rule("data.pad", "{}: this id ends a document; use another, or null for none", where);
}

}  // namespace

Vocabulary resolve_vocabulary(Parameters& parameters, const SevenfoldBlock& block,
                              const LoadOptions& options) {
  Tokenizer tokenizer(parameters, block, options);
  Vocabulary vocabulary;
  vocabulary.size = vocabulary_size(parameters, block, tokenizer);
  resolve_end_of_document(parameters, block, tokenizer, vocabulary);
  check_padding(block, vocabulary);
  return vocabulary;
}

}  // namespace sevenfold::config
