#include "sevenfold/dataset/text/byte_tokenizer.h"

#include <fmt/format.h>

namespace sevenfold {

void ByteTokenizer::encode(std::string_view text, std::vector<int64_t>& ids) const {
  size_t end = ids.size();
  ids.resize(end + text.size());
  for (const char byte : text) ids[end++] = static_cast<unsigned char>(byte);
}

std::string ByteTokenizer::decode(std::span<const int64_t> ids) const {
  std::string text;
  for (const int64_t id : ids) {
    if (id >= 0 && id < 256) {
      text += static_cast<char>(id);
    } else {
      text += id == kEodTokenId ? "<eod>" : fmt::format("<{}>", id);
    }
  }
  return text;
}

std::string escape_tokens(std::span<const int64_t> tokens) {
  std::string text;
  for (const int64_t token : tokens) {
    switch (token) {
      case '\n':
        text += "\\n";
        break;
      case '\t':
        text += "\\t";
        break;
      case '\r':
        text += "\\r";
        break;
      case '\\':
        text += "\\\\";
        break;
      case ByteTokenizer::kEodTokenId:
        text += "<eod>";
        break;
      default:
        if (token >= 0x20 && token < 0x7f) {
          text += static_cast<char>(token);
        } else if (token >= 0 && token < 256) {
          text += fmt::format("\\x{:02x}", token);
        } else {
          text += fmt::format("<{}>", token);
        }
    }
  }
  return text;
}

}  // namespace sevenfold
