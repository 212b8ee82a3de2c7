#include "sevenfold/dataset/order/sampler.h"

#include <utility>

#include "sevenfold/core/error.h"
#include "sevenfold/dataset/order/torch_random.h"

namespace sevenfold {

Sampler::Sampler(const SamplerOptions& options) : options_(options) {
  SEVENFOLD_CHECK(options.num_samples > 0 && options.micro_batch_size > 0 && options.dp_size > 0,
                  "{} samples, micro batch {}, dp {}", options.num_samples,
                  options.micro_batch_size, options.dp_size);
  if (options.kind == LoaderKind::kSingle) return;
  batches_per_epoch_ = options.num_samples / (options.micro_batch_size * options.dp_size);
  if (batches_per_epoch_ == 0)
    raise<ConfigError>(
        "dataset: dataloader_type=cyclic needs at least micro_batch_size {} x dp {} = {} samples, "
        "the data gives {}; use more text, a smaller micro_batch_size or dataloader_type=single",
        options.micro_batch_size, options.dp_size, options.micro_batch_size * options.dp_size,
        options.num_samples);
}

int64_t Sampler::sample_at(int64_t place) const {
  SEVENFOLD_CHECK(place >= 0, "place {}", place);
  if (options_.kind == LoaderKind::kSingle) return place % options_.num_samples;
  const int64_t micro = options_.micro_batch_size;
  const int64_t group = micro * options_.dp_size;
  return cyclic_sample(place / group, place % group / micro, place % micro);
}

std::vector<int64_t> Sampler::samples(int64_t first, int64_t count) const {
  std::vector<int64_t> ids(static_cast<size_t>(count));
  for (int64_t& id : ids) id = sample_at(first++);
  return ids;
}

int64_t Sampler::cyclic_sample(int64_t batch, int64_t rank, int64_t row) const {
  return options_.data_sharding ? sharded_sample(batch, rank, row)
                                : unsharded_sample(batch, rank, row);
}

// Every rank walks its own part of the data in the same permuted order.
int64_t Sampler::sharded_sample(int64_t batch, int64_t rank, int64_t row) const {
  const int64_t bucket = batches_per_epoch_ * options_.micro_batch_size;
  const Permutation order = permutation(batch / batches_per_epoch_, bucket);
  const int64_t step = batch % batches_per_epoch_;
  return rank * bucket + (*order)[static_cast<size_t>(step * options_.micro_batch_size + row)];
}

// The ranks take turns in one permutation, element by element. It may hold elements after the last
// whole group; ranks for which these complete one more microbatch read it before they go on, and
// from then on start each epoch at its second group (its first was counted already), so ranks sit
// in different epochs. Where an epoch has one group only, they pass over every second epoch.
int64_t Sampler::unsharded_sample(int64_t batch, int64_t rank, int64_t row) const {
  const int64_t micro = options_.micro_batch_size;
  const int64_t num_listed = options_.num_samples / micro * micro;
  const int64_t of_rank = (num_listed - rank + options_.dp_size - 1) / options_.dp_size;
  const bool has_one_more = of_rank / micro > batches_per_epoch_;
  int64_t epoch = batch / batches_per_epoch_;
  int64_t step = batch % batches_per_epoch_;
  if (has_one_more && batches_per_epoch_ == 1) {
    epoch = batch / 2 * 2;
    step = batch % 2;
  } else if (has_one_more && batch > 0) {
    epoch = (batch - 1) / batches_per_epoch_;
    step = (batch - 1) % batches_per_epoch_ + 1;
  }
  const Permutation order = permutation(epoch, num_listed);
  return (*order)[static_cast<size_t>(rank + (step * micro + row) * options_.dp_size)];
}

Sampler::Permutation Sampler::permutation(int64_t epoch, int64_t size) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (epochs_[0].number == epoch) return epochs_[0].permutation;
  std::swap(epochs_[0], epochs_[1]);
  if (epochs_[0].number == epoch) return epochs_[0].permutation;
  // The seed is the number of the epoch alone; the run's seed has no part in it.
  const auto seed = static_cast<uint64_t>(epoch);
  epochs_[0] = {epoch, std::make_shared<const std::vector<int64_t>>(torch_randperm(size, seed))};
  return epochs_[0].permutation;
}

}  // namespace sevenfold
