#pragma once

#include <memory>
#include <string>

#include "sevenfold/dataset/text/tokenizer.h"

namespace sevenfold {

// A SentencePiece model (unigram or BPE), encoded by SentencePiece itself. Special tokens in the
// text are not recognised unless the model has them as user-defined symbols. End of document: the
// model's eos.
std::unique_ptr<Tokenizer> open_sentencepiece_tokenizer(const std::string& path,
                                                        const TokenizerOptions& options);

}  // namespace sevenfold
