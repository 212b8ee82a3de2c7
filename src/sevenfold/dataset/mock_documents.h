#pragma once

#include <cstdint>
#include <vector>

#include "sevenfold/dataset/sequence_source.h"

namespace sevenfold {

// The documents of Megatron's --mock-data: 100,000 of them with 1..4095 tokens, the same in every
// run; one of L tokens counts 1, 2, .. L-1 modulo the vocabulary and ends with end-of-document.
// Lengths are kept (400 KB), tokens are made when they are read.
class MockDocuments final : public SequenceSource {
 public:
  static constexpr int64_t kNumDocuments = 100'000;
  // The split string that goes with them, whatever the experiment says.
  static constexpr const char* kSplit = "1,1,1";

  // 0 <= eod_token_id < vocab_size.
  MockDocuments(int64_t vocab_size, int64_t eod_token_id);

  const std::string& name() const override { return name_; }
  std::string tokens_name() const override { return name_; }
  int64_t bytes_per_token() const override { return 8; }
  std::string identity() const override { return name_; }
  int64_t num_sequences() const override { return kNumDocuments; }
  int64_t sequence_length(int64_t sequence) const override {
    return lengths_[static_cast<size_t>(sequence)];
  }
  void read(int64_t sequence, int64_t offset, std::span<int64_t> tokens) const override;

 private:
  std::string name_ = "mock data";
  int64_t vocab_size_;
  int64_t eod_token_id_;
  std::vector<int32_t> lengths_;
};

}  // namespace sevenfold
