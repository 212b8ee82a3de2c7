#include "sevenfold/parallel/sequence/sequence_shards.h"

#include <ATen/ATen.h>

#include "sevenfold/core/error.h"
#include "sevenfold/dist/ledger.h"

namespace sevenfold {

SequenceGather::SequenceGather(const at::Tensor& part_BSD, const TensorParallel& tensor)
    : part_(part_BSD.contiguous()) {
  const MemoryScope scope(MemoryCategory::kCommunication);
  parts_ = at::empty({tensor.size(), part_.size(0), part_.size(1), part_.size(2)}, part_.options());
  work_ = tensor.group->all_gather(parts_, part_);
}

// One sample: the parts lie in order already.
at::Tensor SequenceGather::wait() {
  work_.wait();
  const MemoryScope scope(MemoryCategory::kCommunication);
  const int64_t batch = parts_.size(1), length = parts_.size(0) * parts_.size(2);
  const at::Tensor whole = parts_.transpose(0, 1).reshape({batch, length, parts_.size(3)});
  parts_.reset();
  part_.reset();
  return whole;
}

SequenceReduction::SequenceReduction(const at::Tensor& partial_BTD, const TensorParallel& tensor) {
  const int64_t ranks = tensor.size();
  const int64_t batch = partial_BTD.size(0), length = partial_BTD.size(1) / ranks;
  const int64_t columns = partial_BTD.size(2);
  SEVENFOLD_CHECK(partial_BTD.size(1) % ranks == 0, "{} tokens, {} ranks", partial_BTD.size(1),
                  ranks);
  own_ = at::empty({batch, length, columns}, partial_BTD.options());
  const MemoryScope scope(MemoryCategory::kCommunication);
  partial_ = partial_BTD.view({batch, ranks, length, columns}).transpose(0, 1).contiguous();
  work_ = tensor.group->reduce_scatter(own_, partial_);
}

at::Tensor SequenceReduction::wait() {
  work_.wait();
  partial_.reset();
  return std::move(own_);
}

at::Tensor own_part(const at::Tensor& x_BTD, const TensorParallel& tensor) {
  SEVENFOLD_CHECK(x_BTD.size(1) % tensor.size() == 0, "{} tokens, {} ranks", x_BTD.size(1),
                  tensor.size());
  const int64_t length = x_BTD.size(1) / tensor.size();
  return x_BTD.narrow(1, first_position(length, tensor), length).contiguous();
}

int64_t first_position(int64_t length, const TensorParallel& tensor) {
  return tensor.rank() * length;
}

}  // namespace sevenfold
