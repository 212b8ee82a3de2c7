#pragma once

#include <memory>
#include <vector>

#include "sevenfold/dataset/order/blend.h"
#include "sevenfold/dataset/sample_source.h"

namespace sevenfold {

// Samples of several data sets in the order of a blend. Immutable: any thread may read. Memory: 12
// bytes a sample.
class BlendedSource final : public SampleSource {
 public:
  // The blend takes of no set more samples than the set has.
  BlendedSource(std::vector<std::unique_ptr<SampleSource>> sets, BlendIndex index);

  int64_t seq_length() const override { return sets_.front()->seq_length(); }
  int64_t num_samples() const override { return index_.size(); }
  void read(int64_t index, std::span<int64_t> tokens) const override;

  const BlendIndex& index() const { return index_; }
  const std::vector<std::unique_ptr<SampleSource>>& sets() const { return sets_; }

 private:
  std::vector<std::unique_ptr<SampleSource>> sets_;
  BlendIndex index_;
};

}  // namespace sevenfold
