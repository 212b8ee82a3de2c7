#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sevenfold {

// A pipeline schedule is data: per rank, the rows it executes in order. Sends and receives follow
// from the rows (communication.h); the same value is validated, simulated, drawn and executed.
enum class Op : uint8_t {
  kForward,          // F
  kBackwardInput,    // B: gradient of the input only
  kBackwardWeight,   // W: the weight gradients that B left
  kBackward,         // BW: both at once
  kForwardBackward,  // FBW: the forward of one micro batch and the BW of another, overlapped
};

// "F", "B", "W", "BW", "FBW".
const char* op_name(Op op);

// Where the stages of the model lie. P ranks, v chunks per rank, S stages.
enum class Placement : uint8_t {
  kLinear,  // S = P: stage r on rank r
  kLoop,    // S = vP: rank r holds stages r, P+r, 2P+r, ...
  kVee,     // S = 2P: rank r holds stages r and 2P-1-r, so the ends of the model meet on rank 0
  kBidirectional,  // S = P, two copies of each stage: flow 0 enters at rank 0, flow 1 at rank P-1
};

// "linear", "loop", "vee", "bidirectional".
const char* placement_name(Placement placement);

// The backward half of an FBW row.
struct RowPartner {
  int64_t stage = 0;
  int64_t chunk = 0;
  int64_t microbatch = 0;
  int64_t flow = 0;
};

struct Row {
  Op op = Op::kForward;
  int64_t stage = 0;
  int64_t chunk = 0;  // piece of the model on this rank
  int64_t microbatch = 0;
  int64_t flow = 0;          // direction: 1 only in bidirectional schedules, for microbatch >= M/2
  RowPartner backward = {};  // FBW only: what it runs backward; the fields above say what forward
};

struct Schedule {
  std::string algorithm;
  int64_t num_stages = 1;              // S, over all ranks
  int64_t num_microbatches = 1;        // M, over both flows
  std::vector<std::vector<Row>> rows;  // [rank][position]
  Placement placement = Placement::kLinear;

  int64_t num_ranks() const { return static_cast<int64_t>(rows.size()); }
  // Pieces of the model that a rank holds; the twins of a bidirectional schedule are two.
  int64_t num_chunks() const;
  // Copies of each stage's weights: 2 for bidirectional, else 1.
  int64_t num_copies() const { return placement == Placement::kBidirectional ? 2 : 1; }
};

// The stage that `rank` of `num_ranks` holds as its piece number `chunk`.
int64_t stage_of(Placement placement, int64_t num_ranks, int64_t rank, int64_t chunk);

// Where a micro batch of this flow meets the stage.
struct StageSite {
  int64_t rank = 0;
  int64_t chunk = 0;
};
StageSite site_of(Placement placement, int64_t num_ranks, int64_t stage, int64_t flow);

// One forward or backward pass inside a row: an FBW row has two, every other row one.
struct Pass {
  Op op = Op::kForward;  // never kForwardBackward
  int64_t stage = 0;
  int64_t chunk = 0;
  int64_t microbatch = 0;
  int64_t flow = 0;
};
struct Passes {
  Pass pass[2];
  int count = 1;
  const Pass* begin() const { return pass; }
  const Pass* end() const { return pass + count; }
};
Passes passes_of(const Row& row);

// "F of stage 3 and micro batch 7".
std::string describe(const Pass& pass);
std::string describe(const Row& row);

// The same schedule with each FBW row as an F and a BW.
Schedule without_fused_rows(Schedule schedule);

// True if, after rows[position], no later row adds to the weight gradients of its chunk (of an FBW
// row: the chunk that it runs backward): there the reduction over the data-parallel ranks may
// start. Read from the table, never from the micro batch number: several schedules run the last
// micro batch early.
bool completes_gradients(const std::vector<Row>& rows, size_t position);

}  // namespace sevenfold
