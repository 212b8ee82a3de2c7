#include "sevenfold/dataset/text/tokenizer.h"

#include <filesystem>

#include "sevenfold/core/error.h"
#include "sevenfold/dataset/text/bpe/bpe_tokenizer.h"
#include "sevenfold/dataset/text/byte_tokenizer.h"
#include "sevenfold/dataset/text/sentencepiece_tokenizer.h"

namespace sevenfold {
namespace {

// The file of a folder, in the order in which Hugging Face's loaders look.
std::string file_of(const std::string& path) {
  if (!std::filesystem::is_directory(path)) return path;
  for (const char* name : {"tokenizer.json", "tokenizer.model"})
    if (std::filesystem::exists(std::filesystem::path(path) / name))
      return (std::filesystem::path(path) / name).string();
  raise<ConfigError>(
      "dataset: tokenizer={}: the folder has neither tokenizer.json nor tokenizer.model; name the "
      "file itself",
      path);
}

std::unique_ptr<Tokenizer> open_byte_tokenizer(const TokenizerOptions& options) {
  if (!options.eod_token.empty())
    raise<ConfigError>(
        "dataset: tokenizer=byte ends documents with id {} and has no token \"{}\"; leave the "
        "end-of-document token out",
        ByteTokenizer::kEodTokenId, options.eod_token);
  if (options.add_special_tokens)
    raise<ConfigError>("dataset: tokenizer=byte has no special tokens to add; leave that out");
  return std::make_unique<ByteTokenizer>();
}

}  // namespace

std::unique_ptr<Tokenizer> open_tokenizer(const std::string& name_or_path,
                                          const TokenizerOptions& options) {
  if (name_or_path == "byte") return open_byte_tokenizer(options);
  const std::string path = file_of(name_or_path);
  if (path.ends_with(".json")) return open_bpe_tokenizer(path, options);
  if (path.ends_with(".model")) return open_sentencepiece_tokenizer(path, options);
  raise<ConfigError>(
      "dataset: tokenizer={}: no tokenizer of that kind; use byte, a tokenizer.json, a "
      "SentencePiece .model, or a folder with one of these files",
      name_or_path);
}

}  // namespace sevenfold
