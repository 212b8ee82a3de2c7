#include "sevenfold/train/batch_loader.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

#include "sevenfold/core/error.h"
#include "sevenfold/dataset/batch.h"

namespace sevenfold {
namespace {

// Undefined where there are none.
at::Tensor rows(const std::vector<int64_t>& values, const std::vector<int64_t>& shape) {
  if (values.empty()) return {};
  const at::Tensor tensor = at::empty(shape, at::TensorOptions().dtype(at::kLong));
  std::copy(values.begin(), values.end(), tensor.data_ptr<int64_t>());
  return tensor;
}

}  // namespace

BatchPlace batch_place(const RankContext& rank) {
  return {rank.coordinates[static_cast<size_t>(Axis::kDp)], rank.mesh->shape().dp};
}

BatchLoader::BatchLoader(const Config& config, const SampleStream& stream, BatchPlace place,
                         at::ScalarType dtype, FaultSet faults)
    : config_(config), stream_(stream), place_(place), dtype_(dtype), faults_(faults) {}

MicrobatchPlace BatchLoader::microbatch_place(int64_t consumed, int64_t microbatch) const {
  MicrobatchPlace place{.consumed = consumed,
                        .microbatch = microbatch,
                        .dp_rank = faults_.has(Fault::kSameSamplesOnEveryRank) ? 0 : place_.dp_rank,
                        .dp_size = place_.dp_size,
                        .micro_batch_size = config_.batch.micro_batch_size};
  if (faults_.has(Fault::kMicrobatchOrderWrong)) {
    place.consumed = place_.dp_rank * (stream_.source().num_samples() / place_.dp_size) +
                     consumed / place_.dp_size;
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
        microbatches.emplace_back(read(stream_.samples(place.first(), place.micro_batch_size), m));
    for (int64_t row = 0; row < place.micro_batch_size; ++row)
      microbatch.sample_ids.push_back(place.first() + row);
  }
  return microbatches;
}

Microbatch BatchLoader::range(int64_t first, int64_t end) const {
  SEVENFOLD_CHECK(0 <= first && first < end);
  std::vector<int64_t> places(static_cast<size_t>(end - first));
  std::iota(places.begin(), places.end(), first);
  Microbatch microbatch = read(stream_.samples(first, end - first), 0);
  microbatch.sample_ids = places;
  microbatch.is_training = false;
  return microbatch;
}

Microbatch BatchLoader::read(const std::vector<int64_t>& samples, int64_t index) const {
  const TokenBatch batch = read_batch(stream_.source(), samples,
                                      {.eod_mask_loss = config_.data.eod_mask_loss,
                                       .reset_position_ids = config_.data.reset_position_ids,
                                       .reset_attention_mask = config_.data.reset_attention_mask,
                                       .eod_token_id = config_.data.eod_token_id,
                                       .pad_token_id = config_.data.pad_token_id});
  const std::vector<int64_t> shape = {batch.num_sequences, batch.seq_length};
  Microbatch microbatch;
  microbatch.index = index;
  microbatch.inputs_BT = rows(batch.inputs, shape);
  microbatch.labels_BT = rows(batch.labels, shape);
  const at::Tensor mask = at::empty(shape, at::TensorOptions().dtype(at::kByte));
  std::copy(batch.loss_mask.begin(), batch.loss_mask.end(), mask.data_ptr<uint8_t>());
  microbatch.mask_BT = mask.to(dtype_);
  microbatch.trained_tokens = batch.num_unmasked;
  microbatch.positions_BT = rows(batch.positions, shape);
  microbatch.first_key_BT = rows(batch.first_key, shape);
  if (faults_.has(Fault::kPositionsNotReset)) microbatch.positions_BT = at::Tensor();
  if (faults_.has(Fault::kDocumentMaskDropped)) microbatch.first_key_BT = at::Tensor();
  if (faults_.has(Fault::kLabelMaskShifted) && config_.data.eod_token_id)
    microbatch.mask_BT = microbatch.labels_BT.ne(*config_.data.eod_token_id).to(dtype_);
  return microbatch;
}

}  // namespace sevenfold
