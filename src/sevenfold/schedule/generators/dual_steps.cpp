#include "sevenfold/schedule/generators/dual_steps.h"

#include <deque>

namespace sevenfold {
namespace {

// Appends passes of one rank, each direction in the order of its micro batches, weights first in
// first out.
class DualRows {
 public:
  DualRows(Schedule& schedule, int64_t rank, const DualSteps& steps)
      : schedule_(schedule), rank_(rank), steps_(steps) {}

  void forward(int direction) { add(row(Op::kForward, direction, forwards_[direction]++)); }
  void backward(int direction) { add(row(Op::kBackward, direction, backwards_[direction]++)); }
  void backward_input(int direction) {
    const Row input = row(Op::kBackwardInput, direction, backwards_[direction]++);
    add(input);
    pending_.push_back(input);
  }
  void weight() {
    Row oldest = pending_.front();
    pending_.pop_front();
    oldest.op = Op::kBackwardWeight;
    add(oldest);
  }
  void overlapped(int forward_direction, int backward_direction) {
    Row both = row(Op::kForwardBackward, forward_direction, forwards_[forward_direction]++);
    const Row back = row(Op::kBackward, backward_direction, backwards_[backward_direction]++);
    both.backward = {back.stage, back.chunk, back.microbatch, back.flow};
    add(both);
  }

 private:
  Row row(Op op, int direction, int64_t number) const {
    const int64_t chunk = steps_.chunk[direction];
    return {.op = op,
            .stage = stage_of(schedule_.placement, schedule_.num_ranks(), rank_, chunk),
            .chunk = chunk,
            .microbatch = steps_.first_microbatch[direction] + number,
            .flow = steps_.flow[direction]};
  }
  void add(const Row& row) { schedule_.rows[static_cast<size_t>(rank_)].push_back(row); }

  Schedule& schedule_;
  int64_t rank_;
  const DualSteps& steps_;
  std::deque<Row> pending_;
  int64_t forwards_[2] = {0, 0};
  int64_t backwards_[2] = {0, 0};
};

// Steps 1 to 3: fill, until both directions flow.
void warm_up(DualRows& rows, int64_t before, int64_t distance) {
  for (int64_t i = 0; i < 2 * before; ++i) rows.forward(0);
  for (int64_t i = 0; i <= distance; ++i) {
    rows.forward(0);
    rows.forward(1);
  }
  for (int64_t i = 0; i < before; ++i) {
    rows.backward_input(1);
    rows.weight();
    rows.forward(1);
  }
}

// Steps 6 to 8: in the second half of step 6 weights are left for the bubbles of steps 7 and 8.
void cool_down(DualRows& rows, int64_t before, int64_t distance) {
  const int64_t turn = (distance + 1) / 2;
  bool splits = false;
  const auto backward = [&](int direction) {
    if (splits)
      rows.backward_input(direction);
    else
      rows.backward(direction);
  };
  for (int64_t i = 0; i <= distance; ++i) {
    if (i == turn && distance % 2 == 1) splits = true;
    backward(1);
    if (i == turn && distance % 2 == 0) splits = true;
    backward(0);
  }
  for (int64_t i = 0; i < before; ++i) {
    rows.weight();
    rows.backward_input(0);
  }
  for (int64_t i = 0; i <= distance; ++i) rows.weight();
}

}  // namespace

void append_dual_steps(Schedule& schedule, int64_t rank, const DualSteps& steps) {
  DualRows rows(schedule, rank, steps);
  const int64_t before = steps.depth - steps.distance - 1;
  warm_up(rows, before, steps.distance);
  // Step 4, the steady state. Where the directions meet, the first backward is of the very forward
  // before it, so the two cannot overlap.
  const int64_t steady = steps.microbatches - 2 * steps.depth + steps.distance + 1;
  for (int64_t i = 0; i < steady; ++i) {
    if (i == 0 && before == 0) {
      rows.forward(0);
      rows.backward(1);
    } else {
      rows.overlapped(0, 1);
    }
    rows.overlapped(1, 0);
  }
  for (int64_t i = 0; i < before; ++i) {  // step 5
    rows.backward(1);
    rows.overlapped(1, 0);
  }
  cool_down(rows, before, steps.distance);
}

}  // namespace sevenfold
