// bench_collectives [pairs]: collectives of the simulated cluster against plain copies of the same
// memory, two ranks with 64 MiB of fp32 each, interleaved.

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "bench/measure/processor.h"
#include "bench/measure/ratios.h"
#include "sevenfold/dist/threads/group.h"
#include "sevenfold/dist/threads/team.h"

namespace sevenfold::bench {
namespace {

using threads::ElementType;
using threads::Member;
using threads::Operation;

constexpr int64_t kRanks = 2;
constexpr int64_t kElements = 16 << 20;  // 64 MiB
constexpr int64_t kShard = kElements / kRanks;
constexpr std::chrono::minutes kPatience{5};

using Buffer = std::vector<float>;

std::byte* bytes(Buffer& buffer) {
  return reinterpret_cast<std::byte*>(buffer.data());
}

// A rank's memory: touched before anything is measured.
struct Memory {
  Buffer values = Buffer(kElements, 1.0F);
  Buffer copy = Buffer(kElements, 0.0F);
  Buffer shard = Buffer(kShard, 0.0F);
};

void barrier(Member& member) {
  member.start({.operation = Operation::kBarrier}, {}).wait();
}

void all_reduce(Member& member, Memory& memory) {
  member
      .start(
          {.operation = Operation::kAllReduce, .type = ElementType::kFloat32, .sizes = {kElements}},
          {.input = bytes(memory.values), .output = bytes(memory.values)})
      .wait();
}

void reduce_scatter(Member& member, Memory& memory) {
  member
      .start({.operation = Operation::kReduceScatter,
              .type = ElementType::kFloat32,
              .sizes = {kShard, kShard}},
             {.input = bytes(memory.values), .output = bytes(memory.shard)})
      .wait();
}

void all_gather(Member& member, Memory& memory) {
  member
      .start({.operation = Operation::kAllGather,
              .type = ElementType::kFloat32,
              .sizes = {kShard, kShard}},
             {.input = bytes(memory.shard), .output = bytes(memory.values)})
      .wait();
}

void copy_all(Member&, Memory& memory) {
  std::memcpy(memory.copy.data(), memory.values.data(), sizeof(float) * kElements);
}

void copy_shard(Member&, Memory& memory) {
  std::memcpy(memory.copy.data(), memory.shard.data(), sizeof(float) * kShard);
}

using Body = std::function<void(Member&, Memory&)>;

// Milliseconds from the moment that all ranks begin until all are done.
double measure(Member& member, Memory& memory, const Body& body) {
  barrier(member);
  const auto begin = std::chrono::steady_clock::now();
  body(member, memory);
  barrier(member);
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

struct Contest {
  const char* name;
  Body collective;
  const char* copy_name;
  Body copy;
};

struct Times {
  std::vector<double> collective, copy, ratio;
};

Times run_pairs(Member& member, Memory& memory, const Contest& contest, int pairs) {
  Times times;
  constexpr int kWarmUp = 3;
  for (int i = -kWarmUp; i < pairs; ++i) {
    const double collective = measure(member, memory, contest.collective);
    const double copy = measure(member, memory, contest.copy);
    if (i < 0) continue;
    times.collective.push_back(collective);
    times.copy.push_back(copy);
    times.ratio.push_back(collective / copy);
  }
  return times;
}

void print(const Contest& contest, const Times& times) {
  const Interval ratio = median_interval(times.ratio);
  fmt::print("{:<16}{:>8.2f} ms   {:<28}{:>8.2f} ms   ratio {:.3f} [{:.3f}, {:.3f}]\n",
             contest.name, median_interval(times.collective).median, contest.copy_name,
             median_interval(times.copy).median, ratio.median, ratio.low, ratio.high);
}

void run(int pairs) {
  const std::vector<Contest> contests = {
      {"all_reduce", all_reduce, "memcpy of 64 MiB per rank", copy_all},
      {"reduce_scatter", reduce_scatter, "memcpy of 32 MiB per rank", copy_shard},
      {"all_gather", all_gather, "memcpy of 64 MiB per rank", copy_all}};
  fmt::print(
      "{}\n2 ranks, 64 MiB of fp32 per rank, {} interleaved pairs; medians, ratio with its "
      "95 % interval\n",
      processor_name(), pairs);
  threads::Team team(kRanks, kPatience, kPatience);
  threads::Group group(team, "world", {0, 1});
  team.run([&](int64_t rank) {
    Member member(group, rank);
    Memory memory;
    for (const Contest& contest : contests) {
      const Times times = run_pairs(member, memory, contest, pairs);
      if (rank == 0) print(contest, times);
    }
    barrier(member);  // nobody's memory goes while a peer may read it
  });
}

}  // namespace
}  // namespace sevenfold::bench

int main(int argc, char** argv) {
  const int pairs = argc > 1 ? std::atoi(argv[1]) : 60;
  if (pairs < 6) {
    fmt::print(stderr, "bench_collectives [pairs], at least 6\n");
    return 2;
  }
  sevenfold::bench::run(pairs);
}
