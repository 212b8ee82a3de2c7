#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "sevenfold/dist/threads/exchange.h"
#include "sevenfold/dist/threads/team.h"

namespace sevenfold::threads {

// The exchanges of one group that some members have joined and others have not. Shared by the
// members; all methods may be called from any rank's thread. Outlives every exchange.
class Group {
 public:
  // ranks: the members, by their rank in the team.
  Group(Team& team, std::string name, std::vector<int64_t> ranks);

  const std::string& name() const { return name_; }
  int64_t size() const { return static_cast<int64_t>(ranks_.size()); }
  Team& team() const { return team_; }
  int64_t team_rank(int64_t member) const { return ranks_[member]; }

  // Joins collective number `sequence` of the group.
  std::shared_ptr<Exchange> join(int64_t member, int64_t sequence, const Signature& signature,
                                 Contribution contribution);
  // Joins message number `sequence` between two members. Each message is an exchange of its own
  // between sender and receiver, so the rest of the group takes no part.
  std::shared_ptr<Exchange> send(int64_t from, int64_t to, int64_t sequence,
                                 const Signature& signature, Contribution contribution);
  std::shared_ptr<Exchange> receive(int64_t from, int64_t to, int64_t sequence,
                                    const Signature& signature, Contribution contribution);

 private:
  struct Key {
    int64_t from;  // -1: a collective
    int64_t to;
    int64_t sequence;
    auto operator<=>(const Key&) const = default;
  };

  std::shared_ptr<Exchange> join(const Key& key, const std::vector<int64_t>& ranks, int64_t member,
                                 const Signature& signature, Contribution contribution);

  Team& team_;
  const std::string name_;
  const std::vector<int64_t> ranks_;
  std::mutex mutex_;
  std::map<Key, std::shared_ptr<Exchange>> partial_;
};

// A member's part in one or more exchanges: what a Work wraps. Used by the member's thread.
// Destroying it without wait() leaves the exchanges; the others finish without this rank.
class Pending {
 public:
  Pending() = default;
  ~Pending() { leave(); }
  Pending(Pending&&) noexcept = default;
  Pending& operator=(Pending&& other) noexcept;
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;

  void add(std::shared_ptr<Exchange> exchange, int64_t member) {
    parts_.emplace_back(std::move(exchange), member);
  }
  // Returns when all exchanges are complete, and leaves them.
  void wait();
  // Whether wait() would return at once.
  bool is_complete() const;

 private:
  void leave();

  std::vector<std::pair<std::shared_ptr<Exchange>, int64_t>> parts_;
};

// A message of exchange(), in the memory of the member that posts it.
struct RawMessage {
  int64_t peer = 0;
  ElementType type = ElementType::kUInt8;
  int64_t num_elements = 0;
  std::byte* data = nullptr;
  std::shared_ptr<void> keep_alive;
};

// One member's operations on plain memory. Used by one thread; nothing blocks but Pending::wait().
class Member {
 public:
  Member(Group& group, int64_t rank);

  int64_t rank() const { return rank_; }
  Group& group() const { return *group_; }

  Pending start(const Signature& signature, Contribution contribution);
  Pending exchange(std::vector<RawMessage> sends, std::vector<RawMessage> receives);

 private:
  Group* group_;
  int64_t rank_;
  int64_t sequence_ = 0;
  std::vector<int64_t> num_sent_;      // per receiver
  std::vector<int64_t> num_received_;  // per sender
};

}  // namespace sevenfold::threads
