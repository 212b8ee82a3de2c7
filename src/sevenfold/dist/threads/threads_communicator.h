#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sevenfold/dist/communicator.h"
#include "sevenfold/dist/ledger.h"
#include "sevenfold/dist/threads/group.h"

namespace sevenfold {

// Communicator whose members are threads of this process: checks tensors, keeps them alive while
// others read them, books traffic. The data movement is in threads/exchange.h. Throws InternalError
// for tensors that are not contiguous CPU tensors of a supported element type or whose sizes do not
// fit the call.
class ThreadsCommunicator final : public Communicator {
 public:
  // group and traffic outlive the communicator; traffic belongs to the member's rank.
  ThreadsCommunicator(threads::Group& group, int64_t rank, TrafficLedger& traffic);

  const std::string& name() const override { return member_.group().name(); }
  int64_t rank() const override { return member_.rank(); }
  int64_t size() const override { return member_.group().size(); }

  Work all_reduce(at::Tensor tensor) override;
  Work all_reduce_max(at::Tensor tensor) override;
  Work reduce_scatter(at::Tensor output, at::Tensor input, std::vector<int64_t> sizes) override;
  Work all_gather(at::Tensor output, at::Tensor input, std::vector<int64_t> sizes) override;
  Work all_to_all(at::Tensor output, at::Tensor input, std::vector<int64_t> output_sizes,
                  std::vector<int64_t> input_sizes) override;
  Work broadcast(at::Tensor tensor, int64_t root) override;
  Work exchange(std::vector<Message> sends, std::vector<Message> receives) override;
  void barrier() override;

 private:
  Work reduce_in_place(threads::Operation operation, at::Tensor tensor);
  Work start(const threads::Signature& signature, threads::Contribution contribution,
             int64_t bytes_sent);
  Work finish_starting(threads::Operation operation, threads::Pending pending, int64_t bytes_sent,
                       double started_s);
  // sizes, or equal shares of num_elements when empty; checked against the group.
  std::vector<int64_t> shares(threads::Operation operation, std::vector<int64_t> sizes,
                              int64_t num_elements) const;
  void check_numel(threads::Operation operation, const at::Tensor& tensor, const char* what,
                   int64_t num_elements) const;
  void check_member(threads::Operation operation, int64_t member) const;

  threads::Member member_;
  TrafficLedger& traffic_;
};

}  // namespace sevenfold
