#pragma once

#include <string>
#include <string_view>

namespace sevenfold {

// A split pattern as Hugging Face's library means it (Oniguruma's Ruby syntax over Unicode),
// written so that PCRE2 matches the same. What the two read differently is spelled out: \s becomes
// the list of Unicode's white space, \v the vertical tab. Known are literals, escapes, classes
// without nesting, general categories such as \p{Lu} and the scripts Han, Hiragana, Katakana and
// Hangul, groups, look-around, alternation and quantifiers; (?i:...) around ASCII letters. Throws
// ConfigError, naming `where` and the position, for anything else.
std::string translate_pattern(std::string_view pattern, std::string_view where);

}  // namespace sevenfold
