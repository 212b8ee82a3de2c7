#include "sevenfold/schedule/ahead.h"

#include <algorithm>
#include <map>
#include <utility>

#include "sevenfold/schedule/replay.h"

namespace sevenfold {
namespace {

using Forwards = std::map<std::pair<int64_t, int64_t>, RowPlace>;  // by stage and micro batch

Forwards leading_forwards(const Schedule& schedule, std::vector<size_t>& num_rows) {
  Forwards forwards;
  for (int64_t rank = 0; rank < schedule.num_ranks(); ++rank) {
    const std::vector<Row>& rows = schedule.rows[static_cast<size_t>(rank)];
    size_t position = 0;
    for (; position < rows.size() && rows[position].op == Op::kForward; ++position)
      forwards[{rows[position].stage, rows[position].microbatch}] = {rank, position};
    num_rows.push_back(position);
  }
  return forwards;
}

// Rows of each rank: a forward whose input comes from a row that waits has to wait too, and with it
// all rows behind it.
std::vector<size_t> rows_ahead(const Schedule& schedule) {
  std::vector<size_t> num_rows;
  const Forwards forwards = leading_forwards(schedule, num_rows);
  const auto waits = [&](const Row& row) {
    if (row.stage == 0) return false;
    const auto input = forwards.find({row.stage - 1, row.microbatch});
    return input == forwards.end() ||
           input->second.position >= num_rows[static_cast<size_t>(input->second.rank)];
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t rank = 0; rank < num_rows.size(); ++rank) {
      const auto first = schedule.rows[rank].begin();
      const auto end = first + static_cast<int64_t>(num_rows[rank]);
      const auto waiting = std::find_if(first, end, waits);
      moved = moved || waiting != end;
      num_rows[rank] = static_cast<size_t>(waiting - first);
    }
  }
  return num_rows;
}

size_t actions_before(const std::vector<Action>& actions, size_t position) {
  const auto waiting = std::find_if(actions.begin(), actions.end(), [&](const Action& action) {
    return action.kind == Action::Kind::kCompute && action.position >= position;
  });
  return static_cast<size_t>(waiting - actions.begin());
}

}  // namespace

std::vector<RunAhead> runs_ahead(const Schedule& schedule,
                                 const std::vector<std::vector<Action>>& actions) {
  const std::vector<size_t> num_rows = rows_ahead(schedule);
  const size_t num_ranks = actions.size();
  std::vector<RunAhead> ahead(num_ranks);
  using Counts = std::vector<std::vector<int64_t>>;  // [from][to]
  Counts sent(num_ranks, std::vector<int64_t>(num_ranks, 0));
  Counts received = sent;
  for (size_t rank = 0; rank < num_ranks; ++rank) {
    ahead[rank].num_actions = actions_before(actions[rank], num_rows[rank]);
    for (size_t at = 0; at < ahead[rank].num_actions; ++at) {
      const auto peer = static_cast<size_t>(actions[rank][at].peer);
      if (actions[rank][at].kind == Action::Kind::kSend) ++sent[rank][peer];
      if (actions[rank][at].kind == Action::Kind::kReceive) ++received[peer][rank];
    }
  }
  for (size_t rank = 0; rank < num_ranks; ++rank)
    for (size_t peer = 0; peer < num_ranks; ++peer) {
      ahead[rank].unsent.push_back(std::max<int64_t>(0, received[rank][peer] - sent[rank][peer]));
      ahead[rank].unreceived.push_back(
          std::max<int64_t>(0, sent[peer][rank] - received[peer][rank]));
    }
  return ahead;
}

}  // namespace sevenfold
