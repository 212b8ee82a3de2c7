#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sevenfold/core/error.h"
#include "sevenfold/dataset/text/bpe/bpe_tokenizer.h"

namespace sevenfold {
namespace {

// Names that models give the end of a document, for folders without tokenizer_config.json.
constexpr const char* kEodTokens[] = {"<|endoftext|>", "<|end_of_text|>", "</s>",      "<eos>",
                                      "<|eos|>",       "<|im_end|>",      "<|eot_id|>"};

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  if (!file) raise<ConfigError>("dataset: cannot read {}: {}", path, std::strerror(errno));
  return std::move(content).str();
}

// eos_token of tokenizer_config.json beside the file: a string, or an object with its content.
std::optional<std::string> configured_eos(const std::string& tokenizer_path) {
  const auto path = std::filesystem::path(tokenizer_path).replace_filename("tokenizer_config.json");
  if (!std::filesystem::exists(path)) return std::nullopt;
  const auto config = nlohmann::json::parse(read_file(path.string()), nullptr, false);
  if (config.is_discarded())
    raise<ConfigError>("dataset: {} is no JSON; fetch the file again", path.string());
  if (!config.is_object() || !config.contains("eos_token")) return std::nullopt;
  const auto& eos = config["eos_token"];
  if (eos.is_string()) return eos.get<std::string>();
  if (eos.is_object() && eos.contains("content") && eos["content"].is_string())
    return eos["content"].get<std::string>();
  return std::nullopt;
}

std::optional<std::string> choose_eod(const std::string& path, const BpeDescription& description,
                                      const TokenizerOptions& options) {
  if (!options.eod_token.empty()) return options.eod_token;
  if (auto eos = configured_eos(path)) return eos;
  for (const char* name : kEodTokens)
    for (const AddedToken& token : description.added_tokens)
      if (token.content == name) return name;
  return std::nullopt;
}

}  // namespace

std::unique_ptr<Tokenizer> open_bpe_tokenizer(const std::string& path,
                                              const TokenizerOptions& options) {
  const BpeDescription description =
      read_tokenizer_json(path, read_file(path), options.add_special_tokens);
  return std::make_unique<BpeTokenizer>(path, description, choose_eod(path, description, options));
}

}  // namespace sevenfold
