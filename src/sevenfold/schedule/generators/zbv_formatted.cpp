#include <algorithm>

#include "sevenfold/schedule/generators/generators.h"
#include "sevenfold/schedule/generators/order.h"

namespace sevenfold {
namespace {

// Appends passes of one rank in the order of their micro batches; passes of micro batches that do
// not exist are counted and left out.
class VRows {
 public:
  VRows(Schedule& schedule, int64_t rank) : schedule_(schedule), rank_(rank) {}

  void forward(int64_t chunk) { add(Op::kForward, chunk, forwards_[chunk]++); }
  void backward(int64_t chunk) { add(Op::kBackwardInput, chunk, backwards_[chunk]++); }
  void weight(int64_t chunk) { add(Op::kBackwardWeight, chunk, weights_[chunk]++); }
  void backward_and_weight(int64_t chunk) {
    backward(chunk);
    weight(chunk);
  }
  void rest_of_weights(int64_t chunk) {
    while (weights_[chunk] < backwards_[chunk]) weight(chunk);
  }
  int64_t num_forwards(int64_t chunk) const { return forwards_[chunk]; }

 private:
  void add(Op op, int64_t chunk, int64_t microbatch) {
    if (microbatch < schedule_.num_microbatches) append(schedule_, rank_, op, chunk, microbatch);
  }

  Schedule& schedule_;
  int64_t rank_;
  int64_t forwards_[2] = {0, 0};
  int64_t backwards_[2] = {0, 0};
  int64_t weights_[2] = {0, 0};
};

void append_rank(Schedule& schedule, int64_t rank, int64_t ranks, int64_t count) {
  VRows rows(schedule, rank);
  // Warm-up: forwards down the V, then down and up in turn, then the turn at its tip.
  for (int64_t i = 0; i < 2 * (ranks - rank) - 1; ++i) rows.forward(0);
  for (int64_t i = 0; i < rank; ++i) {
    rows.forward(1);
    rows.forward(0);
  }
  for (int64_t i = 0; i < ranks - rank; ++i) {
    rows.forward(1);
    rows.backward_and_weight(1);
  }
  while (rows.num_forwards(1) < count || rows.num_forwards(0) < count) {
    if (rows.num_forwards(0) < count) rows.forward(0);
    rows.backward_and_weight(0);
    rows.forward(1);
    rows.backward_and_weight(1);
  }
  // Cool-down: weights fill what would be a bubble.
  for (int64_t i = 0; i < rank; ++i) {
    rows.backward(0);
    rows.backward(1);
  }
  for (int64_t i = 0; i < ranks - rank; ++i) rows.backward_and_weight(0);
  rows.rest_of_weights(1);
  rows.rest_of_weights(0);
}

}  // namespace

Schedule zbv_formatted(const ScheduleRequest& request) {
  Schedule schedule = empty_schedule("zbv-formatted", Placement::kVee, request, 2);
  const int64_t ranks = request.num_ranks;
  for (int64_t rank = 0; rank < ranks; ++rank)
    append_rank(schedule, rank, ranks, std::max(request.num_microbatches, 2 * ranks - 1));
  return schedule;
}

}  // namespace sevenfold
