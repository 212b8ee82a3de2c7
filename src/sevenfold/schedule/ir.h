#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sevenfold {

// A pipeline schedule is data: per rank, the rows it executes in order. Sends and receives follow
// from the rows; the same value is executed now, and validated, simulated and drawn by the modules
// to come.
enum class Op : uint8_t {
  kForward,         // F
  kBackwardInput,   // B: gradient of the input only
  kBackwardWeight,  // W: the weight gradients that B left
  kBackward,        // BW: both at once
};

struct Row {
  Op op = Op::kForward;
  int64_t stage = 0;
  int64_t chunk = 0;  // piece of the model on this rank
  int64_t microbatch = 0;
};

struct Schedule {
  std::string algorithm;
  int64_t num_stages = 1;
  int64_t num_microbatches = 1;
  std::vector<std::vector<Row>> rows;  // [rank][position]
};

// True if, after rows[position], no later row adds to the weight gradients of its chunk: there the
// reduction over the data-parallel ranks may start. Read from the table, never from the micro batch
// number: several schedules run the last micro batch early.
bool completes_gradients(const std::vector<Row>& rows, size_t position);

}  // namespace sevenfold
