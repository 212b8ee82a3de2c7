#include "sevenfold/dist/threads/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "sevenfold/core/error.h"

namespace sevenfold::threads {

std::string_view operation_name(Operation operation) {
  switch (operation) {
    case Operation::kAllReduce:
      return "all_reduce";
    case Operation::kAllReduceMax:
      return "all_reduce_max";
    case Operation::kReduceScatter:
      return "reduce_scatter";
    case Operation::kAllGather:
      return "all_gather";
    case Operation::kAllToAll:
      return "all_to_all";
    case Operation::kBroadcast:
      return "broadcast";
    case Operation::kExchange:
      return "exchange";
    case Operation::kBarrier:
      return "barrier";
  }
  return "?";
}

int64_t Signature::bytes() const {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{0}) * element_bytes(type);
}

Exchange::Exchange(Team& team, std::string_view group, int64_t sequence, std::vector<int64_t> ranks)
    : team_(team),
      group_(group),
      sequence_(sequence),
      ranks_(std::move(ranks)),
      contributions_(ranks_.size()),
      has_published_(ranks_.size()) {}

bool Exchange::publish(int64_t member, const Signature& signature, Contribution contribution) {
  if (first_member_ < 0) {
    first_member_ = member;
    signature_ = signature;
  } else if (!(signature == signature_)) {
    const auto describe = [&](int64_t who, const Signature& what) {
      return fmt::format(
          "rank {} called {} of {} bytes ({}{})", ranks_[who], operation_name(what.operation),
          what.bytes(), element_name(what.type),
          what.operation == Operation::kBroadcast ? fmt::format(", root {}", what.root) : "");
    };
    raise<InternalError>(
        "dist/threads: operation {} of group {} does not match: {}, {}; members call the "
        "operations of "
        "a group in the same order with the same sizes",
        sequence_, group_, describe(first_member_, signature_), describe(member, signature));
  }
  contributions_[member] = std::move(contribution);
  has_published_[member].store(true);
  note(member, false);
  return ++num_published_ == static_cast<int64_t>(ranks_.size());
}

void Exchange::open() {
  plan_transfers();
  open_.store(true);
  if (num_blocks_ == 0) {
    complete();
  } else {
    wake_members();
  }
}

void Exchange::wait(int64_t member) {
  if (complete_.load()) return;
  note(member, true);
  const auto deadline = std::chrono::steady_clock::now() + team_.timeout();
  while (true) {
    // Before the abort flag: an exchange that everybody has joined is finished all the same.
    move_blocks();
    if (complete_.load()) break;
    team_.leave_if_aborted();
    const bool changed = team_.park(ranks_[member], deadline, [this] {
      return complete_.load() || has_open_blocks() || team_.is_aborted() || misses_finished_rank();
    });
    if (!changed || (!open_.load() && misses_finished_rank() && !team_.is_aborted()))
      give_up(member);
  }
  note(member, false);
}

void Exchange::leave(int64_t member) {
  if (complete_.load()) contributions_[member].keep_alive.reset();
}

void Exchange::add_transfer(std::vector<const std::byte*> sources,
                            std::vector<std::byte*> destinations, int64_t num_elements) {
  if (num_elements == 0) return;
  transfers_.push_back({std::move(sources), std::move(destinations), num_elements, num_blocks_});
  num_blocks_ += (num_elements + block_elements_ - 1) / block_elements_;
}

std::vector<const std::byte*> Exchange::inputs_at(int64_t element) const {
  std::vector<const std::byte*> inputs;
  for (const Contribution& each : contributions_) {
    inputs.push_back(each.input + element * element_bytes(signature_.type));
  }
  return inputs;
}

std::vector<std::byte*> Exchange::outputs_at(int64_t element) const {
  std::vector<std::byte*> outputs;
  for (const Contribution& each : contributions_) {
    outputs.push_back(each.output + element * element_bytes(signature_.type));
  }
  return outputs;
}

void Exchange::plan_transfers() {
  block_elements_ = kBlockBytes / element_bytes(signature_.type);
  const std::vector<int64_t>& sizes = signature_.sizes;
  int64_t offset = 0;
  switch (signature_.operation) {
    case Operation::kAllReduce:
    case Operation::kAllReduceMax:
      return add_transfer(inputs_at(0), outputs_at(0), sizes[0]);
    case Operation::kReduceScatter:
      for (size_t to = 0; to < sizes.size(); offset += sizes[to++]) {
        add_transfer(inputs_at(offset), {contributions_[to].output}, sizes[to]);
      }
      return;
    case Operation::kAllGather:
      for (size_t from = 0; from < sizes.size(); offset += sizes[from++]) {
        add_transfer({contributions_[from].input}, outputs_at(offset), sizes[from]);
      }
      return;
    case Operation::kAllToAll:
      return plan_all_to_all();
    case Operation::kBroadcast:
      return add_transfer({contributions_[signature_.root].input}, outputs_at(0), sizes[0]);
    case Operation::kExchange:  // member 0 sends, the last member receives (the same for a message
                                // to itself)
      return add_transfer({contributions_.front().input}, {contributions_.back().output}, sizes[0]);
    case Operation::kBarrier:
      return;
  }
}

void Exchange::plan_all_to_all() {
  const int64_t width = element_bytes(signature_.type);
  const auto size = static_cast<int64_t>(ranks_.size());
  std::vector<int64_t> input_offsets(ranks_.size(), 0);
  for (int64_t to = 0; to < size; ++to) {
    int64_t output_offset = 0;
    for (int64_t from = 0; from < size; ++from) {
      const int64_t sent = contributions_[from].input_sizes[to];
      const int64_t expected = contributions_[to].output_sizes[from];
      if (sent != expected) {
        raise<InternalError>(
            "dist/threads: all_to_all {} of group {} does not match: rank {} sends {} bytes to "
            "rank {}, "
            "which expects {}",
            sequence_, group_, ranks_[from], sent * width, ranks_[to], expected * width);
      }
      add_transfer({contributions_[from].input + input_offsets[from] * width},
                   {contributions_[to].output + output_offset * width}, sent);
      input_offsets[from] += sent;
      output_offset += sent;
    }
  }
}

void Exchange::move_blocks() {
  if (!open_.load()) return;
  while (next_block_.load() < num_blocks_) {
    const int64_t block = next_block_.fetch_add(1);
    if (block >= num_blocks_) return;
    move_block(block);
    if (num_moved_.fetch_add(1) + 1 == num_blocks_) complete();
  }
}

void Exchange::move_block(int64_t block) {
  const auto next = std::upper_bound(
      transfers_.begin(), transfers_.end(), block,
      [](int64_t index, const Transfer& transfer) { return index < transfer.first_block; });
  const Transfer& transfer = *std::prev(next);
  const int64_t begin = (block - transfer.first_block) * block_elements_;
  const auto reduction =
      signature_.operation == Operation::kAllReduceMax ? Reduction::kMax : Reduction::kSum;
  combine(signature_.type, reduction, transfer.sources, transfer.destinations, begin,
          std::min(block_elements_, transfer.num_elements - begin));
}

void Exchange::complete() {
  complete_.store(true);
  wake_members();
}

void Exchange::wake_members() {
  for (int64_t rank : ranks_) team_.wake(rank);
}

bool Exchange::misses_finished_rank() const {
  if (open_.load()) return false;
  for (size_t member = 0; member < ranks_.size(); ++member) {
    // In this order: a rank publishes before it finishes.
    if (team_.has_finished(ranks_[member]) && !has_published_[member].load()) return true;
  }
  return false;
}

void Exchange::note(int64_t member, bool is_waiting) const {
  team_.note(ranks_[member], {group_, sequence_, operation_name(signature_.operation),
                              signature_.bytes(), is_waiting});
}

std::string Exchange::missing_ranks() const {
  std::string missing;
  for (size_t member = 0; member < ranks_.size(); ++member) {
    if (has_published_[member].load()) continue;
    missing += fmt::format("{}{}", missing.empty() ? "" : ", ", ranks_[member]);
  }
  return missing.empty() ? "none" : missing;
}

void Exchange::give_up(int64_t member) {
  const std::string reason = misses_finished_rank()
                                 ? "a missing rank has already finished its work"
                                 : fmt::format("{} ms have passed", team_.timeout().count());
  const CommError error(
      fmt::format("dist/threads: rank {} waits in vain for {} {} of group {} ({} bytes): {}; "
                  "missing ranks: {}\n{}",
                  ranks_[member], operation_name(signature_.operation), sequence_, group_,
                  signature_.bytes(), reason, missing_ranks(), team_.activity_table()));
  // Registered before it unwinds, so that it comes before whatever it causes elsewhere.
  team_.fail(ranks_[member], std::make_exception_ptr(error));
  throw error;
}

}  // namespace sevenfold::threads
