#include "sevenfold/cli/schedule/options.h"

#include "sevenfold/cli/number_options.h"
#include "sevenfold/core/error.h"

namespace sevenfold::cli {
namespace {

std::string algorithm_help() {
  std::string names;
  for (const Algorithm& algorithm : algorithms()) names += std::string(algorithm.name) + ", ";
  return "One of " + names +
         "a name that Primus, TorchTitan or PyTorch uses, or a schedule file of PyTorch (.csv)";
}

void add_experiment(CLI::App& command, LoadOptions& load) {
  command.add_option("FILE", load.file, "Experiment file: the schedule of its steps");
  command.add_option("OVERRIDES", load.overrides, "key=value ...");
  command.add_option("--presets", load.presets_directory, "Primus checkout to take presets from");
  command.add_flag("--strict", load.strict, "Unknown keys are errors");
}

void add_sizes(CLI::App& command, ScheduleRequest& request) {
  add_whole_number(command, "--stages", request.num_ranks, {1, 4096}, "Pipeline ranks");
  add_whole_number(command, "--microbatches", request.num_microbatches, {1, 65536},
                   "Micro batches per step");
  add_whole_number(command, "--chunks", request.num_chunks, {1, 1024},
                   "Chunks of the model per rank; default: the algorithm's own");
  add_whole_number(command, "--group", request.group_size, {1, 65536},
                   "Interleaved schedules: micro batches per group; default: P where it divides M");
}

void add_costs(CLI::App& command, ScheduleCosts& costs) {
  const auto add = [&](const char* name, double& target, const char* help) {
    add_positive_number(command, name, target, help, true);
  };
  add("--forward", costs.share.forward, "Time of F of one micro batch through a rank's layers");
  add("--backward-input", costs.share.backward_input, "Time of B");
  add("--backward-weight", costs.share.backward_weight, "Time of W");
  add("--comm", costs.link, "Time from rank to rank");
  add("--weight-memory", costs.weight_memory, "Share of an activation that stays between B and W");
}

void add_outputs(CLI::App& command, ScheduleArguments& arguments) {
  command.add_flag("--compare", arguments.compares, "A table of all algorithms");
  command.add_flag("--text", arguments.as_text, "Draw it here");
  add_whole_number(command, "--width", arguments.width, {40, 1'000'000}, "Columns of --text");
  command.add_option("--svg", arguments.svg_file, "Draw it to this file");
  command.add_option("--csv", arguments.csv_file, "Write PyTorch's schedule file");
  command.add_flag("--json", arguments.as_json, "One JSON document on stdout");
}

}  // namespace

bool names_a_table(const std::string& name) {
  return name.size() > 4 && name.substr(name.size() - 4) == ".csv";
}

bool ScheduleArguments::reads_a_file() const {
  return !compares && (is_table || names_a_table(algorithm));
}

void add_schedule_options(CLI::App& command, ScheduleArguments& arguments) {
  add_experiment(command, arguments.load);
  command.add_option("--algorithm", arguments.algorithm, algorithm_help());
  add_sizes(command, arguments.request);
  add_costs(command, arguments.request.costs);
  add_positive_number(command, "--max-memory", arguments.max_memory,
                      "Most activations on a rank; unit: one micro batch through a rank's layers");
  add_outputs(command, arguments);
}

std::string request_words(const ScheduleArguments& arguments, const Algorithm* algorithm) {
  const ScheduleRequest& request = arguments.request;
  std::string words =
      fmt::format("--stages {} --microbatches {}", request.num_ranks, request.num_microbatches);
  const auto add = [&](const char* option, double value, double usual) {
    if (value != usual) words += fmt::format(" {} {}", option, value);
  };
  add("--chunks", static_cast<double>(request.num_chunks), 0);
  if (algorithm == nullptr || algorithm->takes_groups)
    add("--group", static_cast<double>(request.group_size), 0);
  add("--forward", request.costs.share.forward, 1);
  add("--backward-input", request.costs.share.backward_input, 1);
  add("--backward-weight", request.costs.share.backward_weight, 1);
  add("--comm", request.costs.link, 0);
  add("--weight-memory", request.costs.weight_memory, 1);
  if (arguments.max_memory) words += fmt::format(" --max-memory {}", *arguments.max_memory);
  return words;
}

}  // namespace sevenfold::cli
