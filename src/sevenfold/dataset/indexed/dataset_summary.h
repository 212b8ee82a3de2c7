#pragma once

#include <cstdint>

#include "sevenfold/dataset/indexed/indexed_dataset.h"

namespace sevenfold {

// What a data set holds. Lengths are of sequences (documents, unless the text was cut into
// sentences).
struct DatasetSummary {
  int64_t num_sequences = 0;
  int64_t num_documents = 0;
  int64_t num_tokens = 0;
  int64_t shortest = 0;
  int64_t longest = 0;
  int64_t num_empty = 0;
  // Over the first `scanned_tokens` tokens; -1 when there are none.
  int64_t smallest_token_id = -1;
  int64_t largest_token_id = -1;
  int64_t scanned_tokens = 0;
};

// Reads the tokens of at most `limit_bytes` of .bin.
DatasetSummary summarize(const IndexedDataset& data, int64_t limit_bytes = int64_t{1} << 30);

}  // namespace sevenfold
