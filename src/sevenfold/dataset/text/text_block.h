#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sevenfold/dataset/text/byte_source.h"
#include "sevenfold/dataset/text/input_files.h"
#include "sevenfold/dataset/text/tokenizer.h"

namespace sevenfold {

// What the documents of a file are.
enum class TextFormat : uint8_t {
  kText,   // the whole file
  kLines,  // every line that is not blank
  kJsonl,  // one member of the JSON object on every line that is not blank
};

// `name`: auto (by the file's name: .jsonl, .ndjson and .json are JSON lines, all else text; a .gz
// behind it does not count), text, lines or jsonl. Throws ConfigError for another name.
TextFormat text_format(const std::string& name, const std::string& path);

// A piece of one file, small enough to hold many: some whole lines, or all or a part of a text.
struct TextBlock {
  std::string path;
  TextFormat format = TextFormat::kText;
  std::string text;
  int64_t first_line = 1;      // lines: the number of the first one in the file
  bool ends_document = true;   // kText: false where the file goes on
  int64_t num_bytes_done = 0;  // of all files together, this block included
};

// Reads files in order as blocks of about a megabyte. A line is never cut, nor a text that must be
// tokenized as a whole.
class BlockReader {
 public:
  BlockReader(std::vector<InputFile> files, std::string format, bool may_cut_texts);
  // Nothing: all files are read. Throws as ByteSource does.
  std::optional<TextBlock> next();

 private:
  void open(const InputFile& file);
  void read_text(TextBlock& block);
  void read_lines(TextBlock& block);
  size_t append(std::string& text, size_t num_bytes);

  std::vector<InputFile> files_;
  std::string format_name_;
  bool may_cut_texts_;
  size_t next_file_ = 0;
  int64_t bytes_before_ = 0;            // of the files that are done
  std::unique_ptr<ByteSource> source_;  // null: no file is open
  TextFormat format_ = TextFormat::kText;
  bool at_end_ = false;
  std::string carry_;  // the start of a line whose end was not read yet
  int64_t next_line_ = 1;
};

struct EncodeOptions {
  std::string json_key = "text";
  std::optional<int64_t> eod_token_id;  // appended to every document
};

struct EncodedBlock {
  std::vector<int64_t> ids;
  std::vector<size_t> document_ends;  // positions in ids; what follows the last goes on
  // Documents that could not be read: "PATH:LINE: reason". They have no ids.
  std::vector<std::string> invalid;
  int64_t num_bytes_done = 0;
};

// The ids of a block's documents. Any number of threads at the same time.
EncodedBlock encode_block(const TextBlock& block, const Tokenizer& tokenizer,
                          const EncodeOptions& options);

}  // namespace sevenfold
