#include "sevenfold/cli/tokenizer_facts.h"

#include "sevenfold/dataset/text/tokenizer.h"

namespace sevenfold::cli {

TokenizerFacts tokenizer_facts(const TokenizerRequest& request) {
  const auto tokenizer = open_tokenizer(request.path, {.eod_token = request.eod_token});
  return {.vocab_size = tokenizer->vocab_size(), .eod_token_id = tokenizer->eod_token_id()};
}

}  // namespace sevenfold::cli
