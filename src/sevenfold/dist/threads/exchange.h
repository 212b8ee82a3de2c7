#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sevenfold/dist/threads/combine.h"
#include "sevenfold/dist/threads/team.h"

namespace sevenfold::threads {

enum class Operation : uint8_t {
  kAllReduce,
  kAllReduceMax,
  kReduceScatter,
  kAllGather,
  kAllToAll,
  kBroadcast,
  kExchange,
  kBarrier
};
std::string_view operation_name(Operation operation);  // "all_reduce", ... as the ledgers book it

// What must agree between the members of one exchange.
struct Signature {
  Operation operation = Operation::kBarrier;
  ElementType type = ElementType::kUInt8;
  int64_t root = 0;              // of a broadcast
  std::vector<int64_t> sizes{};  // elements per member; one entry where all have the same
  bool operator==(const Signature&) const = default;

  int64_t bytes() const;
};

// What one member brings. Sizes are elements to (from) each member and used by all_to_all only.
struct Contribution {
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  std::vector<int64_t> input_sizes{};
  std::vector<int64_t> output_sizes{};
  std::shared_ptr<void> keep_alive{};  // owns the memory of input and output
};

// One operation of a group under way. Members publish their buffers and go on; once all have
// published, whoever waits moves the data, block by block, so that one waiting rank can finish the
// exchange while the others compute.
//
// Ownership: every member's pending operation and every thread inside wait() hold the exchange, and
// the exchange holds the keep-alives of all members. A member that leaves a complete exchange takes
// its keep-alive along (nobody reads its buffers any more); otherwise they go with the last holder.
// So a rank that unwinds after a failure frees nothing that another rank is still copying.
class Exchange {
 public:
  static constexpr int64_t kBlockBytes = 64 * 1024;

  // ranks: the members' ranks within the team. group outlives the exchange.
  Exchange(Team& team, std::string_view group, int64_t sequence, std::vector<int64_t> ranks);

  // The caller serialises publish() (the group's lock). Throws InternalError, naming both members,
  // if the signature differs from that of the first publisher. Returns true for the last member: it
  // calls open() after releasing the lock.
  bool publish(int64_t member, const Signature& signature, Contribution contribution);
  // All have published: lets the members move data.
  void open();

  // Returns when the result is in every member's buffers. Moves blocks itself while there are any.
  // Throws Aborted, or CommError after the timeout or when a missing member's rank has finished.
  void wait(int64_t member);
  // The member's last call.
  void leave(int64_t member);

  bool is_complete() const { return complete_.load(); }
  const Signature& signature() const { return signature_; }

 private:
  // destinations[k] = reduction of sources, num_elements of each.
  struct Transfer {
    std::vector<const std::byte*> sources;
    std::vector<std::byte*> destinations;
    int64_t num_elements = 0;
    int64_t first_block = 0;
  };

  void plan_transfers();
  void plan_all_to_all();
  void add_transfer(std::vector<const std::byte*> sources, std::vector<std::byte*> destinations,
                    int64_t num_elements);
  std::vector<const std::byte*> inputs_at(int64_t element) const;
  std::vector<std::byte*> outputs_at(int64_t element) const;
  bool has_open_blocks() const { return open_.load() && next_block_.load() < num_blocks_; }
  void move_blocks();
  void move_block(int64_t block);
  void complete();
  void wake_members();
  bool misses_finished_rank() const;
  void note(int64_t member, bool is_waiting) const;
  [[noreturn]] void give_up(int64_t member);
  std::string missing_ranks() const;

  Team& team_;
  const std::string_view group_;
  const int64_t sequence_;
  const std::vector<int64_t> ranks_;

  // Written under the group's lock until open(), constant afterwards.
  Signature signature_;
  int64_t first_member_ = -1;
  int64_t num_published_ = 0;
  std::vector<Contribution> contributions_;
  std::vector<Transfer> transfers_;
  int64_t block_elements_ = 0;
  int64_t num_blocks_ = 0;

  std::vector<std::atomic<bool>> has_published_;
  std::atomic<bool> open_{false};
  std::atomic<bool> complete_{false};
  std::atomic<int64_t> next_block_{0};
  std::atomic<int64_t> num_moved_{0};
};

}  // namespace sevenfold::threads
