#include "sevenfold/parallel/data/rounded_sums.h"

#include <ATen/ATen.h>

#include <numeric>
#include <utility>

#include "sevenfold/dist/ledger.h"

namespace sevenfold {
namespace {

at::Tensor rounded(const at::Tensor& tensor, at::ScalarType type) {
  const MemoryScope scope(MemoryCategory::kCommunication);
  return tensor.to(type);
}

class RoundedSum final : public Work::Operation {
 public:
  // own: the rounded elements that become the result; keeps all of the copy alive.
  RoundedSum(Work work, at::Tensor own, at::Tensor result)
      : work_(std::move(work)), own_(std::move(own)), result_(std::move(result)) {}

  void wait() override {
    work_.wait();
    result_.copy_(own_);
  }
  bool is_done() const override { return work_.is_done(); }

 private:
  Work work_;
  at::Tensor own_, result_;
};

}  // namespace

Work all_reduce_as(at::ScalarType type, Communicator& group, const at::Tensor& tensor) {
  if (tensor.scalar_type() == type || group.size() == 1) return group.all_reduce(tensor);
  const at::Tensor copy = rounded(tensor, type);
  return Work(std::make_unique<RoundedSum>(group.all_reduce(copy), copy, tensor));
}

Work reduce_scatter_as(at::ScalarType type, Communicator& group, const at::Tensor& output,
                       const at::Tensor& input, const std::vector<int64_t>& sizes) {
  if (input.scalar_type() == type || group.size() == 1)
    return group.reduce_scatter(output, input, sizes);
  const at::Tensor copy = rounded(input, type);
  const int64_t begin = std::accumulate(sizes.begin(), sizes.begin() + group.rank(), int64_t{0});
  const at::Tensor own = copy.narrow(0, begin, output.numel());
  return Work(std::make_unique<RoundedSum>(group.reduce_scatter(own, copy, sizes), own, output));
}

}  // namespace sevenfold
