#include "sevenfold/dataset/text/prepare.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include "sevenfold/core/error.h"
#include "sevenfold/dataset/indexed/indexed_writer.h"
#include "sevenfold/dataset/text/byte_tokenizer.h"
#include "sevenfold/dataset/text/input_files.h"

namespace sevenfold {
namespace {

constexpr size_t kChunkBytes = size_t{1} << 20;

void check_config(const PrepareConfig& config) {
  if (config.tokenizer != "byte")
    raise<ConfigError>(
        "dataset: tokenizer={}: only the byte tokenizer is there yet; use tokenizer byte, or "
        "tokenize with Megatron's tools and name the resulting PREFIX",
        config.tokenizer);
  const std::string& output = config.output;
  if (output.empty() || output.ends_with('/'))
    raise<ConfigError>("dataset: output \"{}\" names no file; give a prefix such as data/text",
                       output);
}

// Appends one file as a document. Calls read(bytes) after each chunk.
template <typename Read>
void append_file(IndexedWriter& writer, const std::string& path, Read&& read) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> chunk(kChunkBytes);
  std::vector<int64_t> tokens;
  while (file) {
    file.read(chunk.data(), static_cast<std::streamsize>(chunk.size()));
    const auto count = static_cast<size_t>(file.gcount());
    tokens.resize(count);
    for (size_t i = 0; i < count; ++i) tokens[i] = static_cast<unsigned char>(chunk[i]);
    writer.append(tokens);
    read(static_cast<int64_t>(count));
  }
  // A stream that failed before the end of the file did not open or could not be read.
  if (!file.eof())
    raise<ConfigError>("dataset: cannot read input {}: {}", path, std::strerror(errno));
  const int64_t eod = ByteTokenizer::kEodTokenId;
  writer.append({&eod, 1});
  writer.end_document();
}

}  // namespace

PrepareReport prepare_dataset(const PrepareConfig& config, const PrepareProgress& progress) {
  check_config(config);
  const InputFiles inputs = find_input_files(config.inputs);
  const int64_t total = inputs.num_bytes();

  PrepareReport report;
  IndexedWriter writer(config.output, element_type_for(ByteTokenizer::kVocabSize));
  for (const InputFile& input : inputs.files) {
    append_file(writer, input.path, [&](int64_t bytes) {
      report.input_bytes += bytes;
      if (progress) progress(report.input_bytes, total);
    });
  }
  writer.finish();
  report.output = config.output;
  report.num_documents = writer.num_documents();
  report.num_tokens = writer.num_tokens();
  report.vocab_size = ByteTokenizer::kVocabSize;
  report.eod_token_id = ByteTokenizer::kEodTokenId;
  report.skipped = inputs.skipped;
  return report;
}

}  // namespace sevenfold
