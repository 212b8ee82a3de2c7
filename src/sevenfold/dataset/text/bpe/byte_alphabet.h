#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sevenfold {

// The bytes that a token of a byte-level vocabulary stands for. Such a vocabulary writes every byte
// as a visible character: printable Latin-1 as itself, the other 68 bytes in order as U+0100,
// U+0101, ... (a space is U+0120). Nothing when a character of `token` is none of these.
// Source: Radford et al. 2019 (GPT-2), as in Hugging Face's ByteLevel.
std::optional<std::string> bytes_of_token(std::string_view token);

}  // namespace sevenfold
