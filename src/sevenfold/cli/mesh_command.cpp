#include <algorithm>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sevenfold/cli/commands.h"
#include "sevenfold/cli/next_command.h"
#include "sevenfold/cli/number_options.h"
#include "sevenfold/cli/tokenizer_facts.h"
#include "sevenfold/config/load.h"
#include "sevenfold/core/error.h"
#include "sevenfold/core/units.h"
#include "sevenfold/mesh/mesh.h"

namespace sevenfold::cli {
namespace {

using json = nlohmann::ordered_json;

constexpr Axis kDenseAxes[] = {Axis::kTp, Axis::kCp, Axis::kDp, Axis::kPp};
constexpr Axis kExpertAxes[] = {Axis::kEtp, Axis::kEp, Axis::kEdp, Axis::kPp};

// What the text shows of a large world; --json lists everything.
constexpr size_t kMaxRows = 64;
constexpr size_t kMaxGroups = 8;
constexpr size_t kMaxMembers = 16;

struct MeshArguments {
  LoadOptions load;
  int64_t world_size = 0;  // 0: as the file and the environment say
  bool as_json = false;
};

template <size_t N>
json degrees_json(const MeshShape& shape, const Axis (&axes)[N]) {
  json degrees = json::object();
  for (const Axis axis : axes) degrees[std::string(axis_name(axis))] = shape.degree(axis);
  return degrees;
}

json mesh_json(const Mesh& mesh) {
  json document;
  document["axes"] = degrees_json(mesh.shape(), kDenseAxes);
  document["expert_axes"] = degrees_json(mesh.shape(), kExpertAxes);
  document["nodes"] = mesh.num_nodes();
  json& ranks = document["ranks"] = json::array();
  for (int64_t rank = 0; rank < mesh.world_size(); ++rank) {
    const Coordinates coordinates = mesh.coordinates(rank);
    json row = {{"rank", rank}, {"node", mesh.node(rank)}};
    for (int index = 0; index < kNumAxes; ++index)
      row[std::string(axis_name(static_cast<Axis>(index)))] =
          coordinates[static_cast<size_t>(index)];
    ranks.push_back(std::move(row));
  }
  json& lists = document["groups"] = json::object();
  for (const auto& [name, groups] : mesh.standard_groups()) {
    json& list = lists[name] = json::array();
    for (const RankGroup& group : groups) list.push_back(group.ranks);
  }
  return document;
}

template <size_t N>
std::string degrees_text(const MeshShape& shape, const Axis (&axes)[N]) {
  std::string text;
  for (const Axis axis : axes)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", axis_name(axis), shape.degree(axis));
  return text;
}

std::string crossing_axes(const Mesh& mesh) {
  std::string text;
  for (int index = 0; index < kNumAxes; ++index) {
    const auto axis = static_cast<Axis>(index);
    if (mesh.crosses_nodes(axis))
      text += fmt::format("{}{}", text.empty() ? "" : ", ", axis_name(axis));
  }
  return text.empty() ? "none" : text;
}

void print_ranks(const Mesh& mesh) {
  fmt::print("\n{:>7} {:>5}", "rank", "node");
  for (int index = 0; index < kNumAxes; ++index)
    fmt::print(" {:>4}", axis_name(static_cast<Axis>(index)));
  fmt::print("\n");
  const int64_t shown = std::min<int64_t>(mesh.world_size(), kMaxRows);
  for (int64_t rank = 0; rank < shown; ++rank) {
    fmt::print("{:>7} {:>5}", rank, mesh.node(rank));
    for (const int64_t coordinate : mesh.coordinates(rank)) fmt::print(" {:>4}", coordinate);
    fmt::print("\n");
  }
  if (shown < mesh.world_size())
    fmt::print("    ... {} more ranks (--json lists all)\n",
               with_commas(mesh.world_size() - shown));
}

std::string members_text(const RankGroup& group) {
  std::string text;
  const size_t shown = std::min(group.ranks.size(), kMaxMembers);
  for (size_t i = 0; i < shown; ++i) text += fmt::format("{}{}", i == 0 ? "" : ",", group.ranks[i]);
  return fmt::format("[{}{}]", text, shown < group.ranks.size() ? ",.." : "");
}

void print_groups(const Mesh& mesh) {
  fmt::print("\n{:<18} {:>7} x {:<6} members\n", "group", "number", "size");
  for (const auto& [name, groups] : mesh.standard_groups()) {
    fmt::print("{:<18} {:>7} x {:<6}", name, groups.size(), groups.front().ranks.size());
    const size_t shown = std::min(groups.size(), kMaxGroups);
    for (size_t i = 0; i < shown; ++i) fmt::print(" {}", members_text(groups[i]));
    fmt::print("{}\n", shown < groups.size() ? " .." : "");
  }
}

// A group of tp or etp talks in every layer: between nodes that costs more than any other choice.
void warn_of_crossing(const Mesh& mesh, Axis axis, std::string_view key) {
  if (!mesh.crosses_nodes(axis)) return;
  fmt::print(stderr,
             "mesh: warning: {}={} puts the ranks of one {} group on several nodes ({} ranks per "
             "node), and "
             "they exchange activations in every layer; use a size that divides {}\n",
             key, mesh.shape().degree(axis), axis_name(axis), mesh.shape().ranks_per_node,
             mesh.shape().ranks_per_node);
}

void print_mesh(const Mesh& mesh, const std::string& file) {
  const MeshShape& shape = mesh.shape();
  fmt::print("{}: {} ranks, {} node{} of {}\n", file, with_commas(mesh.world_size()),
             mesh.num_nodes(), mesh.num_nodes() == 1 ? "" : "s", shape.ranks_per_node);
  fmt::print("  dense axes    {}\n", degrees_text(shape, kDenseAxes));
  fmt::print("  expert axes   {}\n", degrees_text(shape, kExpertAxes));
  fmt::print("  rank order    {}, fastest first\n",
             shape.tp_pp_dp_mapping ? "tp, cp, pp, dp" : "tp, cp, dp, pp");
  if (shape.dp_replicate > 1)
    fmt::print("  ZeRO shards   {} sets, each over {} of the ranks of a dp-cp group\n",
               shape.dp_replicate, shape.dp_shard_cp());
  fmt::print("  between nodes {}\n", crossing_axes(mesh));
  print_ranks(mesh);
  print_groups(mesh);
}

// A layout that this build can run is worth proving; of another one, `config` tells what is
// missing.
void print_next(const Config& config, const MeshArguments& arguments) {
  constexpr int64_t kMaxVerified = 64;  // ranks are threads
  LoadOptions load = arguments.load;
  if (config.unsupported.empty() && config.mesh.world_size() <= kMaxVerified) {
    fmt::print("\nnext: sevenfold verify {} --ranks {}\n", experiment_words(load),
               config.mesh.world_size());
    return;
  }
  if (arguments.world_size != 0)
    load.overrides.push_back(fmt::format("sevenfold.ranks={}", arguments.world_size));
  fmt::print("\nnext: sevenfold config {}\n", experiment_words(load));
}

void show_mesh(const MeshArguments& arguments) {
  LoadOptions options = arguments.load;
  options.tokenizer_facts = tokenizer_facts;
  if (arguments.world_size != 0) options.ranks = arguments.world_size;
  options.ranks_option = "--world";
  const Config config = load_config(options);
  const Mesh mesh(config.mesh);
  warn_of_crossing(mesh, Axis::kTp, "tensor_model_parallel_size");
  warn_of_crossing(mesh, Axis::kEtp, "expert_tensor_parallel_size");
  if (arguments.as_json) {
    fmt::print("{}\n", mesh_json(mesh).dump());
  } else {
    print_mesh(mesh, options.file);
    print_next(config, arguments);
  }
}

}  // namespace

void add_mesh_command(CLI::App& app, int& exit_code) {
  const auto arguments = std::make_shared<MeshArguments>();
  CLI::App* command =
      app.add_subcommand("mesh", "Show which rank sits where, and every group of ranks");
  command->add_option("FILE", arguments->load.file, "Experiment file")->required();
  command->add_option("OVERRIDES", arguments->load.overrides, "key=value ...");
  add_whole_number(*command, "--world", arguments->world_size, {1, kMaxWorldSize},
                   "World size; default: as the file says");
  command->add_option("--presets", arguments->load.presets_directory,
                      "Primus checkout to take presets from");
  command->add_flag("--strict", arguments->load.strict, "Unknown keys are errors");
  command->add_flag("--json", arguments->as_json, "One JSON document on stdout");
  command->callback([arguments, &exit_code] {
    show_mesh(*arguments);
    exit_code = 0;
  });
}

}  // namespace sevenfold::cli
