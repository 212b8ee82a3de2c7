#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sevenfold {

// Text to token ids and back. Objects do not change after opening: any number of threads may call
// any method of one object at the same time.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Appends the ids of `text`, one whole document, to `ids`. No begin or end token is added unless
  // the tokenizer was opened so. Throws DataError with the byte offset when a tokenizer that works
  // on characters gets text that is not UTF-8; the byte tokenizer takes any bytes.
  virtual void encode(std::string_view text, std::vector<int64_t>& ids) const = 0;
  // Bytes of the ids, special tokens written out. Pieces of a text need not be UTF-8. Ids outside
  // the vocabulary appear as <id>.
  virtual std::string decode(std::span<const int64_t> ids) const = 0;

  // Largest id + 1, added tokens included.
  virtual int64_t vocab_size() const = 0;
  // The token that ends a document; none when the files name none.
  virtual std::optional<int64_t> eod_token_id() const = 0;
  // "byte", or the file that it was read from.
  virtual const std::string& name() const = 0;
  // Whether the ids of a text are those of its parts in a row, wherever it is cut, so that a long
  // document may be encoded in pieces.
  virtual bool is_splittable() const { return false; }
};

struct TokenizerOptions {
  // Content of the token that ends a document; empty: what the files say.
  std::string eod_token;
  // Put around every text what the file's post-processor does (Llama 3: <|begin_of_text|> in front;
  // SentencePiece: the begin token in front).
  bool add_special_tokens = false;
};

// `byte`; a tokenizer.json of Hugging Face's library with a byte-level BPE; a SentencePiece .model;
// or a folder with one of the two files (tokenizer.json, else tokenizer.model). Throws ConfigError:
// the name is no tokenizer, the file is missing, damaged or asks for something that is not
// supported (the message names it).
std::unique_ptr<Tokenizer> open_tokenizer(const std::string& name_or_path,
                                          const TokenizerOptions& options = {});

}  // namespace sevenfold
