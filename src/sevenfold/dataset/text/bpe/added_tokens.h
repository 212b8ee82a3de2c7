#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sevenfold/dataset/text/bpe/split_pattern.h"

namespace sevenfold {

// A token that is found in the text before anything else is done to it.
struct AddedToken {
  int64_t id = 0;
  std::string content;
  bool single_word = false;          // only where no word character stands next to it
  bool takes_spaces_before = false;  // lstrip: swallows white space in front of it
  bool takes_spaces_after = false;   // rstrip
  bool is_normalized = true;         // matched in the normalized text, in normalized form
};

// Cuts a text at tokens, as Hugging Face's library does: leftmost, and of those the longest; a
// match that is dropped because it is no single word is passed over whole.
class AddedTokenMatcher {
 public:
  // Bytes [begin, end) of the text; id kNone: text between tokens.
  struct Part {
    size_t begin = 0;
    size_t end = 0;
    int64_t id = kNone;
  };
  static constexpr int64_t kNone = -1;

  // `tokens[i].content` must be as it stands in the text, and not be empty.
  explicit AddedTokenMatcher(std::vector<AddedToken> tokens);

  // Appends the parts of `text` (UTF-8) to `parts`, none of them empty.
  void split(std::string_view text, MatchWorkspace& workspace, std::vector<Part>& parts) const;

 private:
  struct Found {
    size_t end = 0;
    const AddedToken* token = nullptr;
  };

  Found longest_at(std::string_view text, size_t begin) const;
  bool stands_alone(std::string_view text, size_t begin, size_t end,
                    MatchWorkspace& workspace) const;

  std::vector<AddedToken> tokens_;
  // A trie: node and byte -> node. Root is 0.
  std::unordered_map<uint64_t, uint32_t> edges_;
  std::vector<int32_t> token_of_node_;  // kNone: none ends here
  std::array<bool, 256> starts_token_{};
  SplitPattern word_;  // one character
};

}  // namespace sevenfold
