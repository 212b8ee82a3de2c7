#include "sevenfold/config/load.h"

#include <filesystem>

#include "sevenfold/config/experiment.h"
#include "sevenfold/config/key_policy.h"
#include "sevenfold/config/rules/rules.h"
#include "sevenfold/config/torchtitan/nested_keys.h"
#include "sevenfold/config/torchtitan/translate.h"
#include "sevenfold/core/error.h"

namespace sevenfold {
namespace {

using namespace config;

std::string top_level_string(const Experiment& experiment, const char* key) {
  const Value* value = experiment.top.find(key);
  SEVENFOLD_CHECK(value != nullptr, "{} is missing", key);
  if (value->is_null() || value->is_list() || value->is_map())
    raise<ConfigError>("config: {} {}={}: a name is needed", value->origin.text(), key,
                       brief(*value));
  return value->text;
}

// workspace/work_group/user_name/exp_name; an absolute later part discards the earlier ones.
std::string run_directory(const Experiment& experiment, const LoadOptions& options) {
  if (options.directory) return *options.directory;
  std::filesystem::path path = top_level_string(experiment, "workspace");
  for (const char* key : {"work_group", "user_name", "exp_name"})
    path /= top_level_string(experiment, key);
  return path.string();
}

int64_t ranks_per_node(const Experiment& experiment, const LoadOptions& options) {
  const Value* key = experiment.platform.find("gpus_per_node_env_key");
  if (key == nullptr || key->is_null()) return MeshShape{}.ranks_per_node;
  const auto text = or_process_environment(options.environment)(key->text);
  if (!text || text->empty()) return MeshShape{}.ranks_per_node;
  const auto value = coerce(Value::of(*text), KeyType::kInt);
  if (!value || value->kind != ValueKind::kInt || value->integer < 1 ||
      value->integer > kMaxWorldSize)
    raise<ConfigError>(
        "config: environment variable {}={}: the ranks of a node are at least 1 and at most {}; "
        "correct or unset it",
        key->text, *text, kMaxWorldSize);
  return value->integer;
}

void add_entries(Config& config, const std::string& prefix, const Value& map) {
  for (const auto& [key, value] : map.map)
    config.entries.push_back(ConfigEntry{prefix + key, to_json_text(value), value.origin.text()});
}

// The run as an experiment that needs no preset, in the vocabulary of `parameters`: the module is
// flattened, which a reader knows by its lack of `config`.
std::string resolved_yaml(const Config& config, const Experiment& experiment,
                          const Parameters& parameters) {
  Value root = experiment.top;
  const bool is_torchtitan = parameters.framework() == Framework::kTorchTitan;
  Value module = is_torchtitan ? nested_keys(parameters.values()) : parameters.values();
  module.map["framework"] = Value::of(std::string(is_torchtitan ? "torchtitan" : "megatron"));
  module.map["name"] = experiment.parameters.map.at("name");
  Value modules = Value::empty_map();
  modules.map[experiment.module] = module;
  root.map["modules"] = modules;
  Value block = experiment.sevenfold;
  block.map["ranks"] = Value::of(config.mesh.world_size());
  block.map["precision"] = Value::of(std::string(precision_name(config.run.precision)));
  block.map["backend"] = Value::of(config.run.backend);
  block.map["start"] = Value::of(std::string(config.run.start == StartKind::kHot ? "hot" : "init"));
  block.map["device"] = Value::of(config.run.device);
  root.map["sevenfold"] = block;
  return "# Written by sevenfold: every parameter of this run, presets and overrides applied." +
         to_yaml(root, -2);
}

void check_rules(Parameters& parameters, const SevenfoldBlock& block, const Config& config) {
  const MeshShape& mesh = config.mesh;
  check_choices(parameters);
  check_pipeline_batches(parameters, block, config);
  check_context(parameters, mesh);
  check_experts(parameters, mesh);
  check_recomputation(parameters);
  check_low_precision(parameters);
}

// `parameters`: by megatron keys.
void resolve(Config& config, const Experiment& experiment, Parameters& parameters,
             const SevenfoldBlock& block, const LoadOptions& options) {
  const std::string directory = run_directory(experiment, options);
  apply_fix_ups(parameters, block, directory);
  config.run = resolve_run(parameters, block, options, directory);
  config.mesh = resolve_layout(parameters, block, options);
  config.pipeline = resolve_pipeline(parameters, block, config.mesh);
  config.mesh.ranks_per_node = ranks_per_node(experiment, options);
  config.batch = resolve_batch(parameters, config.mesh.dp);
  const int64_t samples = resolve_run_length(parameters, config.batch, config.run);
  const Vocabulary vocabulary = resolve_vocabulary(parameters, block, options);
  config.model = resolve_model(parameters, config.mesh, vocabulary.size);
  config.mesh.tp_copies = key_value_copies(config.model, config.mesh.tp);
  config.parallel = resolve_parallel(parameters, config.model, config.mesh);
  config.parallel.reduces_in_bf16 = resolve_bf16_sums(parameters, config.run.precision);
  check_run_length(parameters, config.run, config.batch);
  check_elements(parameters, config.model, config.batch);
  config.optimizer = resolve_optimizer(parameters, block);
  config.learning_rate = resolve_learning_rate(parameters, config.batch.global_batch_size, samples);
  config.data = resolve_data(parameters, block, vocabulary);
  config.checkpoint = resolve_checkpoints(parameters, block);
  check_rules(parameters, block, config);
  resolve_sharding(parameters, config.parallel, config.mesh);
  config.recompute = resolve_recomputation(parameters);
  refuse_unsupported_values(parameters);
}

// What the rules have to say about the translation, in the words of the user.
void take_over(Translation& translation, Parameters& own) {
  const KeyNames& names = translation.names;
  for (const Notice& notice : translation.parameters.notices())
    own.notice(names.respell(notice.text));
  for (const Unsupported& item : translation.parameters.unsupported_values()) {
    const auto refusal = translation.refusals.find(item.key);
    own.unsupported(item.key, refusal == translation.refusals.end() ? names.respell(item.text)
                                                                    : refusal->second);
  }
}

// Gives the translation, with what the rules made of it.
Translation resolve_torchtitan(Config& config, const Experiment& experiment, Parameters& own,
                               const SevenfoldBlock& block, const LoadOptions& options) {
  Translation translation = translate(own, block, options);
  try {
    resolve(config, experiment, translation.parameters, translation.block, translation.options);
  } catch (const RuleError& error) {
    throw RuleError(error.rule(), translation.names.respell(error.what()));
  } catch (const ConfigError& error) {
    throw ConfigError(translation.names.respell(error.what()));
  }
  take_over(translation, own);
  return translation;
}

// Members that the translation has set.
void add_block_members(const SevenfoldBlock& block, Value& map) {
  if (block.schedule_file) map.map["schedule_file"] = Value::of(*block.schedule_file);
  if (block.checkpoint_folder) map.map["checkpoint_folder"] = Value::of(*block.checkpoint_folder);
  if (block.keep_checkpoints) map.map["keep_checkpoints"] = Value::of(*block.keep_checkpoints);
  if (block.decay_all) map.map["decay_all"] = Value::of(*block.decay_all);
}

Experiment read_experiment(const LoadOptions& options) {
  return load_experiment(
      {options.file, options.overrides, options.presets_directory, options.environment});
}

Parameters own_parameters(const Experiment& experiment) {
  const Framework framework = framework_of(experiment.framework);
  const Value& raw = experiment.parameters;
  return Parameters(framework == Framework::kTorchTitan ? dotted_keys(raw) : raw, framework);
}

}  // namespace

std::string_view precision_name(Precision precision) {
  switch (precision) {
    case Precision::kFp64:
      return "fp64";
    case Precision::kFp32:
      return "fp32";
    case Precision::kBf16:
      return "bf16";
    case Precision::kFp16:
      break;
  }
  return "fp16";
}

Config load_config(const LoadOptions& options) {
  const Experiment experiment = read_experiment(options);
  KeyReport report = check_keys(experiment, options.strict);
  Config config;
  config.file = options.file;
  config.framework = experiment.framework;
  Parameters parameters = own_parameters(experiment);
  for (const std::string& text : experiment.notices) parameters.notice(text);
  const SevenfoldBlock block = read_sevenfold_block(experiment.sevenfold);
  if (parameters.framework() == Framework::kTorchTitan)
    resolve_torchtitan(config, experiment, parameters, block, options);
  else
    resolve(config, experiment, parameters, block, options);
  config.keys = report.counts;
  config.ignored = std::move(report.ignored);
  config.unknown = std::move(report.unknown);
  config.notices = std::move(parameters.notices());
  config.unsupported = std::move(parameters.unsupported_values());
  add_entries(config, "", experiment.top);
  add_entries(config, "", parameters.values());
  add_entries(config, "sevenfold.", experiment.sevenfold);
  config.resolved_yaml = resolved_yaml(config, experiment, parameters);
  return config;
}

std::string megatron_yaml(const LoadOptions& options) {
  Experiment experiment = read_experiment(options);
  Parameters own = own_parameters(experiment);
  if (own.framework() == Framework::kMegatron) return load_config(options).resolved_yaml;
  check_keys(experiment, options.strict);
  Config config;
  const SevenfoldBlock block = read_sevenfold_block(experiment.sevenfold);
  const Translation translation = resolve_torchtitan(config, experiment, own, block, options);
  add_block_members(translation.block, experiment.sevenfold);
  return resolved_yaml(config, experiment, translation.parameters);
}

}  // namespace sevenfold
