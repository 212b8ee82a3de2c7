#include <algorithm>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "sevenfold/cli/commands.h"
#include "sevenfold/cli/next_command.h"
#include "sevenfold/cli/number_options.h"
#include "sevenfold/cli/tokenizer_facts.h"
#include "sevenfold/config/run_schedule.h"
#include "sevenfold/core/error.h"
#include "sevenfold/schedule/algorithms.h"
#include "sevenfold/schedule/csv.h"
#include "sevenfold/schedule/render/svg.h"
#include "sevenfold/schedule/render/text.h"
#include "sevenfold/schedule/simulate.h"
#include "sevenfold/schedule/validate.h"

namespace sevenfold::cli {
namespace {

using json = nlohmann::ordered_json;

struct ScheduleArguments {
  LoadOptions load;  // of an experiment whose schedule is asked for; file empty: none
  std::string algorithm;
  bool is_table = false;  // `algorithm` is a schedule file, whatever its name
  ScheduleRequest request;
  std::optional<double> max_memory;
  int64_t width = 160;
  std::string svg_file;
  std::string csv_file;
  bool as_text = false;
  bool as_json = false;
  bool compares = false;
};

// A schedule and what it costs.
struct Measured {
  Schedule schedule;
  Simulation simulation;
};

bool names_a_file(const std::string& algorithm) {
  return algorithm.size() > 4 && algorithm.substr(algorithm.size() - 4) == ".csv";
}

Schedule read_schedule(const ScheduleArguments& arguments) {
  std::ifstream file(arguments.algorithm);
  if (!file) raise<DataError>("schedule: cannot open {}", arguments.algorithm);
  Schedule schedule = read_csv(file, arguments.algorithm);
  const auto expect = [&](const char* what, int64_t given, int64_t found) {
    if (given != 0 && given != found)
      raise<ConfigError>("schedule: {} has {} {}, not {}; leave the option out",
                         arguments.algorithm, found, what, given);
  };
  expect("stages (ranks)", arguments.request.num_ranks, schedule.num_ranks());
  expect("micro batches", arguments.request.num_microbatches, schedule.num_microbatches);
  expect("chunks per rank", arguments.request.num_chunks, schedule.num_chunks());
  if (const auto excess =
          find_excess(schedule, arguments.request.costs, arguments.request.max_memory))
    raise<ConfigError>("schedule: {}: {}", arguments.algorithm, *excess);
  return schedule;
}

bool reads_a_file(const ScheduleArguments& arguments) {
  return !arguments.compares && (arguments.is_table || names_a_file(arguments.algorithm));
}

Measured measured(const std::string& algorithm, const ScheduleArguments& arguments) {
  Schedule schedule =
      reads_a_file(arguments) ? read_schedule(arguments) : generate(algorithm, arguments.request);
  Simulation simulation = simulate(schedule, arguments.request.costs);
  return {std::move(schedule), std::move(simulation)};
}

void write_file(const std::string& name, const std::string& text) {
  std::ofstream file(name, std::ios::binary);
  file << text;
  file.close();
  if (!file)
    raise<ConfigError>("schedule: cannot write {}; name a file in a directory of yours", name);
}

json operation_json(const Row& row, const RowSpan& span) {
  json operation = {{"op", op_name(row.op)}, {"stage", row.stage},
                    {"chunk", row.chunk},    {"microbatch", row.microbatch},
                    {"flow", row.flow},      {"start", span.start},
                    {"end", span.end}};
  if (row.op == Op::kForwardBackward)
    operation["backward"] = {{"stage", row.backward.stage},
                             {"chunk", row.backward.chunk},
                             {"microbatch", row.backward.microbatch},
                             {"flow", row.backward.flow}};
  return operation;
}

json figures_json(const Measured& one) {
  const Simulation& figures = one.simulation;
  return {{"algorithm", one.schedule.algorithm},
          {"placement", placement_name(one.schedule.placement)},
          {"stages", one.schedule.num_ranks()},
          {"chunks", one.schedule.num_chunks()},
          {"microbatches", one.schedule.num_microbatches},
          {"weight_copies", one.schedule.num_copies()},
          {"makespan", figures.makespan},
          {"longest", figures.longest},
          {"bubble_rate", figures.bubble_rate()},
          {"bubble_rate_longest", figures.bubble_rate_longest()},
          {"busy", figures.busy},
          {"peak_activation_memory", figures.peak_activation}};
}

json schedule_json(const Measured& one) {
  json document = figures_json(one);
  json& ranks = document["operations"] = json::array();
  for (size_t rank = 0; rank < one.schedule.rows.size(); ++rank) {
    json list = json::array();
    for (size_t i = 0; i < one.schedule.rows[rank].size(); ++i)
      list.push_back(operation_json(one.schedule.rows[rank][i], one.simulation.spans[rank][i]));
    ranks.push_back(std::move(list));
  }
  return document;
}

void print_schedule(const Measured& one) {
  const Simulation& figures = one.simulation;
  const Schedule& schedule = one.schedule;
  fmt::print("{}: {} ranks, {} micro batches, {} stage{} ({} placement{})\n", schedule.algorithm,
             schedule.num_ranks(), schedule.num_microbatches, schedule.num_stages,
             schedule.num_stages == 1 ? "" : "s", placement_name(schedule.placement),
             schedule.num_copies() == 2 ? ", two copies of the weights" : "");
  fmt::print("makespan     {:g}   bubble {:.2f}%   (a step with a barrier)\n", figures.makespan,
             100 * figures.bubble_rate());
  fmt::print("longest rank {:g}   bubble {:.2f}%   (an optimizer step without one)\n",
             figures.longest, 100 * figures.bubble_rate_longest());
  fmt::print("peak memory  {:g} micro batches of one rank's layers; per rank:",
             figures.max_peak_activation());
  for (const double peak : figures.peak_activation) fmt::print(" {:g}", peak);
  fmt::print("\n");
}

// Every algorithm that has a schedule for these numbers, shortest first; why not, for the others.
struct Comparison {
  std::vector<Measured> schedules;
  std::vector<std::pair<std::string, std::string>> refusals;
};

Comparison compared(const ScheduleArguments& arguments) {
  Comparison result;
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.chooses) continue;
    try {
      result.schedules.push_back(measured(algorithm.name, arguments));
    } catch (const ConfigError& error) {
      result.refusals.emplace_back(algorithm.name, error.what());
    }
  }
  std::stable_sort(result.schedules.begin(), result.schedules.end(),
                   [](const Measured& left, const Measured& right) {
                     return left.simulation.makespan < right.simulation.makespan;
                   });
  return result;
}

json comparison_json(const Comparison& comparison) {
  json list = json::array();
  for (const Measured& one : comparison.schedules) list.push_back(figures_json(one));
  json refused = json::array();
  for (const auto& [name, reason] : comparison.refusals)
    refused.push_back({{"algorithm", name}, {"reason", reason}});
  return {{"schedules", list}, {"refused", refused}};
}

void print_comparison(const Comparison& comparison) {
  fmt::print("{:<22} {:>6} {:>10} {:>8} {:>10} {:>8} {:>8} {:>8}\n", "algorithm", "chunks",
             "makespan", "bubble", "longest", "bubble", "peak", "weights");
  for (const Measured& one : comparison.schedules)
    fmt::print("{:<22} {:>6} {:>10g} {:>7.2f}% {:>10g} {:>7.2f}% {:>8g} {:>7}x\n",
               one.schedule.algorithm, one.schedule.num_chunks(), one.simulation.makespan,
               100 * one.simulation.bubble_rate(), one.simulation.longest,
               100 * one.simulation.bubble_rate_longest(), one.simulation.max_peak_activation(),
               one.schedule.num_copies());
  for (const auto& [name, reason] : comparison.refusals) fmt::print("{:<22} {}\n", name, reason);
}

std::string request_words(const ScheduleArguments& arguments) {
  const ScheduleRequest& request = arguments.request;
  std::string words =
      fmt::format("--stages {} --microbatches {}", request.num_ranks, request.num_microbatches);
  const auto add = [&](const char* option, double value, double usual) {
    if (value != usual) words += fmt::format(" {} {:g}", option, value);
  };
  add("--chunks", static_cast<double>(request.num_chunks), 0);
  add("--forward", request.costs.share.forward, 1);
  add("--backward-input", request.costs.share.backward_input, 1);
  add("--backward-weight", request.costs.share.backward_weight, 1);
  add("--comm", request.costs.link, 0);
  add("--weight-memory", request.costs.weight_memory, 1);
  if (arguments.max_memory) words += fmt::format(" --max-memory {:g}", *arguments.max_memory);
  return words;
}

void show_comparison(const ScheduleArguments& arguments) {
  const Comparison comparison = compared(arguments);
  if (comparison.schedules.empty())
    raise<ConfigError>("schedule: no algorithm has a schedule for these numbers: {}",
                       comparison.refusals.front().second);
  if (arguments.as_json) {
    fmt::print("{}\n", comparison_json(comparison).dump());
    return;
  }
  print_comparison(comparison);
  if (!arguments.load.file.empty())
    fmt::print("next: sevenfold schedule {} sevenfold.schedule={} --text\n",
               experiment_words(arguments.load), comparison.schedules.front().schedule.algorithm);
  else
    fmt::print("next: sevenfold schedule --algorithm {} {} --text\n",
               comparison.schedules.front().schedule.algorithm, request_words(arguments));
}

void print_next(const ScheduleArguments& arguments, const Schedule& schedule) {
  if (!arguments.load.file.empty())
    fmt::print("next: sevenfold schedule {} --{}\n", experiment_words(arguments.load),
               arguments.as_text ? "compare" : "text");
  else if (reads_a_file(arguments))
    fmt::print("next: sevenfold schedule --compare --stages {} --microbatches {}\n",
               schedule.num_ranks(), schedule.num_microbatches);
  else if (arguments.as_text)
    fmt::print("next: sevenfold schedule --compare {}\n", request_words(arguments));
  else
    fmt::print("next: sevenfold schedule --algorithm {} {} --text\n",
               shell_word(arguments.algorithm), request_words(arguments));
}

void show_one(const ScheduleArguments& arguments) {
  const Measured one = measured(arguments.algorithm, arguments);
  if (!arguments.svg_file.empty())
    write_file(arguments.svg_file, draw_svg(one.schedule, one.simulation, arguments.request.costs));
  if (!arguments.csv_file.empty()) {
    std::ostringstream text;
    write_csv(text, one.schedule);
    write_file(arguments.csv_file, text.str());
  }
  if (arguments.as_json) {
    fmt::print("{}\n", schedule_json(one).dump());
    return;
  }
  if (arguments.as_text)
    fmt::print("{}\n",
               draw_text(one.schedule, one.simulation, static_cast<size_t>(arguments.width)));
  print_schedule(one);
  print_next(arguments, one.schedule);
}

// The sizes, the algorithm and the limits of an experiment's step.
void take_from_experiment(ScheduleArguments& arguments) {
  const ScheduleRequest& given = arguments.request;
  const bool has_own = given.num_ranks != 0 || given.num_microbatches != 0 ||
                       given.num_chunks != 0 || given.group_size != 0;
  if (has_own || !arguments.algorithm.empty())
    raise<ConfigError>(
        "schedule: {} says which schedule for which sizes; leave --algorithm, --stages, "
        "--microbatches, --chunks and --group out, or the file",
        arguments.load.file);
  arguments.load.tokenizer_facts = tokenizer_facts;
  const Config config = load_config(arguments.load);
  ScheduleRequest request = schedule_request(config, config.batch.num_microbatches);
  if (request.costs.stages.empty()) request.costs = given.costs;
  arguments.request = request;
  arguments.is_table = !config.pipeline.schedule_file.empty();
  arguments.algorithm =
      arguments.is_table ? config.pipeline.schedule_file : config.pipeline.algorithm;
  if (arguments.compares) arguments.request.num_chunks = 0;
}

void show(ScheduleArguments& arguments) {
  if (!arguments.load.file.empty()) take_from_experiment(arguments);
  if (arguments.max_memory) arguments.request.max_memory = *arguments.max_memory;
  const bool has_sizes =
      arguments.request.num_ranks != 0 && arguments.request.num_microbatches != 0;
  if (!arguments.compares && arguments.algorithm.empty())
    raise<ConfigError>(
        "schedule: --algorithm is missing; give a name ('auto' takes the shortest), a "
        ".csv file, an experiment file, or --compare");
  if (!reads_a_file(arguments) && !has_sizes)
    raise<ConfigError>(
        "schedule: --stages and --microbatches are needed, as in --stages 4 "
        "--microbatches 8");
  if (!arguments.compares) return show_one(arguments);
  if (!arguments.svg_file.empty() || !arguments.csv_file.empty() || arguments.as_text)
    raise<ConfigError>(
        "schedule: --compare shows figures of many schedules; draw or write one of them "
        "with --algorithm NAME and without --compare");
  show_comparison(arguments);
}

std::string algorithm_help() {
  std::string names;
  for (const Algorithm& algorithm : algorithms()) names += std::string(algorithm.name) + ", ";
  return "One of " + names +
         "a name that Primus, TorchTitan or PyTorch uses, or a schedule file of PyTorch (.csv)";
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

}  // namespace

void add_schedule_command(CLI::App& app, int& exit_code) {
  const auto arguments = std::make_shared<ScheduleArguments>();
  arguments->request.num_ranks = 0;
  arguments->request.num_microbatches = 0;
  CLI::App* command =
      app.add_subcommand("schedule", "Make, measure and draw pipeline schedules, or compare them");
  command->add_option("FILE", arguments->load.file, "Experiment file: the schedule of its steps");
  command->add_option("OVERRIDES", arguments->load.overrides, "key=value ...");
  command->add_option("--presets", arguments->load.presets_directory,
                      "Primus checkout to take presets from");
  command->add_flag("--strict", arguments->load.strict, "Unknown keys are errors");
  command->add_option("--algorithm", arguments->algorithm, algorithm_help());
  ScheduleRequest& request = arguments->request;
  add_sizes(*command, request);
  add_costs(*command, request.costs);
  add_positive_number(*command, "--max-memory", arguments->max_memory,
                      "Most activations on a rank; unit: one micro batch through a rank's layers");
  command->add_flag("--compare", arguments->compares, "A table of all algorithms");
  command->add_flag("--text", arguments->as_text, "Draw it here");
  add_whole_number(*command, "--width", arguments->width, {40, 1'000'000}, "Columns of --text");
  command->add_option("--svg", arguments->svg_file, "Draw it to this file");
  command->add_option("--csv", arguments->csv_file, "Write PyTorch's schedule file");
  command->add_flag("--json", arguments->as_json, "One JSON document on stdout");
  command->callback([arguments, &exit_code] {
    show(*arguments);
    exit_code = 0;
  });
}

}  // namespace sevenfold::cli
