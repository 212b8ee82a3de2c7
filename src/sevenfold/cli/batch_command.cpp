#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "sevenfold/cli/batch_equation.h"
#include "sevenfold/cli/commands.h"
#include "sevenfold/cli/next_command.h"
#include "sevenfold/cli/number_options.h"
#include "sevenfold/cli/tokenizer_facts.h"
#include "sevenfold/config/batch_schedule.h"
#include "sevenfold/config/load.h"
#include "sevenfold/core/error.h"
#include "sevenfold/dataset/indexed/indexed_dataset.h"
#include "sevenfold/dataset/order/split.h"

namespace sevenfold::cli {
namespace {

using nlohmann::json;

struct BatchArguments {
  BatchRequest request;
  LoadOptions load;
  bool as_json = false;
};

json to_json(const BatchSizes& sizes) {
  return {{"global_batch", sizes.global_batch},
          {"micro_batch", sizes.micro_batch},
          {"dp", sizes.dp},
          {"accumulation", sizes.accumulation}};
}

std::string equation(const BatchSizes& sizes) {
  return fmt::format("global batch {} = micro batch {} x dp {} x accumulation {}",
                     sizes.global_batch, sizes.micro_batch, sizes.dp, sizes.accumulation);
}

void show_numbers(const BatchArguments& arguments) {
  const std::vector<BatchSizes> solutions = solve_batch(arguments.request);
  const bool is_determined = arguments.request.num_given() >= 3;
  if (arguments.as_json) {
    json list = json::array();
    for (const BatchSizes& sizes : solutions) list.push_back(to_json(sizes));
    json document = {{"determined", is_determined}, {"solutions", list}};
    if (is_determined) document.update(list[0]);
    fmt::print("{}\n", document.dump(2));
    return;
  }
  for (const BatchSizes& sizes : solutions) fmt::print("{}\n", equation(sizes));
  if (!is_determined && arguments.request.global_batch)
    fmt::print("two sizes leave {} choices; give a third to choose\n", solutions.size());
  else if (!is_determined)
    fmt::print("and so on: two sizes leave it open (first {} shown); give a third to choose\n",
               solutions.size());
  const BatchSizes& first = solutions.front();
  fmt::print("next: sevenfold batch FILE global_batch_size={} micro_batch_size={}\n",
             first.global_batch, first.micro_batch);
}

// Tokens of the training part; nothing if that is not one set of files that is there.
std::optional<int64_t> training_tokens(const DataConfig& data) {
  const BlendConfig& source = data.data.empty() ? data.train : data.data;
  if (data.mock_data || source.prefixes.size() != 1) return std::nullopt;
  std::error_code ignored;
  if (!std::filesystem::exists(source.prefixes[0] + ".idx", ignored)) return std::nullopt;
  const IndexedDataset files(source.prefixes[0]);
  if (data.data.empty()) return files.num_tokens();
  const SequenceRange part = require_split(data.split, files, Split::kTrain, data.split_where);
  int64_t tokens = 0;
  for (int64_t i = part.begin; i < part.end; ++i) tokens += files.sequence_length(i);
  return tokens;
}

// What the file's batch means for the run.
struct RunArithmetic {
  int64_t samples = 0;
  int64_t tokens_per_step = 0;
  int64_t tokens = 0;
  std::optional<int64_t> training_tokens;
  std::optional<double> epochs;
};

RunArithmetic run_arithmetic(const Config& config) {
  RunArithmetic run;
  run.samples = samples_of_steps(config.batch, config.run.train_iters);
  run.tokens_per_step = config.batch.global_batch_size * config.model.seq_length;
  if (__builtin_mul_overflow(run.samples, config.model.seq_length, &run.tokens))
    raise<ConfigError>(
        "batch: {} samples of seq_length={} are more tokens than 64 bits count; use a smaller "
        "train_iters or train_samples",
        run.samples, config.model.seq_length);
  run.training_tokens = training_tokens(config.data);
  if (run.training_tokens && *run.training_tokens > 0)
    run.epochs = static_cast<double>(run.tokens) / static_cast<double>(*run.training_tokens);
  return run;
}

BatchSizes sizes_of(const Config& config) {
  return {config.batch.global_batch_size, config.batch.micro_batch_size, config.mesh.dp,
          config.batch.num_microbatches};
}

json experiment_json(const Config& config, const RunArithmetic& run) {
  json document = to_json(sizes_of(config));
  json schedule = json::array();
  for (const BatchStage& stage : config.batch.schedule)
    schedule.push_back(
        {{"from_samples", stage.from_samples}, {"global_batch", stage.global_batch_size}});
  document.update({{"world_size", config.mesh.world_size()},
                   {"schedule", schedule},
                   {"seq_length", config.model.seq_length},
                   {"tokens_per_step", run.tokens_per_step},
                   {"steps", config.run.train_iters},
                   {"samples", run.samples},
                   {"tokens", run.tokens}});
  document["epochs"] = run.epochs ? json(*run.epochs) : json(nullptr);
  return document;
}

void print_experiment(const Config& config, const RunArithmetic& run) {
  const MeshShape& mesh = config.mesh;
  fmt::print("{}\n", equation(sizes_of(config)));
  fmt::print("world size {} = tp {} x cp {} x dp {} x pp {}\n", mesh.world_size(), mesh.tp, mesh.cp,
             mesh.dp, mesh.pp);
  for (const BatchStage& stage : config.batch.schedule)
    fmt::print("from sample {}: global batch {} = micro batch {} x dp {} x accumulation {}\n",
               stage.from_samples, stage.global_batch_size, config.batch.micro_batch_size, mesh.dp,
               stage.global_batch_size / (config.batch.micro_batch_size * mesh.dp));
  fmt::print("a step: {} samples x seq_length {} = {} tokens{}\n", config.batch.global_batch_size,
             config.model.seq_length, run.tokens_per_step,
             config.batch.schedule.empty() ? "" : ", at the last batch");
  fmt::print("the run: {} steps, {} samples, {} tokens\n", config.run.train_iters, run.samples,
             run.tokens);
  if (run.epochs)
    fmt::print("epochs: {:.3f} of {} training tokens\n", *run.epochs, *run.training_tokens);
  else
    fmt::print("epochs: not known (counted for one set of files that is there)\n");
}

void show_experiment(const BatchArguments& arguments) {
  if (arguments.request.num_given() > 0)
    raise<ConfigError>(
        "batch: {}: its sizes come from the file; use key=value words (global_batch_size=128) in "
        "place of the options",
        arguments.load.file);
  LoadOptions options = arguments.load;
  options.tokenizer_facts = tokenizer_facts;
  const Config config = load_config(options);
  const RunArithmetic run = run_arithmetic(config);
  if (arguments.as_json) {
    fmt::print("{}\n", experiment_json(config, run).dump(2));
    return;
  }
  print_experiment(config, run);
  fmt::print("next: sevenfold config {}\n", experiment_words(arguments.load));
}

}  // namespace

void add_batch_command(CLI::App& app, int& exit_code) {
  const auto arguments = std::make_shared<BatchArguments>();
  CLI::App* command = app.add_subcommand(
      "batch", "Solve global batch = micro batch x dp x accumulation, or show a file's");
  command->add_option("file", arguments->load.file, "Experiment file")->type_name("FILE");
  command->add_option("overrides", arguments->load.overrides, "key=value words")
      ->type_name("key=value");
  BatchRequest& request = arguments->request;
  constexpr WholeRange kSizes{1, kMaxBatchSize};
  add_whole_number(*command, "--global-batch", request.global_batch, kSizes, "Samples of a step");
  add_whole_number(*command, "--micro-batch", request.micro_batch, kSizes,
                   "Samples of a micro batch");
  add_whole_number(*command, "--dp", request.dp, kSizes, "Data-parallel size");
  add_whole_number(*command, "--accumulation", request.accumulation, kSizes,
                   "Micro batches per rank and step");
  add_whole_number(*command, "--ranks", arguments->load.ranks, {1, kMaxWorldSize},
                   "World size of the file's run");
  command->add_option("--presets", arguments->load.presets_directory,
                      "Primus checkout to take presets from");
  command->add_flag("--strict", arguments->load.strict, "An unknown key is an error");
  command->add_flag("--json", arguments->as_json, "One JSON document");
  command->callback([arguments, &exit_code] {
    arguments->load.file.empty() ? show_numbers(*arguments) : show_experiment(*arguments);
    exit_code = 0;
  });
}

}  // namespace sevenfold::cli
