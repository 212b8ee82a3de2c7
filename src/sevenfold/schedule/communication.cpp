#include "sevenfold/schedule/communication.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sevenfold/schedule/replay.h"

namespace sevenfold {
namespace {

// What the pass hands to the next stage, if it hands anything on.
std::optional<Transfer> transfer_of(const Schedule& schedule, const Pass& pass) {
  switch (pass.op) {
    case Op::kForward:
      if (pass.stage + 1 == schedule.num_stages) return std::nullopt;
      return Transfer{false, pass.stage, pass.stage + 1, pass.microbatch, pass.flow};
    case Op::kBackwardInput:
    case Op::kBackward:
      if (pass.stage == 0) return std::nullopt;
      return Transfer{true, pass.stage, pass.stage - 1, pass.microbatch, pass.flow};
    default:
      return std::nullopt;
  }
}

// A row that starts, or a row whose results leave: an entry of the one order.
struct Event {
  double time = 0;
  RowPlace place;
  bool leaves = false;
};

std::vector<Event> events_in_order(const Schedule& schedule) {
  const Replay run = replay(schedule, {});
  std::vector<Event> events;
  events.reserve(2 * run.order.size());
  for (const RowPlace& place : run.order) {
    const RowSpan& span = run.spans[static_cast<size_t>(place.rank)][place.position];
    events.push_back({span.start, place, false});
    events.push_back({span.end, place, true});
  }
  // Stable: at equal times what is needed stays before what needs it.
  std::stable_sort(events.begin(), events.end(),
                   [](const Event& left, const Event& right) { return left.time < right.time; });
  return events;
}

bool is_same(const Action& left, const Action& right) {
  const Transfer& a = left.transfer;
  const Transfer& b = right.transfer;
  return a.is_gradient == b.is_gradient && a.from_stage == b.from_stage &&
         a.microbatch == b.microbatch;
}

std::string describe_wait(const Schedule& schedule, size_t rank, const Action& action) {
  if (action.kind == Action::Kind::kCompute)
    return fmt::format("rank {} stands before {}", rank,
                       describe(schedule.rows[rank][action.position]));
  const Transfer& transfer = action.transfer;
  return fmt::format(
      "rank {} waits to {} the {} of micro batch {} from stage {} to stage {} {} rank {}", rank,
      action.kind == Action::Kind::kSend ? "send" : "receive",
      transfer.is_gradient ? "gradient" : "activation", transfer.microbatch, transfer.from_stage,
      transfer.to_stage, action.kind == Action::Kind::kSend ? "to" : "from", action.peer);
}

}  // namespace

std::vector<std::vector<Action>> actions_of(const Schedule& schedule) {
  std::vector<std::vector<Action>> actions(schedule.rows.size());
  const int64_t num_ranks = schedule.num_ranks();
  for (const Event& event : events_in_order(schedule)) {
    const auto rank = static_cast<size_t>(event.place.rank);
    if (!event.leaves) {
      actions[rank].push_back({.kind = Action::Kind::kCompute, .position = event.place.position});
      continue;
    }
    for (const Pass& pass : passes_of(schedule.rows[rank][event.place.position])) {
      const std::optional<Transfer> transfer = transfer_of(schedule, pass);
      if (!transfer) continue;
      const int64_t peer =
          site_of(schedule.placement, num_ranks, transfer->to_stage, pass.flow).rank;
      if (peer == event.place.rank) continue;
      actions[rank].push_back({.kind = Action::Kind::kSend, .peer = peer, .transfer = *transfer});
      actions[static_cast<size_t>(peer)].push_back(
          {.kind = Action::Kind::kReceive, .peer = event.place.rank, .transfer = *transfer});
    }
  }
  return actions;
}

std::optional<std::string> find_deadlock(const Schedule& schedule,
                                         const std::vector<std::vector<Action>>& actions) {
  std::vector<size_t> at(actions.size(), 0);
  const auto here = [&](size_t rank) -> const Action* {
    return at[rank] < actions[rank].size() ? &actions[rank][at[rank]] : nullptr;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t rank = 0; rank < actions.size(); ++rank) {
      for (const Action* action = here(rank); action != nullptr; action = here(rank)) {
        if (action->kind != Action::Kind::kCompute) {
          const auto peer = static_cast<size_t>(action->peer);
          const Action* other = here(peer);
          const bool matches = other != nullptr && other->kind != Action::Kind::kCompute &&
                               other->kind != action->kind &&
                               other->peer == static_cast<int64_t>(rank) &&
                               is_same(*action, *other);
          if (!matches) break;
          ++at[peer];
        }
        ++at[rank];
        moved = true;
      }
    }
  }
  std::string text;
  for (size_t rank = 0; rank < actions.size(); ++rank)
    if (const Action* action = here(rank))
      text += (text.empty() ? "" : "; ") + describe_wait(schedule, rank, *action);
  if (text.empty()) return std::nullopt;
  return text;
}

}  // namespace sevenfold
