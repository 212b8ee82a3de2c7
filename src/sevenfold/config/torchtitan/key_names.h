#pragma once

#include <map>
#include <string>
#include <string_view>

namespace sevenfold::config {

// Names of megatron keys beside those that the user wrote in their place, for sentences of rules
// that both vocabularies share.
class KeyNames {
 public:
  void set(std::string_view megatron, std::string_view own);

  // The sentence with the user's names. A name that is also a plain word (seed, optimizer) is taken
  // for a key only before an equals sign.
  std::string respell(const std::string& sentence) const;

 private:
  std::map<std::string, std::string, std::less<>> own_;
};

}  // namespace sevenfold::config
