#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sevenfold/dataset/text/bpe/added_tokens.h"
#include "sevenfold/dataset/text/bpe/normal_form.h"

namespace sevenfold {

enum class SplitBehavior : uint8_t {
  kIsolated,     // matches, and the text between them, are pieces
  kDropMatches,  // only the text between them
  kKeepMatches,  // only the matches
};

struct SplitStep {
  std::string expression;  // in PCRE2's syntax
  SplitBehavior behavior = SplitBehavior::kIsolated;
};

// What a tokenizer.json of Hugging Face's library says, as far as a byte-level BPE needs it.
struct BpeDescription {
  std::vector<NormalForm> normal_forms;  // applied in order
  std::vector<SplitStep> splits;         // each cuts the pieces of the one before
  bool add_prefix_space = false;         // to pieces that do not start with a space
  std::optional<SplitStep> last_split;   // after that space: the ByteLevel step's own pattern
  std::vector<std::pair<std::string, int64_t>> vocab;  // tokens in the byte alphabet
  std::vector<std::pair<std::string, std::string>> merges;
  bool ignore_merges = false;  // a piece that is a token stays one
  std::vector<AddedToken> added_tokens;
  // What the post-processor puts around a text; read only when asked for.
  std::vector<int64_t> ids_before;
  std::vector<int64_t> ids_after;
};

// `path` appears in messages. Throws ConfigError: no JSON, no byte-level BPE, or anything in it
// that would change ids and is not supported.
BpeDescription read_tokenizer_json(const std::string& path, std::string_view json,
                                   bool with_special_tokens);

}  // namespace sevenfold
