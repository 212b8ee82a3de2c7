#include "sevenfold/dataset/blended_source.h"

#include <utility>

#include "sevenfold/core/error.h"

namespace sevenfold {

BlendedSource::BlendedSource(std::vector<std::unique_ptr<SampleSource>> sets, BlendIndex index)
    : sets_(std::move(sets)), index_(std::move(index)) {
  SEVENFOLD_CHECK(!sets_.empty() && index_.size() > 0, "{} sets, {} samples", sets_.size(),
                  index_.size());
  const std::vector<int64_t> taken = samples_taken(index_, sets_.size());
  for (size_t d = 0; d < sets_.size(); ++d) {
    SEVENFOLD_CHECK_EQ(sets_[d]->seq_length(), seq_length());
    SEVENFOLD_CHECK(taken[d] <= sets_[d]->num_samples(), "{} samples of set {}, which has {}",
                    taken[d], d, sets_[d]->num_samples());
  }
}

void BlendedSource::read(int64_t index, std::span<int64_t> tokens) const {
  SEVENFOLD_CHECK(index >= 0 && index < num_samples(), "sample {} of {}", index, num_samples());
  const auto k = static_cast<size_t>(index);
  sets_[index_.dataset[k]]->read(index_.sample[k], tokens);
}

}  // namespace sevenfold
