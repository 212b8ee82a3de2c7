#include "sevenfold/dataset/text/sentencepiece_tokenizer.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sentencepiece_processor.h>

#include "sevenfold/core/error.h"
#include "sevenfold/dataset/text/utf8.h"

namespace sevenfold {
namespace {

// SentencePiece ends the process when it meets another version of protobuf than its own, which
// LibTorch brings along.
bool has_other_protobuf() {
  Dl_info found{};
  const void* symbol = ::dlsym(RTLD_DEFAULT, "_ZN6google8protobuf8internal13VerifyVersionEiiPKc");
  if (!symbol || ::dladdr(symbol, &found) == 0) return false;
  return std::string_view(found.dli_fname).find("libprotobuf") != std::string_view::npos;
}

class SentencePieceTokenizer final : public Tokenizer {
 public:
  SentencePieceTokenizer(const std::string& path, const TokenizerOptions& options) : name_(path) {
    if (has_other_protobuf())
      raise<ConfigError>(
          "dataset: {}: SentencePiece models cannot be read by the program that holds LibTorch; "
          "tokenize first, with `sevenfold data prepare`",
          path);
    const auto status = processor_.Load(path);
    if (!status.ok())
      raise<ConfigError>("dataset: {} is no SentencePiece model ({}); fetch the file again", path,
                         status.message());
    choose_eod(options.eod_token);
    if (options.add_special_tokens && processor_.bos_id() >= 0) bos_id_ = processor_.bos_id();
  }

  void encode(std::string_view text, std::vector<int64_t>& ids) const override {
    if (const auto invalid = find_invalid_utf8(text))
      raise<DataError>("dataset: text is not UTF-8 at byte {}", *invalid);
    std::vector<int> encoded;
    const auto status = processor_.Encode({text.data(), text.size()}, &encoded);
    if (!status.ok()) raise<DataError>("dataset: SentencePiece: {}", status.message());
    if (bos_id_) ids.push_back(*bos_id_);
    ids.insert(ids.end(), encoded.begin(), encoded.end());
  }

  std::string decode(std::span<const int64_t> ids) const override {
    std::string text;
    std::vector<int> known;
    const auto flush = [&] {
      std::string part;
      if (!known.empty() && processor_.Decode(known, &part).ok()) text += part;
      known.clear();
    };
    for (const int64_t id : ids) {
      const bool is_known = id >= 0 && id < vocab_size();
      if (is_known && !processor_.IsControl(static_cast<int>(id))) {
        known.push_back(static_cast<int>(id));
        continue;
      }
      flush();  // Decode leaves control tokens out
      text += is_known ? processor_.IdToPiece(static_cast<int>(id)) : fmt::format("<{}>", id);
    }
    flush();
    return text;
  }

  int64_t vocab_size() const override { return processor_.GetPieceSize(); }
  std::optional<int64_t> eod_token_id() const override { return eod_token_id_; }
  const std::string& name() const override { return name_; }

 private:
  void choose_eod(const std::string& token) {
    if (token.empty()) {
      if (processor_.eos_id() >= 0) eod_token_id_ = processor_.eos_id();
      return;
    }
    const int id = processor_.PieceToId(token);
    if (processor_.IdToPiece(id) != token)
      raise<ConfigError>(
          "dataset: {}: the end-of-document token \"{}\" is not in the vocabulary; name one that "
          "is (--eod-token)",
          name_, token);
    eod_token_id_ = id;
  }

  std::string name_;
  sentencepiece::SentencePieceProcessor processor_;
  std::optional<int64_t> eod_token_id_;
  std::optional<int64_t> bos_id_;
};

}  // namespace

std::unique_ptr<Tokenizer> open_sentencepiece_tokenizer(const std::string& path,
                                                        const TokenizerOptions& options) {
  return std::make_unique<SentencePieceTokenizer>(path, options);
}

}  // namespace sevenfold
