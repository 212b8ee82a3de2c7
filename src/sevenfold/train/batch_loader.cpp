#include "sevenfold/train/batch_loader.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "sevenfold/core/error.h"

namespace sevenfold {

BatchLoader::BatchLoader(const Config& config, const SampleSource& source, BatchPlace place,
                         at::ScalarType dtype, FaultSet faults)
    : config_(config), source_(source), place_(place), dtype_(dtype), faults_(faults) {}

MicrobatchPlace BatchLoader::microbatch_place(int64_t consumed, int64_t microbatch) const {
  MicrobatchPlace place{.consumed = consumed,
                        .microbatch = microbatch,
                        .dp_rank = faults_.has(Fault::kSameSamplesOnEveryRank) ? 0 : place_.dp_rank,
                        .dp_size = place_.dp_size,
                        .micro_batch_size = config_.batch.micro_batch_size};
  if (faults_.has(Fault::kMicrobatchOrderWrong)) {
    place.consumed =
        place_.dp_rank * (source_.num_samples() / place_.dp_size) + consumed / place_.dp_size;
    place.dp_rank = 0;
    place.dp_size = 1;
  }
  return place;
}

std::vector<Microbatch> BatchLoader::step(int64_t consumed, int64_t num_microbatches) const {
  std::vector<Microbatch> microbatches;
  for (int64_t m = 0; m < num_microbatches; ++m) {
    const MicrobatchPlace place = microbatch_place(consumed, m);
    Microbatch& microbatch =
        microbatches.emplace_back(read(sample_ids(place, source_.num_samples()), m));
    for (int64_t row = 0; row < place.micro_batch_size; ++row)
      microbatch.sample_ids.push_back(place.first_sample() + row);
  }
  return microbatches;
}

Microbatch BatchLoader::range(int64_t first, int64_t end) const {
  SEVENFOLD_CHECK(0 <= first && first < end);
  std::vector<int64_t> samples(static_cast<size_t>(end - first));
  std::iota(samples.begin(), samples.end(), first);
  std::vector<int64_t> wrapped = samples;
  for (int64_t& sample : wrapped) sample %= source_.num_samples();
  Microbatch microbatch = read(wrapped, 0);
  microbatch.sample_ids = samples;
  microbatch.is_training = false;
  return microbatch;
}

Microbatch BatchLoader::read(const std::vector<int64_t>& samples, int64_t index) const {
  const TokenBatch batch = read_batch(source_, samples,
                                      {.eod_mask_loss = config_.data.eod_mask_loss,
                                       .eod_token_id = config_.data.eod_token_id,
                                       .pad_token_id = {}});
  const std::vector<int64_t> shape = {batch.num_sequences, batch.seq_length};
  const at::TensorOptions integers = at::TensorOptions().dtype(at::kLong);
  Microbatch microbatch;
  microbatch.index = index;
  microbatch.inputs_BT = at::empty(shape, integers);
  microbatch.labels_BT = at::empty(shape, integers);
  std::copy(batch.inputs.begin(), batch.inputs.end(), microbatch.inputs_BT.data_ptr<int64_t>());
  std::copy(batch.labels.begin(), batch.labels.end(), microbatch.labels_BT.data_ptr<int64_t>());
  const at::Tensor mask = at::empty(shape, at::TensorOptions().dtype(at::kByte));
  std::copy(batch.loss_mask.begin(), batch.loss_mask.end(), mask.data_ptr<uint8_t>());
  microbatch.mask_BT = mask.to(dtype_);
  microbatch.trained_tokens = batch.num_unmasked;
  if (faults_.has(Fault::kLabelMaskShifted) && config_.data.eod_token_id)
    microbatch.mask_BT = microbatch.labels_BT.ne(*config_.data.eod_token_id).to(dtype_);
  return microbatch;
}

}  // namespace sevenfold
