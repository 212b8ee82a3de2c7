#pragma once

#include <map>
#include <memory>
#include <string>

#include "sevenfold/core/faults.h"
#include "sevenfold/dist/communicator.h"
#include "sevenfold/dist/ledger.h"
#include "sevenfold/mesh/mesh.h"

namespace sevenfold {

// Everything that belongs to one rank of a run. Made by the backend, passed down by reference, used
// by the rank's thread; outlives every tensor and graph of the rank.
struct RankContext {
  int64_t rank = 0;
  const Mesh* mesh = nullptr;
  Coordinates coordinates{};
  FaultSet faults;
  TrafficLedger traffic;
  MemoryLedger memory;
  Timeline* timeline = nullptr;  // where the rank's work is written down; null: nowhere
  // All groups of Mesh::standard_groups() that this rank is in, plus "world"; groups of one member
  // too (their operations return at once and book no bytes).
  std::map<std::string, std::unique_ptr<Communicator>> groups;

  // Throws InternalError if the group was not created.
  Communicator& group(const std::string& name) const;
};

}  // namespace sevenfold
