#include <fstream>
#include <memory>
#include <sstream>
#include <utility>

#include "sevenfold/cli/commands.h"
#include "sevenfold/cli/next_command.h"
#include "sevenfold/cli/schedule/comparison.h"
#include "sevenfold/cli/schedule/figures.h"
#include "sevenfold/cli/schedule/options.h"
#include "sevenfold/cli/tokenizer_facts.h"
#include "sevenfold/config/run_schedule.h"
#include "sevenfold/core/error.h"
#include "sevenfold/schedule/algorithms.h"
#include "sevenfold/schedule/csv.h"
#include "sevenfold/schedule/render/svg.h"
#include "sevenfold/schedule/render/text.h"
#include "sevenfold/schedule/validate.h"

namespace sevenfold::cli {
namespace {

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
  if (arguments.request.group_size != 0)
    raise<ConfigError>("schedule: {} is a table, whatever --group says; leave the option out",
                       arguments.algorithm);
  if (const auto excess =
          find_excess(schedule, arguments.request.costs, arguments.request.max_memory))
    raise<ConfigError>("schedule: {}: {}", arguments.algorithm, *excess);
  return schedule;
}

// The schedule that the algorithm has for the request.
Schedule made_schedule(const ScheduleArguments& arguments) {
  const Algorithm& algorithm = find_algorithm(arguments.algorithm);
  const bool is_asked = arguments.load.file.empty() && arguments.request.group_size != 0;
  if (is_asked && !algorithm.takes_groups)
    raise<ConfigError>("schedule: {} has no groups of micro batches; leave --group out",
                       algorithm.name);
  return generate(algorithm.name, arguments.request);
}

MeasuredSchedule measured_schedule(const ScheduleArguments& arguments) {
  Schedule schedule =
      arguments.reads_a_file() ? read_schedule(arguments) : made_schedule(arguments);
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

void show_comparison(const ScheduleArguments& arguments) {
  const ScheduleComparison comparison = compare_algorithms(arguments.request);
  if (arguments.as_json) {
    fmt::print("{}\n", comparison_json(comparison).dump());
    return;
  }
  print_comparison(comparison);
  const std::string& shortest = comparison.schedules.front().schedule.algorithm;
  if (!arguments.load.file.empty())
    fmt::print("next: sevenfold schedule {} sevenfold.schedule={} --text\n",
               experiment_words(arguments.load), shortest);
  else
    fmt::print("next: sevenfold schedule --algorithm {} {} --text\n", shortest,
               request_words(arguments, look_up_algorithm(shortest)));
}

void print_next(const ScheduleArguments& arguments, const Schedule& schedule) {
  if (!arguments.load.file.empty())
    fmt::print("next: sevenfold schedule {} --{}\n", experiment_words(arguments.load),
               arguments.as_text ? "compare" : "text");
  else if (arguments.reads_a_file())
    fmt::print("next: sevenfold schedule --compare --stages {} --microbatches {}\n",
               schedule.num_ranks(), schedule.num_microbatches);
  else if (arguments.as_text)
    fmt::print("next: sevenfold schedule --compare {}\n", request_words(arguments, nullptr));
  else
    fmt::print("next: sevenfold schedule --algorithm {} {} --text\n",
               shell_word(arguments.algorithm),
               request_words(arguments, look_up_algorithm(arguments.algorithm)));
}

void show_one(const ScheduleArguments& arguments) {
  const MeasuredSchedule one = measured_schedule(arguments);
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
  print_figures(one);
  print_next(arguments, one.schedule);
}

// The costs of the command line with the stages' own times of the experiment, if it has any.
void take_costs(const std::string& file, const ScheduleCosts& given, ScheduleCosts& costs) {
  const PassCosts usual;
  const PassCosts& share = given.share;
  const bool has_times = share.forward != usual.forward ||
                         share.backward_input != usual.backward_input ||
                         share.backward_weight != usual.backward_weight;
  if (!costs.stages.empty() && has_times)
    raise<ConfigError>(
        "schedule: {} has times of its own (pp_cost_f, pp_cost_b, pp_cost_w); set those, or leave "
        "--forward, --backward-input and --backward-weight out",
        file);
  std::vector<PassCosts> stages = std::move(costs.stages);
  costs = given;
  costs.stages = std::move(stages);
}

// The sizes, the algorithm and the limits of an experiment's step.
void take_from_experiment(ScheduleArguments& arguments) {
  if (names_a_table(arguments.load.file))
    raise<ConfigError>("schedule: {} is no experiment but a schedule file; use --algorithm {}",
                       arguments.load.file, shell_word(arguments.load.file));
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
  take_costs(arguments.load.file, given.costs, request.costs);
  arguments.request = request;
  arguments.is_table = !config.pipeline.schedule_file.empty();
  arguments.algorithm =
      arguments.is_table ? config.pipeline.schedule_file : config.pipeline.algorithm;
  if (arguments.compares) arguments.request.num_chunks = 0;
}

void show(ScheduleArguments& arguments) {
  if (arguments.compares && !arguments.algorithm.empty())
    raise<ConfigError>("schedule: --compare shows all algorithms; leave --algorithm {} out, or it",
                       shell_word(arguments.algorithm));
  if (!arguments.load.file.empty()) take_from_experiment(arguments);
  if (arguments.max_memory) arguments.request.max_memory = *arguments.max_memory;
  const bool has_sizes =
      arguments.request.num_ranks != 0 && arguments.request.num_microbatches != 0;
  if (!arguments.compares && arguments.algorithm.empty())
    raise<ConfigError>(
        "schedule: --algorithm is missing; give a name ('auto' takes the shortest), a "
        ".csv file, an experiment file, or --compare");
  if (!arguments.reads_a_file() && !has_sizes)
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

}  // namespace

void add_schedule_command(CLI::App& app, int& exit_code) {
  const auto arguments = std::make_shared<ScheduleArguments>();
  CLI::App* command =
      app.add_subcommand("schedule", "Make, measure and draw pipeline schedules, or compare them");
  add_schedule_options(*command, *arguments);
  command->callback([arguments, &exit_code] {
    show(*arguments);
    exit_code = 0;
  });
}

}  // namespace sevenfold::cli
