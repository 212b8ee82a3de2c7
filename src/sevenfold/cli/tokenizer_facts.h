#pragma once

#include "sevenfold/config/load.h"

namespace sevenfold::cli {

// Opens a tokenizer and tells what configuration needs of it; for
// LoadOptions::tokenizer_facts. Throws ConfigError, as open_tokenizer does. Its
// files say what they are, so the type is not read.
TokenizerFacts tokenizer_facts(const TokenizerRequest& request);

}  // namespace sevenfold::cli
