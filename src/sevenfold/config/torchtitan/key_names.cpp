#include "sevenfold/config/torchtitan/key_names.h"

namespace sevenfold::config {
namespace {

// Paths and dotted names are one word: no part of them is a name by itself.
constexpr std::string_view kLetters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-";

// Without the full stop of a sentence.
size_t end_of_word(const std::string& sentence, size_t start) {
  size_t end = sentence.find_first_not_of(kLetters, start);
  if (end == std::string::npos) end = sentence.size();
  while (end > start + 1 && sentence[end - 1] == '.') --end;
  return end;
}

}  // namespace

void KeyNames::set(std::string_view megatron, std::string_view own) {
  own_.insert_or_assign(std::string(megatron), std::string(own));
}

std::string KeyNames::respell(const std::string& sentence) const {
  std::string result;
  for (size_t at = 0; at < sentence.size();) {
    if (kLetters.find(sentence[at]) == std::string_view::npos) {
      result += sentence[at++];
      continue;
    }
    const size_t end = end_of_word(sentence, at);
    const std::string word = sentence.substr(at, end - at);
    const auto own = own_.find(word);
    const bool is_key =
        word.find('_') != std::string::npos || (end < sentence.size() && sentence[end] == '=');
    result += own != own_.end() && is_key ? own->second : word;
    at = end;
  }
  return result;
}

}  // namespace sevenfold::config
