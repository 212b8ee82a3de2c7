#include "sevenfold/dataset/text/tokenizer.h"

#include "sevenfold/core/error.h"
#include "sevenfold/dataset/text/byte_tokenizer.h"

namespace sevenfold {

std::unique_ptr<Tokenizer> open_tokenizer(const std::string& name_or_path) {
  if (name_or_path == "byte") return std::make_unique<ByteTokenizer>();
  raise<ConfigError>(
      "dataset: tokenizer={}: only the byte tokenizer is there yet; use tokenizer byte, or "
      "tokenize with Megatron's tools and name the resulting PREFIX",
      name_or_path);
}

}  // namespace sevenfold
