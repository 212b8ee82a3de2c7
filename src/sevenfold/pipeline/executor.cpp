#include "sevenfold/pipeline/executor.h"

#include "sevenfold/core/error.h"
#include "sevenfold/dist/timeline.h"

namespace sevenfold {
namespace {

bool reduces_after(const std::vector<Row>& rows, size_t position, FaultSet faults) {
  if (faults.has(Fault::kNormOfLocalGradient)) return false;  // the trainer sums after the norm
  if (!faults.has(Fault::kReduceBeforeLastMicrobatch)) return completes_gradients(rows, position);
  // Planted: at the last but one backward, where there is one.
  const std::vector<Row> but_last(rows.begin(), rows.end() - 1);
  return position < but_last.size() && completes_gradients(but_last, position);
}

const char* span_name(Op op) {
  switch (op) {
    case Op::kForwardBackward:
      return "forward and backward";
    case Op::kForward:
      return "forward";
    case Op::kBackward:
      return "backward";
    case Op::kBackwardInput:
      return "backward input";
    case Op::kBackwardWeight:
      return "backward weight";
  }
  return "";
}

}  // namespace

void execute(const std::vector<Row>& rows, Chunk& chunk, GradientReducer& reducer,
             const std::vector<Microbatch>& microbatches, const RankContext& rank) {
  for (size_t position = 0; position < rows.size(); ++position) {
    const Row& row = rows[position];
    SEVENFOLD_CHECK(row.stage == 0 && row.chunk == 0, "stage {} chunk {}", row.stage, row.chunk);
    const Microbatch& microbatch = microbatches.at(static_cast<size_t>(row.microbatch));
    const bool complete =
        reducer.reduces_every_microbatch() || reduces_after(rows, position, rank.faults);
    const WorkSpan span(rank.timeline, span_name(row.op), row.microbatch);
    const MomentScope moment(span_name(row.op), row.microbatch);
    switch (row.op) {
      case Op::kForwardBackward:
        SEVENFOLD_CHECK(false, "an overlapped cell works on two chunks, this rank has one");
        break;
      case Op::kForward:
        chunk.forward(microbatch, {});
        break;
      case Op::kBackward:
        reducer.begin_backward();
        chunk.backward(microbatch, {}, BackwardPart::kFull, complete);
        break;
      case Op::kBackwardInput:
        SEVENFOLD_CHECK(!reducer.reduces_every_microbatch(),
                        "a split backward needs gradients that outlive it");
        chunk.backward(microbatch, {}, BackwardPart::kInputOnly, false);
        break;
      case Op::kBackwardWeight:
        chunk.backward_weights(microbatch, complete);
        break;
    }
  }
  SEVENFOLD_CHECK(chunk.idle(), "the schedule leaves work undone");
}

}  // namespace sevenfold
