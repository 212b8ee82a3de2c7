#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace sevenfold {

// Byte offset of the first byte that is not UTF-8: surrogates, overlong forms and what is past
// U+10FFFF are not.
std::optional<size_t> find_invalid_utf8(std::string_view text);

// Every maximal part of a broken sequence as U+FFFD, as Python's errors="replace" gives it.
std::string replace_invalid_utf8(std::string_view text);

}  // namespace sevenfold
