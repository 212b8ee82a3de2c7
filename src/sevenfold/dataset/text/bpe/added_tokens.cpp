#include "sevenfold/dataset/text/bpe/added_tokens.h"

#include <utf8proc.h>

#include <algorithm>

namespace sevenfold {
namespace {

// Unicode's white space; utf8proc has no such property.
bool is_space(int32_t c) {
  return (c >= 0x09 && c <= 0x0d) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

int32_t read_character(std::string_view text, size_t at) {
  utf8proc_int32_t character = -1;
  utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at,
                   static_cast<utf8proc_ssize_t>(text.size() - at), &character);
  return character;
}

size_t start_of_character_before(std::string_view text, size_t at) {
  do {
    --at;
  } while ((static_cast<unsigned char>(text[at]) & 0xc0U) == 0x80);
  return at;
}

size_t end_of_character(std::string_view text, size_t at) {
  do {
    ++at;
  } while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0U) == 0x80);
  return at;
}

size_t skip_spaces_before(std::string_view text, size_t at, size_t limit) {
  while (at > limit) {
    const size_t start = start_of_character_before(text, at);
    if (!is_space(read_character(text, start))) break;
    at = start;
  }
  return std::max(at, limit);
}

size_t skip_spaces_after(std::string_view text, size_t at) {
  while (at < text.size() && is_space(read_character(text, at))) at = end_of_character(text, at);
  return at;
}

uint64_t edge_key(uint32_t node, char byte) {
  return uint64_t{node} << 8U | static_cast<unsigned char>(byte);
}

}  // namespace

AddedTokenMatcher::AddedTokenMatcher(std::vector<AddedToken> tokens)
    : tokens_(std::move(tokens)),
      token_of_node_(1, kNone),
      // What Rust's \w means: Unicode's definition of a word character.
      word_(R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200c}\x{200d}])", "added_tokens") {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    uint32_t node = 0;
    for (const char byte : tokens_[i].content) {
      const auto [edge, is_new] = edges_.emplace(edge_key(node, byte), token_of_node_.size());
      if (is_new) token_of_node_.push_back(kNone);
      node = edge->second;
    }
    // Of two with the same text, the first one counts.
    if (token_of_node_[node] == kNone) token_of_node_[node] = static_cast<int32_t>(i);
    starts_token_[static_cast<unsigned char>(tokens_[i].content[0])] = true;
  }
}

AddedTokenMatcher::Found AddedTokenMatcher::longest_at(std::string_view text, size_t begin) const {
  Found found;
  uint32_t node = 0;
  for (size_t at = begin; at < text.size(); ++at) {
    const auto edge = edges_.find(edge_key(node, text[at]));
    if (edge == edges_.end()) break;
    node = edge->second;
    if (token_of_node_[node] != kNone)
      found = {at + 1, &tokens_[static_cast<size_t>(token_of_node_[node])]};
  }
  return found;
}

bool AddedTokenMatcher::stands_alone(std::string_view text, size_t begin, size_t end,
                                     MatchWorkspace& workspace) const {
  const auto is_word = [&](size_t at) {
    const std::string_view until = text.substr(0, end_of_character(text, at));
    return word_.find(until, at, workspace).found;
  };
  return (begin == 0 || !is_word(start_of_character_before(text, begin))) &&
         (end == text.size() || !is_word(end));
}

void AddedTokenMatcher::split(std::string_view text, MatchWorkspace& workspace,
                              std::vector<Part>& parts) const {
  size_t done = 0;  // where the last part ends
  for (size_t at = 0; at < text.size();) {
    const bool may_start = starts_token_[static_cast<unsigned char>(text[at])];
    const Found found = may_start ? longest_at(text, at) : Found{};
    if (found.token == nullptr) {
      ++at;
      continue;
    }
    size_t begin = at;
    size_t end = found.end;
    at = found.end;
    const AddedToken& token = *found.token;
    if (token.single_word && !stands_alone(text, begin, end, workspace)) continue;
    if (token.takes_spaces_before) begin = skip_spaces_before(text, begin, done);
    if (token.takes_spaces_after) end = skip_spaces_after(text, end);
    if (done < begin) parts.push_back({done, begin, kNone});
    parts.push_back({begin, end, token.id});
    done = end;
  }
  if (done < text.size()) parts.push_back({done, text.size(), kNone});
}

}  // namespace sevenfold
