#include "sevenfold/train/memory_report.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "sevenfold/core/units.h"

namespace sevenfold {
namespace {

using Json = nlohmann::ordered_json;

int64_t total(const CategoryBytes& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), int64_t{0});
}

// As ranks send it: plain bytes of one size.
struct Record {
  static constexpr size_t kMostText = 127;
  int64_t rank, stage;
  CategoryBytes boundary, peak;
  char moment[kMostText + 1];
};

Record record_of(const RankMemory& memory) {
  Record record{memory.rank, memory.stage, memory.boundary, memory.peak, {}};
  memory.peak_moment.copy(record.moment, Record::kMostText);
  return record;
}

std::string layer_name(int64_t layer, int64_t num_layers) {
  if (layer == 0) return "embedding";
  return layer > num_layers ? "head" : fmt::format("layer {}", layer - 1);
}

// "VmRSS:     1234 kB" of /proc/self/status, in bytes.
int64_t status_bytes(std::string_view name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(name)) return std::stoll(line.substr(name.size())) * 1024;
  return 0;
}

std::string row(int64_t stage, int64_t rank, std::string_view when, const CategoryBytes& bytes) {
  std::string text = fmt::format("{:>6}{:>6}  {:<13}", stage, rank, when);
  for (const int64_t each : bytes) text += fmt::format("{:>14}", format_bytes(each));
  return text + fmt::format("{:>14}", format_bytes(total(bytes)));
}

Json to_json(const CategoryBytes& bytes) {
  Json json = {{"total", total(bytes)}};
  for (size_t i = 0; i < bytes.size(); ++i)
    json[std::string(memory_category_name(static_cast<MemoryCategory>(i)))] = bytes[i];
  return json;
}

}  // namespace

std::string describe_moment(const WorkMoment& moment, int64_t num_layers) {
  std::string text = moment.work;
  if (moment.microbatch >= 0) text += fmt::format(" of micro batch {}", moment.microbatch);
  if (moment.layer >= 0) text += ", " + layer_name(moment.layer, num_layers);
  return text;
}

RankMemory memory_of(const RankContext& rank, int64_t num_layers) {
  RankMemory memory{.rank = rank.rank,
                    .stage = rank.coordinates[static_cast<size_t>(Axis::kPp)],
                    .peak = rank.memory.at_peak(),
                    .peak_moment = describe_moment(rank.memory.moment_at_peak(), num_layers)};
  for (size_t i = 0; i < memory.boundary.size(); ++i)
    memory.boundary[i] = rank.memory.live(static_cast<MemoryCategory>(i));
  return memory;
}

std::vector<RankMemory> gather_memory(const RankMemory& mine, const RankContext& rank) {
  constexpr auto kBytes = static_cast<int64_t>(sizeof(Record));
  const at::TensorOptions bytes = at::TensorOptions().dtype(at::kByte);
  const Record own = record_of(mine);
  const at::Tensor input = at::empty({kBytes}, bytes);
  std::memcpy(input.data_ptr(), &own, sizeof own);
  Communicator& world = rank.group("world");
  const at::Tensor output = at::empty({world.size() * kBytes}, bytes);
  world.all_gather(output, input).wait();
  std::vector<RankMemory> all;
  for (int64_t i = 0; i < world.size(); ++i) {
    Record record;
    std::memcpy(&record, output.data_ptr<uint8_t>() + i * kBytes, sizeof record);
    all.push_back({record.rank, record.stage, record.boundary, record.peak, record.moment});
  }
  return all;
}

std::vector<RankMemory> fullest_of_stages(const std::vector<RankMemory>& all) {
  std::map<int64_t, RankMemory> fullest;
  for (const RankMemory& memory : all) {
    const auto [entry, is_first] = fullest.try_emplace(memory.stage, memory);
    if (!is_first && total(memory.peak) > total(entry->second.peak)) entry->second = memory;
  }
  std::vector<RankMemory> stages;
  for (const auto& [stage, memory] : fullest) stages.push_back(memory);
  return stages;
}

ProcessMemory process_memory() {
  return {.resident = status_bytes("VmRSS:"), .most_resident = status_bytes("VmHWM:")};
}

MemoryReport memory_report(const std::vector<RankMemory>& all, const ProcessMemory& process) {
  int64_t booked = 0;
  for (const RankMemory& memory : all) booked += total(memory.boundary);
  return {.stages = fullest_of_stages(all),
          .process = process,
          .rest = std::max<int64_t>(0, process.resident - booked)};
}

std::vector<std::string> to_lines(const MemoryReport& report) {
  std::string header = "stage  rank  when         ";
  for (int i = 0; i < kNumMemoryCategories; ++i)
    header += fmt::format("{:>14}", memory_category_name(static_cast<MemoryCategory>(i)));
  std::vector<std::string> lines = {"memory of tensors, of the fullest rank of each stage:",
                                    " " + header + fmt::format("{:>14}", "total")};
  for (const RankMemory& memory : report.stages) {
    lines.push_back(row(memory.stage, memory.rank, "step boundary", memory.boundary));
    lines.push_back(row(memory.stage, memory.rank, "peak", memory.peak) + "  in " +
                    memory.peak_moment);
  }
  lines.push_back(fmt::format(
      "process: {} resident, {} at most; {} of it are the rest: code, libraries, mapped data, "
      "freed blocks kept for reuse",
      format_bytes(report.process.resident), format_bytes(report.process.most_resident),
      format_bytes(report.rest)));
  return lines;
}

std::string to_json(const MemoryReport& report) {
  Json stages = Json::array();
  for (const RankMemory& memory : report.stages)
    stages.push_back({{"stage", memory.stage},
                      {"rank", memory.rank},
                      {"step_boundary", to_json(memory.boundary)},
                      {"peak", to_json(memory.peak)},
                      {"peak_moment", memory.peak_moment}});
  const Json json = {{"stages", stages},
                     {"process",
                      {{"resident", report.process.resident},
                       {"most_resident", report.process.most_resident},
                       {"rest", report.rest}}}};
  return json.dump(2) + "\n";
}

}  // namespace sevenfold
