#include "sevenfold/train/run_start.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "sevenfold/checkpoint/folder.h"
#include "sevenfold/config/changed_values.h"
#include "sevenfold/core/error.h"
#include "sevenfold/model/model.h"
#include "sevenfold/train/saving.h"

namespace sevenfold {
namespace {

namespace fs = std::filesystem;

std::string steps_text(const fs::path& folder) {
  const std::vector<int64_t> steps = steps_in(folder);
  if (steps.empty()) return "no checkpoints are there";
  if (steps.size() == 1) return fmt::format("the only one is {}", step_folder_name(steps.front()));
  return fmt::format("there are {} checkpoints, {} to {}", steps.size(),
                     step_folder_name(steps.front()), step_folder_name(steps.back()));
}

std::optional<fs::path> resumed_checkpoint(const Config& config, const TrainOptions& options) {
  if (options.resume == Resume::kNone) return std::nullopt;
  if (options.resume == Resume::kAuto) return newest_checkpoint(checkpoint_folder(config));
  const auto found = checkpoint_at(options.resume_path);
  if (!found) {
    std::error_code ignored;
    const fs::path path = options.resume_path;
    const bool is_there = fs::is_directory(path, ignored);
    raise<ConfigError>("train: --resume {}: {}; {} in {}", path.string(),
                       is_there ? "the folder holds no checkpoint" : "there is no such folder",
                       steps_text(checkpoint_folder(config)), checkpoint_folder(config).string());
  }
  return found;
}

std::optional<fs::path> loaded_checkpoint(const CheckpointConfig& config) {
  if (config.load.empty()) return std::nullopt;
  const auto found = checkpoint_at(config.load, config.load_step);
  if (found || !config.load_is_required) return found;
  raise<ConfigError>(
      "train: {}: {}{}; correct the path, or leave the key out to begin from start weights",
      config.load_where,
      config.load_step ? fmt::format("no {} is there: ", step_folder_name(*config.load_step)) : "",
      steps_text(config.load));
}

void check_states(const Checkpoint& checkpoint, const Config& config) {
  const std::string& saved = checkpoint.index().optimizer;
  const std::string_view wanted = optimizer_name(config.optimizer);
  if (saved == wanted) return;
  if (saved.empty())
    raise<ConfigError>(
        "train: {}: it holds weights only (it was saved with no_save_optim), so a run cannot go on "
        "from it; begin a new one from its weights in another folder (--out DIR load={} "
        "finetune=true)",
        checkpoint.folder().string(), checkpoint.folder().string());
  raise<ConfigError>(
      "train: {}: it holds states of {}, and the run steps with {}; keep the optimizer, or begin "
      "with new states in another folder (--out DIR load={} finetune=false no_load_optim=true)",
      checkpoint.folder().string(), saved, wanted, checkpoint.folder().string());
}

// Of the whole model, as one rank would have it.
void check_parameters(const Checkpoint& checkpoint, const Config& config) {
  const ModelPart model = build_model(config.model, {});
  for (const auto& parameter : model.parameters) {
    const auto found = checkpoint.index().tensors.find(parameter->name());
    const std::vector<int64_t>& shape = parameter->spec().global_shape;
    if (found == checkpoint.index().tensors.end())
      raise<ConfigError>("train: {}: it has no {}, which the model of {} needs",
                         checkpoint.folder().string(), parameter->name(), config.file);
    if (found->second.shape != shape)
      raise<ConfigError>("train: {}: {} has shape [{}] there and [{}] in the model of {}",
                         checkpoint.folder().string(), parameter->name(),
                         fmt::join(found->second.shape, ", "), fmt::join(shape, ", "), config.file);
  }
  for (const auto& [name, tensor] : checkpoint.index().tensors) {
    const std::string parameter = name.substr(0, name.find('/'));
    const bool is_known =
        std::any_of(model.parameters.begin(), model.parameters.end(),
                    [&](const auto& known) { return known->name() == parameter; });
    if (!is_known)
      raise<ConfigError>("train: {}: it has {}, which the model of {} does not have",
                         checkpoint.folder().string(), parameter, config.file);
  }
}

// A run may go on with other values; that they are meant is for the user to say.
std::string changes_notice(const Checkpoint& checkpoint, const Config& config) {
  constexpr size_t kMostShown = 12;
  const auto changes = changed_values(checkpoint.index().configuration, config.resolved_yaml);
  std::string text;
  for (size_t i = 0; i < changes.size() && i < kMostShown; ++i)
    text += fmt::format("{}{}={} (was {})", i == 0 ? "" : ", ", changes[i].key, changes[i].now,
                        changes[i].before);
  if (changes.size() > kMostShown) text += fmt::format(" and {} more", changes.size() - kMostShown);
  if (text.empty()) return text;
  return fmt::format("{} was saved with other values: {}", checkpoint.folder().string(), text);
}

}  // namespace

int64_t RunStart::iteration() const {
  return checkpoint && restores.run ? checkpoint->index().run.iteration : 0;
}

fs::path checkpoint_folder(const Config& config) {
  if (!config.checkpoint.save_directory.empty()) return config.checkpoint.save_directory;
  return fs::path(config.run.directory) / "checkpoints";
}

RunStart find_start(const Config& config, const TrainOptions& options) {
  RunStart start;
  std::optional<fs::path> folder = resumed_checkpoint(config, options);
  start.resumes = folder.has_value();
  if (!folder) {
    folder = loaded_checkpoint(config.checkpoint);
    start.restores.run = !config.checkpoint.loads_weights_only;
    start.restores.states =
        !config.checkpoint.loads_weights_only && config.checkpoint.loads_optimizer;
  }
  if (!folder) return start;
  start.checkpoint.emplace(*folder);
  check_parameters(*start.checkpoint, config);
  if (start.restores.states) check_states(*start.checkpoint, config);
  start.checkpoint->check_sums();
  if (start.restores.run) start.notice = changes_notice(*start.checkpoint, config);
  return start;
}

// By what the checkpoint says: its folder may have another name.
void check_is_newest(const RunStart& start, const Config& config) {
  if (!start.resumes) return;
  const fs::path folder = checkpoint_folder(config);
  const std::vector<int64_t> steps = steps_in(folder);
  const int64_t step = start.iteration();
  if (steps.empty() || steps.back() <= step) return;
  raise<ConfigError>(
      "train: {}: it is of step {}, and {} holds newer checkpoints, up to {}; delete or move these "
      "to go back to step {}, or write elsewhere with --out DIR",
      start.checkpoint->folder().string(), step, folder.string(), step_folder_name(steps.back()),
      step);
}

}  // namespace sevenfold
