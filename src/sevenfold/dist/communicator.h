#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sevenfold {

// A collective under way. Move-only; wait() returns when the result may be read and the inputs
// reused. A Work that is destroyed without wait() leaves its exchange (needed when a failing rank
// unwinds): the result is then undefined, and nobody else is held up.
class Work {
 public:
  class Operation {
   public:
    virtual ~Operation() = default;
    virtual void wait() = 0;
    virtual bool is_done() const = 0;
  };
  Work() = default;
  explicit Work(std::unique_ptr<Operation> operation) : operation_(std::move(operation)) {}
  // Throws CommError after a timeout, or Aborted when another rank has failed. Calling it again is
  // a no-op.
  void wait() {
    if (auto operation = std::move(operation_)) operation->wait();
  }
  bool pending() const { return operation_ != nullptr; }
  // True once wait() would return at once; never blocks.
  bool is_done() const { return operation_ == nullptr || operation_->is_done(); }

 private:
  std::unique_ptr<Operation> operation_;
};

struct Message {
  int64_t peer = 0;  // rank within the group
  at::Tensor tensor;
};

// One rank's membership in one group. Used by one thread; all members call the operations of a
// group in the same order. Tensors are contiguous. Sums are taken in rank order, so results are
// bit-reproducible and the same bits on every member. bytes: the ledger counts what the ring
// algorithm sends.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual const std::string& name() const = 0;  // "dp", "dp-cp", ...
  virtual int64_t rank() const = 0;             // within the group
  virtual int64_t size() const = 0;

  // In place: every member ends with the sum (maximum) over the members.
  virtual Work all_reduce(at::Tensor tensor) = 0;
  virtual Work all_reduce_max(at::Tensor tensor) = 0;
  // input [sum of sizes], output [sizes[rank()]]: output = this rank's slice of the sum. sizes:
  // elements per member, equal shares when empty. The output may be that slice of the input.
  virtual Work reduce_scatter(at::Tensor output, at::Tensor input,
                              std::vector<int64_t> sizes = {}) = 0;
  // input [sizes[rank()]], output [sum of sizes]: the members' inputs in rank order. The input may
  // be this rank's slice of the output.
  virtual Work all_gather(at::Tensor output, at::Tensor input, std::vector<int64_t> sizes = {}) = 0;
  // Elements input_sizes[i] go to member i, output_sizes[i] come from it.
  virtual Work all_to_all(at::Tensor output, at::Tensor input, std::vector<int64_t> output_sizes,
                          std::vector<int64_t> input_sizes) = 0;
  virtual Work broadcast(at::Tensor tensor, int64_t root) = 0;
  // Point to point: sends and receives complete together, so a ring of exchanges cannot deadlock. A
  // receive fills memory of the receiver. Messages between two members match in the order of the
  // calls.
  virtual Work exchange(std::vector<Message> sends, std::vector<Message> receives) = 0;
  virtual void barrier() = 0;
};

}  // namespace sevenfold
