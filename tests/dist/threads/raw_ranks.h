#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "sevenfold/dist/threads/group.h"
#include "sevenfold/dist/threads/team.h"

// Ranks on plain memory, for tests of the threads backend without LibTorch.
namespace sevenfold::threads::raw {

inline constexpr std::chrono::milliseconds kPatience{120'000};  // a hang, not a measure of speed

using Floats = std::shared_ptr<std::vector<float>>;

inline Floats floats(std::vector<float> values) {
  return std::make_shared<std::vector<float>>(std::move(values));
}

inline std::byte* bytes(const Floats& values) {
  return reinterpret_cast<std::byte*>(values->data());
}

inline int64_t length(const Floats& values) {
  return static_cast<int64_t>(values->size());
}

inline std::vector<int64_t> ranks_below(int64_t num_ranks) {
  std::vector<int64_t> ranks(static_cast<size_t>(num_ranks));
  std::iota(ranks.begin(), ranks.end(), int64_t{0});
  return ranks;
}

// Runs body(member of a group of all ranks) in one thread per rank.
inline void run(int64_t num_ranks, const std::function<void(Member&)>& body,
                std::chrono::milliseconds timeout = kPatience) {
  Team team(num_ranks, timeout, kPatience);
  Group group(team, "world", ranks_below(num_ranks));
  team.run([&](int64_t rank) {
    Member member(group, rank);
    body(member);
  });
}

inline Pending all_reduce(Member& member, const Floats& values,
                          Operation operation = Operation::kAllReduce) {
  return member.start(
      {.operation = operation, .type = ElementType::kFloat32, .sizes = {length(values)}},
      {.input = bytes(values), .output = bytes(values), .keep_alive = values});
}

inline Pending reduce_scatter(Member& member, const Floats& output, const Floats& input,
                              std::vector<int64_t> sizes) {
  return member.start({.operation = Operation::kReduceScatter,
                       .type = ElementType::kFloat32,
                       .sizes = std::move(sizes)},
                      {.input = bytes(input),
                       .output = bytes(output),
                       .keep_alive = std::make_shared<std::pair<Floats, Floats>>(output, input)});
}

inline Pending all_gather(Member& member, const Floats& output, const Floats& input,
                          std::vector<int64_t> sizes) {
  return member.start({.operation = Operation::kAllGather,
                       .type = ElementType::kFloat32,
                       .sizes = std::move(sizes)},
                      {.input = bytes(input),
                       .output = bytes(output),
                       .keep_alive = std::make_shared<std::pair<Floats, Floats>>(output, input)});
}

inline Pending all_to_all(Member& member, const Floats& output, const Floats& input,
                          std::vector<int64_t> output_sizes, std::vector<int64_t> input_sizes) {
  return member.start({.operation = Operation::kAllToAll, .type = ElementType::kFloat32},
                      {.input = bytes(input),
                       .output = bytes(output),
                       .input_sizes = std::move(input_sizes),
                       .output_sizes = std::move(output_sizes),
                       .keep_alive = std::make_shared<std::pair<Floats, Floats>>(output, input)});
}

inline Pending broadcast(Member& member, const Floats& values, int64_t root) {
  return member.start({.operation = Operation::kBroadcast,
                       .type = ElementType::kFloat32,
                       .root = root,
                       .sizes = {length(values)}},
                      {.input = bytes(values), .output = bytes(values), .keep_alive = values});
}

inline void barrier(Member& member) {
  member.start({.operation = Operation::kBarrier}, {}).wait();
}

inline RawMessage message(int64_t peer, const Floats& values) {
  return {peer, ElementType::kFloat32, length(values), bytes(values), values};
}

}  // namespace sevenfold::threads::raw
