#include "sevenfold/dataset/indexed/dataset_summary.h"

#include <algorithm>
#include <vector>

namespace sevenfold {
namespace {

void scan_tokens(const IndexedDataset& data, int64_t limit_tokens, DatasetSummary& summary) {
  std::vector<int64_t> tokens(65536);
  for (int64_t sequence = 0; sequence < data.num_sequences(); ++sequence) {
    const int64_t length = data.sequence_length(sequence);
    for (int64_t offset = 0; offset < length;) {
      const int64_t count = std::min({static_cast<int64_t>(tokens.size()), length - offset,
                                      limit_tokens - summary.scanned_tokens});
      if (count == 0) return;
      const auto piece = std::span(tokens).first(static_cast<size_t>(count));
      data.read(sequence, offset, piece);
      const auto [least, most] = std::minmax_element(piece.begin(), piece.end());
      const bool is_first = summary.scanned_tokens == 0;
      summary.smallest_token_id = is_first ? *least : std::min(summary.smallest_token_id, *least);
      summary.largest_token_id = is_first ? *most : std::max(summary.largest_token_id, *most);
      summary.scanned_tokens += count;
      offset += count;
    }
  }
}

}  // namespace

DatasetSummary summarize(const IndexedDataset& data, int64_t limit_bytes) {
  DatasetSummary summary;
  summary.num_sequences = data.num_sequences();
  summary.num_documents = data.num_documents();
  summary.num_tokens = data.num_tokens();
  for (int64_t sequence = 0; sequence < data.num_sequences(); ++sequence) {
    const int64_t length = data.sequence_length(sequence);
    summary.shortest = sequence == 0 ? length : std::min(summary.shortest, length);
    summary.longest = std::max(summary.longest, length);
    if (length == 0) ++summary.num_empty;
  }
  scan_tokens(data, limit_bytes / element_bytes(data.element_type()), summary);
  return summary;
}

}  // namespace sevenfold
