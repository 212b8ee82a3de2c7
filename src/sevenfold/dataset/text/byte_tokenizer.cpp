#include "sevenfold/dataset/text/byte_tokenizer.h"

#include <fmt/format.h>

#include "sevenfold/dataset/text/utf8.h"

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

namespace {

void append_escaped(std::string& text, unsigned char byte) {
  switch (byte) {
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
    default:
      text += fmt::format("\\x{:02x}", byte);
  }
}

}  // namespace

std::string escape_tokens(std::span<const int64_t> tokens) {
  std::string text;
  for (const int64_t token : tokens) {
    if (token >= 0x20 && token < 0x7f && token != '\\') {
      text += static_cast<char>(token);
    } else if (token >= 0 && token < 256) {
      append_escaped(text, static_cast<unsigned char>(token));
    } else {
      text += token == ByteTokenizer::kEodTokenId ? "<eod>" : fmt::format("<{}>", token);
    }
  }
  return text;
}

std::string escape_text(std::string_view text) {
  std::string escaped;
  for (const char c : replace_invalid_utf8(text)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f || byte == '\\') {
      append_escaped(escaped, byte);
    } else {
      escaped += c;
    }
  }
  return escaped;
}

}  // namespace sevenfold
