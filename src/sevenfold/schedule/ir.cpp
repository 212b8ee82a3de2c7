#include "sevenfold/schedule/ir.h"

#include <fmt/format.h>

namespace sevenfold {
namespace {

// The chunk whose weight gradients a row adds to.
std::optional<int64_t> chunk_of_gradients(const Row& row) {
  switch (row.op) {
    case Op::kBackward:
    case Op::kBackwardWeight:
      return row.chunk;
    case Op::kForwardBackward:
      return row.backward.chunk;
    case Op::kForward:
    case Op::kBackwardInput:
      break;
  }
  return std::nullopt;
}

}  // namespace

const char* op_name(Op op) {
  constexpr const char* kNames[] = {"F", "B", "W", "BW", "FBW"};
  return kNames[static_cast<size_t>(op)];
}

const char* placement_name(Placement placement) {
  constexpr const char* kNames[] = {"linear", "loop", "vee", "bidirectional"};
  return kNames[static_cast<size_t>(placement)];
}

int64_t Schedule::num_chunks() const {
  return placement == Placement::kBidirectional ? 2 : num_stages / num_ranks();
}

int64_t stage_of(Placement placement, int64_t num_ranks, int64_t rank, int64_t chunk) {
  switch (placement) {
    case Placement::kLinear:
      return rank;
    case Placement::kLoop:
      return chunk * num_ranks + rank;
    case Placement::kVee:
      return chunk == 0 ? rank : 2 * num_ranks - 1 - rank;
    case Placement::kBidirectional:
      return chunk == 0 ? rank : num_ranks - 1 - rank;
  }
  return rank;
}

StageSite site_of(Placement placement, int64_t num_ranks, int64_t stage, int64_t flow) {
  switch (placement) {
    case Placement::kLinear:
      return {stage, 0};
    case Placement::kLoop:
      return {stage % num_ranks, stage / num_ranks};
    case Placement::kVee:
      return stage < num_ranks ? StageSite{stage, 0} : StageSite{2 * num_ranks - 1 - stage, 1};
    case Placement::kBidirectional:
      return flow == 0 ? StageSite{stage, 0} : StageSite{num_ranks - 1 - stage, 1};
  }
  return {stage, 0};
}

Passes passes_of(const Row& row) {
  const Pass first = {row.op, row.stage, row.chunk, row.microbatch, row.flow};
  if (row.op != Op::kForwardBackward) return {{first, {}}, 1};
  Passes both = {{first, {}}, 2};
  both.pass[0].op = Op::kForward;
  both.pass[1] = {Op::kBackward, row.backward.stage, row.backward.chunk, row.backward.microbatch,
                  row.backward.flow};
  return both;
}

std::string describe(const Pass& pass) {
  return fmt::format("{} of stage {} and micro batch {}", op_name(pass.op), pass.stage,
                     pass.microbatch);
}

std::string describe(const Row& row) {
  const Passes passes = passes_of(row);
  if (passes.count == 1) return describe(passes.pass[0]);
  return fmt::format("{} with {}", describe(passes.pass[0]), describe(passes.pass[1]));
}

Schedule without_fused_rows(Schedule schedule) {
  for (std::vector<Row>& rows : schedule.rows) {
    std::vector<Row> single;
    for (const Row& row : rows)
      for (const Pass& pass : passes_of(row))
        single.push_back({pass.op, pass.stage, pass.chunk, pass.microbatch, pass.flow, {}});
    rows = std::move(single);
  }
  return schedule;
}

bool completes_gradients(const std::vector<Row>& rows, size_t position) {
  const std::optional<int64_t> chunk = chunk_of_gradients(rows[position]);
  if (!chunk) return false;
  for (size_t later = position + 1; later < rows.size(); ++later)
    if (chunk_of_gradients(rows[later]) == chunk) return false;
  return true;
}

}  // namespace sevenfold
