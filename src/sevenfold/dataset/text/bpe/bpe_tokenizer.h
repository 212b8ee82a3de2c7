#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "sevenfold/dataset/text/bpe/added_tokens.h"
#include "sevenfold/dataset/text/bpe/merge_table.h"
#include "sevenfold/dataset/text/bpe/split_pattern.h"
#include "sevenfold/dataset/text/bpe/tokenizer_json.h"
#include "sevenfold/dataset/text/tokenizer.h"

namespace sevenfold {

// Byte-level BPE as Hugging Face's library does it: added tokens are cut out, the rest is
// normalized, split by patterns into pieces, and the bytes of each piece are merged.
class BpeTokenizer final : public Tokenizer {
 public:
  // `eod_token`: its content; nothing: none. Throws ConfigError, naming `name`, when parts of the
  // description do not fit each other.
  BpeTokenizer(std::string name, const BpeDescription& description,
               const std::optional<std::string>& eod_token);
  ~BpeTokenizer() override;

  void encode(std::string_view text, std::vector<int64_t>& ids) const override;
  std::string decode(std::span<const int64_t> ids) const override;
  int64_t vocab_size() const override { return static_cast<int64_t>(bytes_of_id_.size()); }
  std::optional<int64_t> eod_token_id() const override { return eod_token_id_; }
  const std::string& name() const override { return name_; }

 private:
  struct Workspace;  // what encoding one text needs, kept from call to call
  struct Splitter {
    SplitPattern pattern;
    SplitBehavior behavior;
  };
  class Loan;
  struct TextHash {
    using is_transparent = void;  // look-up by string_view
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };

  void add_vocabulary(const BpeDescription& description);
  void add_merges(const BpeDescription& description);
  void add_added_tokens(const BpeDescription& description);
  void encode_plain(std::string_view text, Workspace& workspace) const;
  void split_pieces(std::string_view text, size_t step, Workspace& workspace) const;
  void encode_byte_level(std::string_view text, Workspace& workspace) const;
  void encode_piece(std::string_view piece, Workspace& workspace) const;
  template <typename Take>
  void cut(std::string_view text, const Splitter& splitter, Workspace& workspace,
           Take&& take) const;

  std::string name_;
  std::vector<NormalForm> normal_forms_;
  std::vector<Splitter> splits_;
  bool add_prefix_space_;
  std::optional<Splitter> last_split_;
  bool ignore_merges_;
  std::vector<int64_t> ids_before_;
  std::vector<int64_t> ids_after_;
  std::optional<int64_t> eod_token_id_;

  std::unordered_map<std::string, int64_t> id_of_token_;  // as the file writes them
  std::unordered_map<std::string, int32_t, TextHash, std::equal_to<>> id_of_bytes_;
  std::vector<std::optional<std::string>> bytes_of_id_;
  std::array<int32_t, 256> id_of_byte_{};
  MergeTable merges_;
  std::unique_ptr<AddedTokenMatcher> raw_tokens_;         // matched before normalization
  std::unique_ptr<AddedTokenMatcher> normalized_tokens_;  // and after it

  mutable std::mutex mutex_;  // of idle_
  mutable std::vector<std::unique_ptr<Workspace>> idle_;
};

// Reads PATH, a tokenizer.json, and tokenizer_config.json beside it.
std::unique_ptr<Tokenizer> open_bpe_tokenizer(const std::string& path,
                                              const TokenizerOptions& options);

}  // namespace sevenfold
