#include "sevenfold/pipeline/executor.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "sevenfold/core/error.h"
#include "sevenfold/dist/timeline.h"
#include "sevenfold/pipeline/stage_links.h"

namespace sevenfold {
namespace {

const char* span_name(Op op) {
  switch (op) {
    case Op::kForward:
      return "forward";
    case Op::kBackward:
      return "backward";
    case Op::kBackwardInput:
      return "backward input";
    case Op::kBackwardWeight:
      return "backward weight";
    case Op::kForwardBackward:
      break;
  }
  raise<InternalError>("a pass is forward or backward");
}

bool adds_gradients(const Row& row, int64_t chunk) {
  if (row.op == Op::kForwardBackward) return row.backward.chunk == chunk;
  return (row.op == Op::kBackward || row.op == Op::kBackwardWeight) && row.chunk == chunk;
}

class ScheduleRun {
 public:
  ScheduleRun(const StepTable& table, const PipelineRank& on,
              const std::vector<Microbatch>& microbatches)
      : table_(table),
        on_(on),
        microbatches_(microbatches),
        at_(static_cast<size_t>(on.rank->coordinates[static_cast<size_t>(Axis::kPp)])),
        links_(table.schedule.num_ranks() > 1 ? &on.rank->group("pp") : nullptr, on.sends_block) {
    SEVENFOLD_CHECK_EQ(static_cast<int64_t>(on.chunks.size()), table.schedule.num_chunks());
  }
  // A step that ends early leaves no activation and no queued weight gradient behind.
  ~ScheduleRun() {
    for (Chunk* chunk : on_.chunks) chunk->abandon();
  }
  ScheduleRun(const ScheduleRun&) = delete;
  ScheduleRun& operator=(const ScheduleRun&) = delete;

  Execution run() {
    size_t certain = 0;
    if (on_.confirms_weights) {
      certain = table_.ahead[at_].num_actions;
      run_actions(0, certain);
      if (!on_.confirms_weights()) {
        drop_ahead();
        run_actions(0, certain);
      }
    }
    run_actions(certain, table_.actions[at_].size());
    links_.finish();
    for (const Chunk* chunk : on_.chunks)
      SEVENFOLD_CHECK(chunk->idle(), "the schedule leaves work undone");
    return done_;
  }

 private:
  void run_actions(size_t begin, size_t end) {
    for (size_t at = begin; at < end; ++at) {
      const Action& action = table_.actions[at_][at];
      const Transfer& transfer = action.transfer;
      switch (action.kind) {
        case Action::Kind::kSend:
          links_.send(transfer, action.peer);
          break;
        case Action::Kind::kReceive:
          links_.receive(transfer, action.peer, buffer_of(transfer.microbatch));
          break;
        case Action::Kind::kCompute:
          run_row(action.position);
      }
    }
  }

  // Both ends of a link have seen as many messages afterwards, so that those of the second run meet
  // their own. In training all micro batches have one size.
  void drop_ahead() {
    std::vector<Message> sends, receives;
    const RunAhead& ahead = table_.ahead[at_];
    for (size_t peer = 0; peer < ahead.unsent.size(); ++peer) {
      for (int64_t i = 0; i < ahead.unsent[peer]; ++i)
        sends.push_back({static_cast<int64_t>(peer), buffer_of(0).zero_()});
      for (int64_t i = 0; i < ahead.unreceived[peer]; ++i)
        receives.push_back({static_cast<int64_t>(peer), buffer_of(0)});
    }
    links_.drop(std::move(sends), std::move(receives));
    for (Chunk* chunk : on_.chunks) chunk->abandon();
    done_.busy_s = 0.0;
  }

  const std::vector<Row>& rows() const { return table_.schedule.rows[at_]; }
  const Microbatch& microbatch(int64_t index) const {
    return microbatches_.at(static_cast<size_t>(index));
  }

  at::Tensor buffer_of(int64_t of_microbatch) const {
    const int64_t samples = microbatch(of_microbatch).inputs_BT.size(0);
    return at::empty({samples, on_.boundary_tokens, on_.boundary_hidden},
                     at::TensorOptions().dtype(on_.dtype));
  }

  // An overlapped cell runs its forward, then its backward.
  void run_row(size_t position) {
    for (const Pass& pass : passes_of(rows()[position])) {
      const Boundary input = input_of(pass);
      const double start_s = Timeline::now_s();
      const Boundary output = timed(pass, input, position);
      note_time(start_s, Timeline::now_s());
      hand_on(pass, output);
      if (pass.op == Op::kForward) note_activations();
    }
  }

  Boundary input_of(const Pass& pass) {
    const bool is_forward = pass.op == Op::kForward;
    if (pass.op == Op::kBackwardWeight) return {};
    const int64_t from = is_forward ? pass.stage - 1 : pass.stage + 1;
    if (from < 0 || from == table_.schedule.num_stages) return {};
    return {links_.take({!is_forward, from, pass.stage, pass.microbatch, pass.flow})};
  }

  Boundary timed(const Pass& pass, const Boundary& input, size_t position) {
    const WorkSpan span(on_.rank->timeline,
                        on_.rank->timeline == nullptr ? std::string() : name_of(pass));
    const MomentScope moment(span_name(pass.op), pass.microbatch);
    return run_pass(pass, input, position);
  }

  std::string name_of(const Pass& pass) const {
    const std::string name = fmt::format("{} {}", span_name(pass.op), pass.microbatch);
    if (table_.schedule.num_stages == 1) return name;
    return fmt::format("{} stage {} chunk {}", name, pass.stage, pass.chunk);
  }

  Boundary run_pass(const Pass& pass, const Boundary& input, size_t position) {
    const auto number = static_cast<size_t>(pass.chunk);
    SEVENFOLD_CHECK(number < on_.chunks.size(), "chunk {} of {}", number, on_.chunks.size());
    Chunk& chunk = *on_.chunks[number];
    const Microbatch& on_batch = microbatch(pass.microbatch);
    switch (pass.op) {
      case Op::kForward:
        return on_batch.is_training ? chunk.forward(on_batch, input)
                                    : evaluate(chunk, on_batch, input);
      case Op::kBackward:
        return chunk.backward(on_batch, input, BackwardPart::kFull, is_reduced(pass, position));
      case Op::kBackwardInput:
        return chunk.backward(on_batch, input, BackwardPart::kInputOnly,
                              on_.reducer->reduces_every_microbatch());
      default:
        chunk.backward_weights(on_batch, is_reduced(pass, position));
        return {};
    }
  }

  Boundary evaluate(Chunk& chunk, const Microbatch& on_batch, const Boundary& input) {
    const Chunk::Evaluation evaluation = chunk.evaluate(on_batch, input);
    at::Tensor& sum = done_.evaluation_loss;
    sum = sum.defined() ? sum + evaluation.loss_sum : evaluation.loss_sum;
    return evaluation.boundary;
  }

  // Whether the sums over the ranks start with this pass: from ZeRO-2 on with every one.
  bool is_reduced(const Pass& pass, size_t position) const {
    const FaultSet faults = on_.rank->faults;
    if (on_.reducer->reduces_every_microbatch()) return true;
    if (faults.has(Fault::kNormOfLocalGradient)) return false;  // the trainer sums after the norm
    if (!faults.has(Fault::kReduceBeforeLastMicrobatch)) return table_.completes[at_][position];
    return is_last_but_one(pass.chunk, position);
  }

  // Planted: the last but one row that adds to the chunk's gradients, where there is one.
  bool is_last_but_one(int64_t chunk, size_t position) const {
    return std::count_if(rows().begin() + static_cast<int64_t>(position) + 1, rows().end(),
                         [&](const Row& row) { return adds_gradients(row, chunk); }) == 1;
  }

  void hand_on(const Pass& pass, const Boundary& output) {
    const bool is_forward = pass.op == Op::kForward;
    if (pass.op == Op::kBackwardWeight) return;
    const int64_t to = is_forward ? pass.stage + 1 : pass.stage - 1;
    if (to < 0 || to == table_.schedule.num_stages) return;
    links_.put({!is_forward, pass.stage, to, pass.microbatch, pass.flow}, output.hidden_BTD);
  }

  void note_time(double start_s, double end_s) {
    if (done_.last_end_s == 0.0) done_.first_start_s = start_s;
    done_.last_end_s = end_s;
    done_.busy_s += end_s - start_s;
  }

  void note_activations() {
    int64_t kept = 0;
    for (const Chunk* chunk : on_.chunks) kept += chunk->num_microbatches_kept();
    const Schedule& schedule = table_.schedule;
    const double share =
        static_cast<double>(schedule.num_ranks()) / static_cast<double>(schedule.num_stages);
    done_.peak_activation = std::max(done_.peak_activation, static_cast<double>(kept) * share);
  }

  const StepTable& table_;
  const PipelineRank& on_;
  const std::vector<Microbatch>& microbatches_;
  const size_t at_;
  StageLinks links_;
  Execution done_;
};

}  // namespace

Execution execute(const StepTable& table, const PipelineRank& on,
                  const std::vector<Microbatch>& microbatches) {
  return ScheduleRun(table, on, microbatches).run();
}

}  // namespace sevenfold
