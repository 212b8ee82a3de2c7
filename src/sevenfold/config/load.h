#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sevenfold/config/config.h"

namespace sevenfold {

// What a run needs to know of its tokenizer.
struct TokenizerFacts {
  int64_t vocab_size = 0;
  std::optional<int64_t> eod_token_id;
};

struct TokenizerRequest {
  std::string type;       // tokenizer_type, may be empty
  std::string path;       // of a file or folder that is there
  std::string eod_token;  // content of the token that ends a document; empty: what the files say
};

struct LoadOptions {
  std::string file;
  std::vector<std::string> overrides;    // key=value; highest precedence
  std::string presets_directory;         // a Primus checkout; empty: the built-in presets
  bool strict = false;                   // unknown keys are errors
  std::optional<int64_t> ranks;          // world size
  std::string ranks_option = "--ranks";  // the option that gave it, for messages
  std::optional<std::string> precision;  // --precision
  std::optional<std::string> backend;    // --backend
  std::optional<std::string> device;     // --device
  std::optional<std::string> start;      // --start
  std::optional<std::string> directory;  // --out
  // Reads the environment; empty: that of this process. Tests pass their own.
  std::function<std::optional<std::string>(const std::string&)> environment;
  // Opens a tokenizer. Called at most once, and only
  // when the vocabulary or the end of a document is not known otherwise. Empty: such a run is
  // refused.
  std::function<TokenizerFacts(const TokenizerRequest&)> tokenizer_facts;
};

// Reads, resolves and checks an experiment file. Throws ConfigError (file, line, key, value, rule,
// way out).
Config load_config(const LoadOptions& options);

// The experiment as a file of the megatron vocabulary that needs no preset: it loads into the same
// Config. Throws as load_config does.
std::string megatron_yaml(const LoadOptions& options);

}  // namespace sevenfold
