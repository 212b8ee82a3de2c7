#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/engine_commands.h"
#include "apps/experiment_options.h"
#include "sevenfold/cli/next_command.h"
#include "sevenfold/cli/number_options.h"
#include "sevenfold/core/error.h"
#include "sevenfold/train/train.h"

namespace sevenfold::apps {
namespace {

struct TrainArguments {
  ExperimentOptions experiment;
  std::string resume = "auto";
  int threads_per_rank = 0;
  double peak_tflops = 0.0;
  bool eval_only = false;
  bool trace = false;
  bool tensorboard = false;
  int64_t check_replicas = 0;
};

namespace fs = std::filesystem;

// "step-00000100, step-00000200": the last folders in `folder` by name, and how many more.
std::string folders_in(const fs::path& folder) {
  constexpr size_t kMost = 6;
  std::vector<std::string> names;
  std::error_code ignored;  // what cannot be read is not listed
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored))
    if (entry.is_directory(ignored)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  const size_t others = names.size() - std::min(names.size(), kMost);
  names.erase(names.begin(), names.begin() + static_cast<int64_t>(others));
  if (names.empty()) return "no folder";
  return fmt::format("{}{}", fmt::join(names, ", "),
                     others > 0 ? fmt::format(" and {} more", others) : "");
}

void check_resume_path(const std::string& text) {
  constexpr const char* kWayOut = "use auto, none or the folder of a checkpoint";
  std::error_code error;
  const fs::file_status status = fs::status(text, error);
  if (fs::is_directory(status)) return;
  if (fs::exists(status))
    raise<ConfigError>("train: --resume {}: this is a file; {}", text, kWayOut);
  const fs::path path = text;
  const fs::path folder = (path.has_filename() ? path : path.parent_path()).parent_path();
  const fs::path parent = folder.empty() ? "." : folder;
  if (!fs::is_directory(parent, error))
    raise<ConfigError>("train: --resume {}: there is no such folder, nor {}; {}", text,
                       parent.string(), kWayOut);
  raise<ConfigError>("train: --resume {}: there is no such folder; beside it: {}; {}", text,
                     folders_in(parent), kWayOut);
}

Resume parse_resume(const std::string& text) {
  if (text == "auto") return Resume::kAuto;
  if (text == "none") return Resume::kNone;
  check_resume_path(text);
  return Resume::kPath;
}

// What to do after training: prove the layout, on two ranks at least.
std::string next_command(const Config& config, const LoadOptions& load) {
  const int64_t ranks = std::max<int64_t>(2, config.mesh.world_size());
  const bool fits = config.batch.global_batch_size % (config.batch.micro_batch_size * ranks) == 0;
  const std::string words = cli::experiment_words(load);
  if (!fits && config.mesh.world_size() == 1) return "sevenfold config " + words;
  return fmt::format("sevenfold verify {} --ranks {}", words, ranks);
}

void print_outcome(const TrainOutcome& outcome, const Config& config, const LoadOptions& load) {
  if (outcome.stop != StopReason::kNone)
    fmt::print("{}\n", describe_stop(outcome.stop, outcome.iterations, config.run));
  if (outcome.validation_loss && outcome.bigram_cross_entropy)
    fmt::print(
        "validation loss {:.6f} is {:.3f} of the bigram cross entropy {:.6f} (nats per token)\n",
        *outcome.validation_loss, *outcome.validation_loss / *outcome.bigram_cross_entropy,
        *outcome.bigram_cross_entropy);
  fmt::print("next: {}\n", next_command(config, load));
}

}  // namespace

void add_train_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<TrainArguments>();
  CLI::App* command = app.add_subcommand("train", "Train an experiment file");
  arguments->experiment.add_to(*command);
  command->add_option("--start", arguments->experiment.load.start,
                      "init or hot: which start weights");
  command->add_option("--out", arguments->experiment.load.directory, "Output directory")
      ->type_name("DIR");
  command
      ->add_option("--resume", arguments->resume,
                   "auto: from the newest checkpoint in DIR; PATH: from that one, or the newest in "
                   "it; none: DIR must be empty")
      ->type_name("auto|PATH|none");
  cli::add_whole_number(*command, "--threads-per-rank", arguments->threads_per_rank, {0, 1024},
                        "0 (the default): cores / ranks");
  cli::add_positive_number(*command, "--peak-tflops", arguments->peak_tflops,
                           "Peak of one rank's processor, for MFU in metrics.jsonl");
  command->add_flag("--eval-only", arguments->eval_only, "Validate and stop (skip_train: true)");
  command->add_flag("--trace", arguments->trace, "Write DIR/trace.json for ui.perfetto.dev");
  command->add_flag("--tensorboard", arguments->tensorboard,
                    "Write event files to DIR/tensorboard");
  cli::add_whole_number(*command, "--check-replicas", arguments->check_replicas, {1},
                        "Every N steps, compare the bits of what ranks replicate");
  command->callback([arguments, &exit_code] {
    const Resume resume = parse_resume(arguments->resume);
    Config config = load_supported(arguments->experiment.load, stdout);
    if (arguments->eval_only) config.run.skip_train = true;
    if (arguments->tensorboard && config.run.tensorboard_directory.empty())
      config.run.tensorboard_directory = config.run.directory + "/tensorboard";
    const TrainOutcome outcome =
        train(config, {.resume = resume,
                       .resume_path = resume == Resume::kPath ? arguments->resume : "",
                       .threads_per_rank = arguments->threads_per_rank,
                       .peak_tflops = arguments->peak_tflops,
                       .check_replicas_interval = arguments->check_replicas,
                       .trace = arguments->trace});
    print_outcome(outcome, config, arguments->experiment.load);
    exit_code = 0;
  });
}

}  // namespace sevenfold::apps
