#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "sevenfold/schedule/costs.h"
#include "sevenfold/schedule/ir.h"

namespace sevenfold {

struct RowSpan {
  double start = 0;
  double end = 0;
};

struct RowPlace {
  int64_t rank = 0;
  size_t position = 0;
};

// A rank that cannot go on: the row it stands at and the pass that it waits for.
struct StuckRank {
  RowPlace place;
  Pass missing;
};

// All rows run in order on every rank, each as soon as its rank is free and what it needs is there:
//   F(q, m) after F(q-1, m);   B or BW(q, m) after F(q, m) and B or BW(q+1, m);   W(q, m) after
//   B(q, m).
// What comes from another rank arrives costs.link later. Buffers are unlimited.
struct Replay {
  std::vector<std::vector<RowSpan>> spans;  // [rank][position]; of rows that ran
  std::vector<RowPlace> order;              // of rows that ran: each after all that it needs
  std::vector<StuckRank> stuck;             // empty if all rows ran
};

// Needs rows that name existing stages and micro batches (validate.h).
Replay replay(const Schedule& schedule, const ScheduleCosts& costs);

}  // namespace sevenfold
