#include "sevenfold/parallel/tensor/input_share.h"

#include <ATen/ATen.h>

#include <numeric>

#include "sevenfold/dist/ledger.h"
#include "sevenfold/param/flat_storage.h"

namespace sevenfold {

InputShare::InputShare(const at::Tensor& whole, Communicator& group)
    : shape_(whole.sizes().vec()), group_(&group) {
  const std::vector<int64_t> sizes = even_cut(whole.numel(), group.size());
  const auto own = sizes.begin() + group.rank();
  share_ =
      whole.reshape(-1).narrow(0, std::accumulate(sizes.begin(), own, int64_t{0}), *own).clone();
}

at::Tensor InputShare::whole() const {
  const MemoryScope scope(MemoryCategory::kCommunication);
  const at::Tensor whole = at::empty(shape_, share_.options());
  group_->all_gather(whole.view(-1), share_, even_cut(whole.numel(), group_->size())).wait();
  return whole;
}

}  // namespace sevenfold
