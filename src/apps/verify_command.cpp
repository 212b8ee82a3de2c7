#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "apps/engine_commands.h"
#include "apps/experiment_options.h"
#include "sevenfold/cli/next_command.h"
#include "sevenfold/cli/number_options.h"
#include "sevenfold/dataset/synthetic_source.h"
#include "sevenfold/train/data.h"
#include "sevenfold/train/proof/verify.h"

namespace sevenfold::apps {
namespace {

constexpr int64_t kMostSteps = 1'000'000;  // every step is kept to be compared

struct VerifyArguments {
  ExperimentOptions experiment;
  int64_t steps = 3;
  bool shrink = false;
  bool json = false;
};

// Keys whose values --shrink does not use: the tokens are made up and the vocabulary is cut.
const std::vector<std::string> kReplacedByShrinking = {
    "mock_data",  "data_path",    "train_data_path", "valid_data_path",
    "vocab_size", "eod_token_id", "eod_mask_loss"};

// Keys of checkpoints: none is read or written here.
const std::vector<std::string> kOfCheckpoints = {"save", "load", "pretrained_checkpoint",
                                                 "use_checkpoint_opt_param_scheduler"};

nlohmann::ordered_json layout_json(const MeshShape& mesh) {
  return {{"tp", mesh.tp}, {"cp", mesh.cp}, {"dp", mesh.dp},
          {"pp", mesh.pp}, {"ep", mesh.ep}, {"etp", mesh.etp}};
}

void print_json(const VerifyReport& report) {
  nlohmann::ordered_json steps = nlohmann::json::array();
  for (const VerifyStep& step : report.steps)
    steps.push_back({{"loss_reference", step.loss_reference},
                     {"loss_layout", step.loss_layout},
                     {"grad_norm_reference", step.norm_reference},
                     {"grad_norm_layout", step.norm_layout}});
  const nlohmann::ordered_json document = {
      {"layout", layout_json(report.layout)},
      {"precision", precision_name(report.precision)},
      {"tolerance", report.tolerance},
      {"allowed",
       {{"loss", report.allowed.loss},
        {"gradient_norm", report.allowed.norm},
        {"gradient", report.allowed.gradient}}},
      {"max_loss_difference", report.max_loss_difference},
      {"max_grad_norm_difference", report.max_norm_difference},
      {"max_gradient_difference", report.max_gradient_difference},
      {"worst_parameter", report.worst_parameter},
      {"replicas_equal", report.replicas_equal},
      {"unequal_tokens", report.unequal_tokens},
      {"axes_used", report.axes_used},
      {"steps", steps},
      {"pass", report.pass}};
  fmt::print("{}\n", document.dump(2));
}

// Training if nothing stands against it; --shrink proves files that cannot be trained yet.
std::string next_command(const VerifyReport& report, const VerifyArguments& arguments) {
  const std::string words = cli::experiment_words(arguments.experiment.load);
  if (!report.pass || arguments.shrink) return "sevenfold config " + words;
  const std::string precision = arguments.experiment.load.precision.value_or("fp64");
  return fmt::format("sevenfold train {} --ranks {} --precision {}", words,
                     report.layout.world_size(), precision == "fp64" ? "fp32" : precision);
}

void print_table(const VerifyReport& report, const VerifyArguments& arguments) {
  const MeshShape& mesh = report.layout;
  fmt::print(
      "layout: tp {} x cp {} x dp {} x pp {} = {} ranks against one rank, {}, hot start, SGD\n\n",
      mesh.tp, mesh.cp, mesh.dp, mesh.pp, mesh.world_size(), precision_name(report.precision));
  fmt::print("{:>4}  {:>20}  {:>20}  {:>20}  {:>20}\n", "step", "loss, one rank", "loss, layout",
             "norm, one rank", "norm, layout");
  for (size_t i = 0; i < report.steps.size(); ++i) {
    const VerifyStep& step = report.steps[i];
    fmt::print("{:>4}  {:>20.15f}  {:>20.15f}  {:>20.14f}  {:>20.14f}\n", i + 1,
               step.loss_reference, step.loss_layout, step.norm_reference, step.norm_layout);
  }
  fmt::print("\n{:<44}{:>12}  at most {:.0e}\n", "loss, largest relative difference",
             fmt::format("{:.2e}", report.max_loss_difference), report.allowed.loss);
  fmt::print("{:<44}{:>12}  at most {:.0e}\n", "gradient norm, largest relative difference",
             fmt::format("{:.2e}", report.max_norm_difference), report.allowed.norm);
  fmt::print("{:<44}{:>12}  at most {:.0e}  ({})\n", "gradients, largest relative difference",
             fmt::format("{:.2e}", report.max_gradient_difference), report.allowed.gradient,
             report.worst_parameter);
  fmt::print("{:<44}{:>12}\n", "replicas equal after every step",
             report.replicas_equal ? "yes" : "NO");
  for (const auto& [axis, used] : report.axes_used)
    fmt::print("{:<44}{:>12}\n", fmt::format("gradients computed over {}", axis),
               used ? "yes" : "NO");
  if (mesh.world_size() == 1)
    fmt::print("note: one rank was compared with itself, which proves nothing; give --ranks N\n");
  if (!report.unequal_tokens)
    fmt::print(
        "note: every micro batch trains the same number of tokens, so a mistake in averaging would "
        "not show on this data; --shrink makes unequal ones\n");
  if (report.pass) {
    fmt::print("\nPASS: the layout computes what one rank computes\n");
  } else {
    fmt::print("\nFAIL: {}\n", report.failure());
  }
  fmt::print("next: {}\n", next_command(report, arguments));
}

VerifyReport run_verify(const VerifyArguments& arguments) {
  // Text output begins with the notices; a JSON document stands alone.
  std::FILE* notices = arguments.json ? stderr : stdout;
  std::vector<std::string> allowed = kOfCheckpoints;
  if (arguments.shrink)
    allowed.insert(allowed.end(), kReplacedByShrinking.begin(), kReplacedByShrinking.end());
  Config config = load_supported(arguments.experiment.load, notices, allowed);
  if (!config.checkpoint.load.empty())
    fmt::print(notices, "notice: {}: not read, as both sides start hot\n",
               config.checkpoint.load_where);
  config = proof_config(std::move(config));
  const VerifyOptions options{.steps = arguments.steps, .faults = planted_faults()};
  if (!arguments.shrink) {
    config.run.train_iters = std::max(config.run.train_iters, arguments.steps);
    config.run.eval_iters = 0;
    config.run.full_validation = false;
    const DataSources data = open_run_data(config);
    return verify_layout(config, *data.train, options);
  }
  config = shrink_config(std::move(config));
  // The cyclic loader needs a micro batch for every rank.
  SyntheticOptions samples{.vocab_size = config.model.vocab_size,
                           .seq_length = config.model.seq_length};
  samples.num_samples =
      std::max(samples.num_samples, config.batch.micro_batch_size * config.mesh.dp);
  const SyntheticSource source(samples);
  config.data.eod_token_id = SyntheticSource::kEodTokenId;
  config.data.eod_mask_loss = true;
  return verify_layout(config, source, options);
}

}  // namespace

void add_verify_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<VerifyArguments>();
  CLI::App* command =
      app.add_subcommand("verify", "Show that a layout computes what one rank computes");
  arguments->experiment.load.precision = "fp64";
  arguments->experiment.add_to(*command);
  cli::add_whole_number(*command, "--steps", arguments->steps, {1, kMostSteps},
                        "Training steps to compare");
  command->add_flag("--shrink", arguments->shrink,
                    "Same layout and ratios, smallest sizes, made-up tokens");
  command->add_flag("--json", arguments->json, "One JSON document on stdout");
  command->callback([arguments, &exit_code] {
    const VerifyReport report = run_verify(*arguments);
    if (arguments->json) {
      print_json(report);
    } else {
      print_table(report, *arguments);
    }
    exit_code = report.pass ? 0 : 1;
  });
}

}  // namespace sevenfold::apps
