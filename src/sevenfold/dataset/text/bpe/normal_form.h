#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sevenfold {

enum class NormalForm : uint8_t { kNfc, kNfd, kNfkc, kNfkd };

// `text` (UTF-8) in a Unicode normal form, as Hugging Face's library gives it: its tables are those
// of Unicode 9, so younger characters stay where and as they are. Source: Unicode Annex 15.
std::string normalize(std::string_view text, NormalForm form);

}  // namespace sevenfold
