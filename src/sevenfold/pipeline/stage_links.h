#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <list>
#include <map>
#include <tuple>
#include <vector>

#include "sevenfold/dist/communicator.h"
#include "sevenfold/schedule/communication.h"

namespace sevenfold {

// What one rank's passes hand on to the next stage, in one step: kept until a pass of this rank or
// a send takes it, and received into buffers of this rank. Nothing here blocks but take() and
// finish(), so that a rank computes while its messages are under way.
class StageLinks {
 public:
  // pipeline: the pp group, null with one rank; outlives the links. sends_block: every send waits
  // until its receive is posted, as on a network without buffers.
  StageLinks(Communicator* pipeline, bool sends_block)
      : pipeline_(pipeline), sends_block_(sends_block) {}

  // The result of a pass of this rank.
  void put(const Transfer& transfer, at::Tensor value);
  // Starts to send what put() was given for the transfer.
  void send(const Transfer& transfer, int64_t peer);
  // Posts a receive into `buffer`.
  void receive(const Transfer& transfer, int64_t peer, at::Tensor buffer);
  // What put() was given, or what a receive brings: waits for it.
  at::Tensor take(const Transfer& transfer);
  // Throws away what was put and received; first the messages that are under way end, and those of
  // which only the other end knows: `sends` of them to another rank, `receives` of any content.
  void drop(std::vector<Message> sends, std::vector<Message> receives);
  // Waits for the sends. Throws InternalError if something was put or received that nobody took.
  void finish();

 private:
  using Key = std::tuple<bool, int64_t, int64_t>;  // gradient or not, from stage, micro batch
  static Key key_of(const Transfer& transfer) {
    return {transfer.is_gradient, transfer.from_stage, transfer.microbatch};
  }
  struct Arrival {
    at::Tensor value;
    Work work;  // pending: under way
  };

  Communicator* pipeline_;
  bool sends_block_;
  std::map<Key, Arrival> arrivals_;
  std::list<Work> sends_;
};

}  // namespace sevenfold
