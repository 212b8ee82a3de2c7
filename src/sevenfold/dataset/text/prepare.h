#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sevenfold/config/config.h"

namespace sevenfold {

struct PrepareReport {
  std::string output;  // PREFIX
  int64_t num_documents = 0;
  int64_t num_tokens = 0;
  int64_t input_bytes = 0;
  int64_t vocab_size = 0;
  int64_t eod_token_id = 0;
  std::vector<std::string> skipped;  // "PATH (binary)"
};

// Called now and then, and at the end, from the calling thread.
using PrepareProgress = std::function<void(int64_t bytes_done, int64_t bytes_total)>;

// Tokenizes text files into PREFIX.bin and PREFIX.idx: one document per file, end-of-document after
// each. Which files, and in which order: find_input_files. Streaming; directories of PREFIX are
// made. Throws ConfigError (inputs, tokenizer, output place) or DataError (disk full); then nothing
// is left behind.
PrepareReport prepare_dataset(const PrepareConfig& config, const PrepareProgress& progress = {});

}  // namespace sevenfold
