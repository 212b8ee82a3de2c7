#include "sevenfold/dist/threads/threads_communicator.h"

#include <ATen/ATen.h>

#include <chrono>
#include <numeric>
#include <optional>
#include <utility>

#include "sevenfold/core/error.h"
#include "sevenfold/dist/ring_bytes.h"

namespace sevenfold {
namespace {

using threads::Contribution;
using threads::ElementType;
using threads::Operation;
using threads::Pending;
using threads::Signature;

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int64_t sum(const std::vector<int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
}

// bool and int8 are moved and compared as bytes; a sum of them would not mean what it says.
std::optional<ElementType> element_type_of(at::ScalarType type, bool is_sum) {
  switch (type) {
    case at::kDouble:
      return ElementType::kFloat64;
    case at::kFloat:
      return ElementType::kFloat32;
    case at::kBFloat16:
      return ElementType::kBFloat16;
    case at::kHalf:
      return ElementType::kFloat16;
    case at::kLong:
      return ElementType::kInt64;
    case at::kInt:
      return ElementType::kInt32;
    case at::kByte:
      return ElementType::kUInt8;
    case at::kBool:
      return is_sum ? std::nullopt : std::optional(ElementType::kUInt8);
    default:
      return std::nullopt;
  }
}

ElementType element_type(Operation operation, const at::Tensor& tensor) {
  const bool is_sum = operation == Operation::kAllReduce || operation == Operation::kReduceScatter;
  const std::string_view name = threads::operation_name(operation);
  if (!tensor.defined()) raise<InternalError>("dist/threads: {} of an undefined tensor", name);
  if (!tensor.device().is_cpu() || !tensor.is_contiguous()) {
    raise<InternalError>(
        "dist/threads: {} of {} bytes needs a contiguous CPU tensor; got strides {} on {}", name,
        tensor.nbytes(), fmt::join(tensor.strides(), ","), tensor.device().str());
  }
  const std::optional<ElementType> type = element_type_of(tensor.scalar_type(), is_sum);
  if (!type) {
    raise<InternalError>("dist/threads: {} does not support element type {}", name,
                         c10::toString(tensor.scalar_type()));
  }
  return *type;
}

std::byte* bytes_of(const at::Tensor& tensor) {
  return static_cast<std::byte*>(tensor.data_ptr());
}

std::shared_ptr<void> keep(std::vector<at::Tensor> tensors) {
  return std::make_shared<std::vector<at::Tensor>>(std::move(tensors));
}

// A pending exchange with its times for the ledger.
class TimedOperation final : public Work::Operation {
 public:
  TimedOperation(Pending pending, TrafficLedger& traffic, const std::string& group,
                 std::string_view operation, double started_s)
      : pending_(std::move(pending)),
        traffic_(traffic),
        group_(group),
        operation_(operation),
        started_s_(started_s) {}

  void wait() override {
    const double wait_started_s = now_s();
    pending_.wait();
    const double ended_s = now_s();
    traffic_.record_time(group_, operation_, ended_s - started_s_, ended_s - wait_started_s);
  }
  bool is_done() const override { return pending_.is_complete(); }

 private:
  Pending pending_;
  TrafficLedger& traffic_;
  const std::string& group_;
  const std::string_view operation_;
  const double started_s_;
};

}  // namespace

ThreadsCommunicator::ThreadsCommunicator(threads::Group& group, int64_t rank,
                                         TrafficLedger& traffic)
    : member_(group, rank), traffic_(traffic) {}

Work ThreadsCommunicator::all_reduce(at::Tensor tensor) {
  return reduce_in_place(Operation::kAllReduce, std::move(tensor));
}

Work ThreadsCommunicator::all_reduce_max(at::Tensor tensor) {
  return reduce_in_place(Operation::kAllReduceMax, std::move(tensor));
}

Work ThreadsCommunicator::reduce_in_place(Operation operation, at::Tensor tensor) {
  const ElementType type = element_type(operation, tensor);
  if (size() == 1) return {};
  const int64_t bytes_sent =
      ring_bytes::all_reduce(tensor.numel(), threads::element_bytes(type), size(), rank());
  Contribution contribution{.input = bytes_of(tensor), .output = bytes_of(tensor)};
  const int64_t num_elements = tensor.numel();
  contribution.keep_alive = keep({std::move(tensor)});
  return start({.operation = operation, .type = type, .sizes = {num_elements}},
               std::move(contribution), bytes_sent);
}

Work ThreadsCommunicator::reduce_scatter(at::Tensor output, at::Tensor input,
                                         std::vector<int64_t> sizes) {
  constexpr Operation kOperation = Operation::kReduceScatter;
  const ElementType type = element_type(kOperation, input);
  SEVENFOLD_CHECK(element_type(kOperation, output) == type, "reduce_scatter: element types differ");
  sizes = shares(kOperation, std::move(sizes), input.numel());
  check_numel(kOperation, input, "input", sum(sizes));
  check_numel(kOperation, output, "output", sizes[rank()]);
  const int64_t bytes_sent =
      ring_bytes::reduce_scatter(sizes, threads::element_bytes(type), rank());
  Contribution contribution{.input = bytes_of(input), .output = bytes_of(output)};
  contribution.keep_alive = keep({std::move(output), std::move(input)});
  return start({.operation = kOperation, .type = type, .sizes = std::move(sizes)},
               std::move(contribution), bytes_sent);
}

Work ThreadsCommunicator::all_gather(at::Tensor output, at::Tensor input,
                                     std::vector<int64_t> sizes) {
  constexpr Operation kOperation = Operation::kAllGather;
  const ElementType type = element_type(kOperation, input);
  SEVENFOLD_CHECK(element_type(kOperation, output) == type, "all_gather: element types differ");
  sizes = shares(kOperation, std::move(sizes), output.numel());
  check_numel(kOperation, input, "input", sizes[rank()]);
  check_numel(kOperation, output, "output", sum(sizes));
  const int64_t bytes_sent = ring_bytes::all_gather(sizes, threads::element_bytes(type), rank());
  Contribution contribution{.input = bytes_of(input), .output = bytes_of(output)};
  contribution.keep_alive = keep({std::move(output), std::move(input)});
  return start({.operation = kOperation, .type = type, .sizes = std::move(sizes)},
               std::move(contribution), bytes_sent);
}

Work ThreadsCommunicator::all_to_all(at::Tensor output, at::Tensor input,
                                     std::vector<int64_t> output_sizes,
                                     std::vector<int64_t> input_sizes) {
  constexpr Operation kOperation = Operation::kAllToAll;
  const ElementType type = element_type(kOperation, input);
  SEVENFOLD_CHECK(element_type(kOperation, output) == type, "all_to_all: element types differ");
  output_sizes = shares(kOperation, std::move(output_sizes), output.numel());
  input_sizes = shares(kOperation, std::move(input_sizes), input.numel());
  check_numel(kOperation, input, "input", sum(input_sizes));
  check_numel(kOperation, output, "output", sum(output_sizes));
  const int64_t bytes_sent =
      ring_bytes::all_to_all(input_sizes, threads::element_bytes(type), rank());
  Contribution contribution{.input = bytes_of(input),
                            .output = bytes_of(output),
                            .input_sizes = std::move(input_sizes),
                            .output_sizes = std::move(output_sizes)};
  contribution.keep_alive = keep({std::move(output), std::move(input)});
  return start({.operation = kOperation, .type = type}, std::move(contribution), bytes_sent);
}

Work ThreadsCommunicator::broadcast(at::Tensor tensor, int64_t root) {
  const ElementType type = element_type(Operation::kBroadcast, tensor);
  check_member(Operation::kBroadcast, root);
  if (size() == 1) return {};
  const int64_t bytes_sent =
      ring_bytes::broadcast(static_cast<int64_t>(tensor.nbytes()), size(), rank(), root);
  const int64_t num_elements = tensor.numel();
  Contribution contribution{.input = bytes_of(tensor), .output = bytes_of(tensor)};
  contribution.keep_alive = keep({std::move(tensor)});
  return start(
      {.operation = Operation::kBroadcast, .type = type, .root = root, .sizes = {num_elements}},
      std::move(contribution), bytes_sent);
}

Work ThreadsCommunicator::exchange(std::vector<Message> sends, std::vector<Message> receives) {
  const double started_s = now_s();
  int64_t bytes_sent = 0;
  const auto raw = [this](Message& message) {
    const ElementType type = element_type(Operation::kExchange, message.tensor);
    check_member(Operation::kExchange, message.peer);
    return threads::RawMessage{message.peer, type, message.tensor.numel(), bytes_of(message.tensor),
                               keep({message.tensor})};
  };
  std::vector<threads::RawMessage> raw_sends;
  std::vector<threads::RawMessage> raw_receives;
  for (Message& message : sends) {
    raw_sends.push_back(raw(message));
    if (message.peer != rank()) bytes_sent += static_cast<int64_t>(message.tensor.nbytes());
  }
  for (Message& message : receives) raw_receives.push_back(raw(message));
  return finish_starting(Operation::kExchange,
                         member_.exchange(std::move(raw_sends), std::move(raw_receives)),
                         bytes_sent, started_s);
}

void ThreadsCommunicator::barrier() {
  if (size() > 1) start({.operation = Operation::kBarrier}, {}, 0).wait();
}

Work ThreadsCommunicator::start(const Signature& signature, Contribution contribution,
                                int64_t bytes_sent) {
  const double started_s = now_s();
  return finish_starting(signature.operation, member_.start(signature, std::move(contribution)),
                         bytes_sent, started_s);
}

Work ThreadsCommunicator::finish_starting(Operation operation, Pending pending, int64_t bytes_sent,
                                          double started_s) {
  if (size() == 1) {
    pending.wait();  // a copy at most; groups of one book nothing
    return {};
  }
  traffic_.record(name(), threads::operation_name(operation), bytes_sent);
  return Work(std::make_unique<TimedOperation>(std::move(pending), traffic_, name(),
                                               threads::operation_name(operation), started_s));
}

std::vector<int64_t> ThreadsCommunicator::shares(Operation operation, std::vector<int64_t> sizes,
                                                 int64_t num_elements) const {
  const std::string_view name_of_call = threads::operation_name(operation);
  if (sizes.empty()) {
    if (num_elements % size() != 0) {
      raise<InternalError>(
          "dist/threads: {} of {} elements does not divide evenly over the {} members of group {}; "
          "pass sizes",
          name_of_call, num_elements, size(), name());
    }
    return std::vector<int64_t>(static_cast<size_t>(size()), num_elements / size());
  }
  if (static_cast<int64_t>(sizes.size()) != size()) {
    raise<InternalError>("dist/threads: {} got {} sizes for the {} members of group {}",
                         name_of_call, sizes.size(), size(), name());
  }
  return sizes;
}

void ThreadsCommunicator::check_numel(Operation operation, const at::Tensor& tensor,
                                      const char* what, int64_t num_elements) const {
  if (tensor.numel() == num_elements) return;
  raise<InternalError>(
      "dist/threads: {} in group {}: {} of member {} has {} elements, its sizes say {}",
      threads::operation_name(operation), name(), what, rank(), tensor.numel(), num_elements);
}

void ThreadsCommunicator::check_member(Operation operation, int64_t member) const {
  if (member >= 0 && member < size()) return;
  raise<InternalError>("dist/threads: {} names member {} of group {}, which has {} members",
                       threads::operation_name(operation), member, name(), size());
}

}  // namespace sevenfold
