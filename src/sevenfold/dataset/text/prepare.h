#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sevenfold/config/config.h"

namespace sevenfold {

// Threads that tokenize, at most.
inline constexpr int64_t kMaxPrepareWorkers = 1024;

struct PrepareReport {
  std::string output;  // PREFIX
  int64_t num_documents = 0;
  int64_t num_tokens = 0;
  int64_t input_bytes = 0;  // on disk
  int64_t vocab_size = 0;
  std::optional<int64_t> eod_token_id;
  bool has_eods = true;  // after every document
  int64_t num_workers = 0;
  std::vector<std::string> skipped;  // files: "PATH (binary)"
  int64_t num_invalid = 0;           // documents left out with skip_invalid
  std::string first_invalid;         // "PATH:LINE: reason"
};

// Called now and then, and at the end, from the calling thread. Each may be empty.
struct PrepareHooks {
  std::function<void(int64_t bytes_done, int64_t bytes_total)> progress;  // bytes on disk
  std::function<bool()> stop_requested;  // true: give up, leaving nothing behind
};

// Tokenizes files into PREFIX.bin and PREFIX.idx: a document for every text file or line
// (text_format), the end-of-document token after each. Which files, and in which order:
// find_input_files. The two files do not depend on the number of workers. Memory: some megabytes
// for each worker; with other tokenizers than byte, a text file is held as a whole. Directories of
// PREFIX are made. Throws ConfigError (inputs, tokenizer, output place) or DataError (a document
// that cannot be read, disk full), Error (a stop was requested); then nothing is left behind.
PrepareReport prepare_dataset(const PrepareConfig& config, const PrepareHooks& hooks = {});

}  // namespace sevenfold
