// When the collectives of a backward pass are waited for: after the weight gradients have been
// computed, or with overlap switched off before.

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>

#include "sevenfold/parallel/sequence/sequence_parallel_linear.h"
#include "sevenfold/parallel/tensor/column_parallel_linear.h"
#include "support/gradient_check.h"

namespace sevenfold {
namespace {

// A group of two of which this rank is the first; nothing is sent. Says when a reduction is begun
// and when it is waited for.
class WatchedGroup : public Communicator {
 public:
  explicit WatchedGroup(std::function<void(const char*)> report) : report_(std::move(report)) {}
  const std::string& name() const override { return name_; }
  int64_t rank() const override { return 0; }
  int64_t size() const override { return 2; }
  Work all_reduce(at::Tensor) override { return watched(); }
  Work all_reduce_max(at::Tensor) override { return {}; }
  Work reduce_scatter(at::Tensor, at::Tensor, std::vector<int64_t>) override { return watched(); }
  Work all_gather(at::Tensor output, at::Tensor, std::vector<int64_t>) override {
    output.fill_(1.0);
    return {};
  }
  Work all_to_all(at::Tensor, at::Tensor, std::vector<int64_t>, std::vector<int64_t>) override {
    return {};
  }
  Work broadcast(at::Tensor, int64_t) override { return {}; }
  Work exchange(std::vector<Message>, std::vector<Message>) override { return {}; }
  void barrier() override {}

 private:
  struct Watched : Work::Operation {
    explicit Watched(const WatchedGroup& watched) : group(watched) {}
    void wait() override { group.report_("waited for"); }
    bool is_done() const override { return false; }
    const WatchedGroup& group;
  };
  Work watched() const {
    report_("begun");
    return Work(std::make_unique<Watched>(*this));
  }

  std::string name_ = "tp";
  std::function<void(const char*)> report_;
};

// What happened, each with whether the weight gradient was there.
std::vector<std::string> events_of_backward(bool sequence, bool overlap) {
  const auto weight = testing::random_parameter("weight", {3, 4});
  weight->gradient().zero_();
  const std::vector<Parameter*> weights = {weight.get()};
  std::vector<std::string> events;
  WatchedGroup group([&](const char* what) {
    const bool has_gradient = weight->gradient().count_nonzero().item<int64_t>() > 0;
    events.push_back(std::string(what) + (has_gradient ? " after" : " before") +
                     " the weight gradient");
  });
  const TensorParallel tensor{.group = &group, .sequence = sequence, .overlap = overlap};
  WeightGradients gradients;
  const at::Tensor x = at::ones({1, 6, 4}, at::TensorOptions(at::kDouble)).requires_grad_(true);
  const at::Tensor y = sequence
                           ? gathering_column_linear(x, weights, gradients, tensor)[0]
                           : column_parallel_linear(x.view({6, 4}), weights, gradients, tensor)[0];
  torch::autograd::backward({y}, {at::ones_like(y)});
  return events;
}

TEST(TensorOverlap, WaitsForTheSumAfterTheWeightGradients) {
  for (const bool sequence : {false, true})
    EXPECT_EQ(events_of_backward(sequence, true),
              (std::vector<std::string>{"begun before the weight gradient",
                                        "waited for after the weight gradient"}));
}

TEST(TensorOverlap, SwitchedOffWaitsBefore) {
  for (const bool sequence : {false, true})
    EXPECT_EQ(events_of_backward(sequence, false),
              (std::vector<std::string>{"begun before the weight gradient",
                                        "waited for before the weight gradient"}));
}

}  // namespace
}  // namespace sevenfold
