#include "sevenfold/dist/threads/group.h"

#include <algorithm>

namespace sevenfold::threads {
namespace {

Signature message_signature(const RawMessage& message) {
  return {.operation = Operation::kExchange, .type = message.type, .sizes = {message.num_elements}};
}

}  // namespace

Group::Group(Team& team, std::string name, std::vector<int64_t> ranks)
    : team_(team), name_(std::move(name)), ranks_(std::move(ranks)) {}

std::shared_ptr<Exchange> Group::join(const Key& key, const std::vector<int64_t>& ranks,
                                      int64_t member, const Signature& signature,
                                      Contribution contribution) {
  team_.leave_if_aborted();
  std::shared_ptr<Exchange> exchange;
  bool is_last = false;
  {
    std::lock_guard lock(mutex_);
    std::shared_ptr<Exchange>& entry = partial_[key];
    if (!entry) entry = std::make_shared<Exchange>(team_, name_, key.sequence, ranks);
    exchange = entry;
    is_last = exchange->publish(member, signature, std::move(contribution));
    if (is_last) partial_.erase(key);
  }
  if (is_last) exchange->open();
  return exchange;
}

std::shared_ptr<Exchange> Group::join(int64_t member, int64_t sequence, const Signature& signature,
                                      Contribution contribution) {
  return join({-1, -1, sequence}, ranks_, member, signature, std::move(contribution));
}

std::shared_ptr<Exchange> Group::send(int64_t from, int64_t to, int64_t sequence,
                                      const Signature& signature, Contribution contribution) {
  return join({from, to, sequence}, {ranks_[from], ranks_[to]}, 0, signature,
              std::move(contribution));
}

std::shared_ptr<Exchange> Group::receive(int64_t from, int64_t to, int64_t sequence,
                                         const Signature& signature, Contribution contribution) {
  return join({from, to, sequence}, {ranks_[from], ranks_[to]}, 1, signature,
              std::move(contribution));
}

Pending& Pending::operator=(Pending&& other) noexcept {
  leave();
  parts_ = std::move(other.parts_);
  other.parts_.clear();
  return *this;
}

void Pending::wait() {
  for (auto& [exchange, member] : parts_) exchange->wait(member);
  leave();
}

bool Pending::is_complete() const {
  return std::all_of(parts_.begin(), parts_.end(),
                     [](const auto& part) { return part.first->is_complete(); });
}

void Pending::leave() {
  for (auto& [exchange, member] : parts_) exchange->leave(member);
  parts_.clear();
}

Member::Member(Group& group, int64_t rank)
    : group_(&group), rank_(rank), num_sent_(group.size(), 0), num_received_(group.size(), 0) {}

Pending Member::start(const Signature& signature, Contribution contribution) {
  Pending pending;
  pending.add(group_->join(rank_, sequence_++, signature, std::move(contribution)), rank_);
  return pending;
}

Pending Member::exchange(std::vector<RawMessage> sends, std::vector<RawMessage> receives) {
  Pending pending;
  for (RawMessage& message : sends) {
    Contribution contribution{.input = message.data, .keep_alive = std::move(message.keep_alive)};
    pending.add(group_->send(rank_, message.peer, num_sent_[message.peer]++,
                             message_signature(message), std::move(contribution)),
                0);
  }
  for (RawMessage& message : receives) {
    Contribution contribution{.output = message.data, .keep_alive = std::move(message.keep_alive)};
    pending.add(group_->receive(message.peer, rank_, num_received_[message.peer]++,
                                message_signature(message), std::move(contribution)),
                1);
  }
  return pending;
}

}  // namespace sevenfold::threads
