#include "sevenfold/config/experiment.h"

#include <array>
#include <cstdlib>
#include <optional>
#include <utility>

#include "sevenfold/config/overrides.h"
#include "sevenfold/config/presets.h"
#include "sevenfold/core/error.h"

namespace sevenfold::config {
namespace {

constexpr const char* kDefaultPlatform = "platform_azure.yaml";

std::optional<std::string> process_environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

// The string `null` becomes null where it is a direct value of a map.
void convert_null_strings(Value& value, bool recursive) {
  for (auto& [key, member] : value.map) {
    if (member.is_string() && member.text == "null") {
      const Origin origin = member.origin;
      member = Value::null();
      member.origin = origin;
    } else if (recursive && member.is_map()) {
      convert_null_strings(member, true);
    }
  }
}

// Deep merge of `overrides` as Primus does it: `null` strings are converted on every level that
// both sides have, not inside a map that only the upper side brings, and not in lists.
void merge_overrides(Value& base, const Value& upper) {
  for (const auto& [key, value] : upper.map) {
    const auto found = base.map.find(key);
    if (found == base.map.end())
      base.map.emplace(key, value);
    else if (found->second.is_map() && value.is_map())
      merge_overrides(found->second, value);
    else
      found->second = value;
  }
  convert_null_strings(base, false);
}

void require_top_level(const std::string& file, const Value& top) {
  for (const char* key : {"work_group", "user_name", "exp_name", "workspace"})
    if (top.find(key) == nullptr)
      raise<ConfigError>(
          "config: {}: the key {} is missing; an experiment needs work_group, user_name, exp_name, "
          "workspace and modules",
          file, key);
}

// pre_trainer, else post_trainer, else the first: asking for one when only the other exists gives
// the other.
std::string choose_module(const std::string& file, const Value& top) {
  const Value* modules = top.find("modules");
  if (modules == nullptr)
    raise<ConfigError>(
        "config: {}: the key modules is missing; write modules: {{pre_trainer: {{framework: "
        "megatron, "
        "config: pre_trainer.yaml, model: llama2_7B.yaml}}}}",
        file);
  if (!modules->is_map() || modules->map.empty())
    raise<ConfigError>("config: {} modules={}: a map with the module pre_trainer is needed",
                       modules->origin.text(), brief(*modules));
  for (const auto& [name, module] : modules->map) {
    if (name.find("trainer") == std::string::npos)
      raise<ConfigError>(
          "config: {} modules.{}: a module's name contains `trainer`; call it pre_trainer",
          module.origin.text(), name);
    if (!module.is_map())
      raise<ConfigError>(
          "config: {} modules.{}={}: a map with framework, config, model and overrides is needed",
          module.origin.text(), name, brief(module));
  }
  for (const char* name : {"pre_trainer", "post_trainer"})
    if (modules->find(name) != nullptr) return name;
  return modules->map.begin()->first;
}

std::string module_framework(const std::string& name, const Value& module) {
  const Value* framework = module.find("framework");
  if (framework == nullptr)
    raise<ConfigError>(
        "config: {} modules.{}: the key framework is missing; write framework: megatron",
        module.origin.text(), name);
  if (!framework->is_string() || (framework->text != "megatron" && framework->text != "torchtitan"))
    raise<ConfigError>("config: {} framework={} is not known; use megatron or torchtitan",
                       framework->origin.text(), brief(*framework));
  return framework->text;
}

Value load_preset(const PresetStore& store, const std::string& folder, const std::string& key,
                  const Value& module, const Environment& environment) {
  const Value* name = module.find(key);
  if (name == nullptr || !name->is_string())
    raise<ConfigError>("config: {} {}={} is not a preset's file name",
                       (name ? *name : module).origin.text(), key,
                       name ? brief(*name) : "(missing)");
  Value preset = load_yaml_tree(store.find(folder, name->text, key, *name), environment);
  return preset;
}

// Precedence within a module, low to high: model preset (only keys that the module preset lacks),
// module preset, the module's extra keys (only if absent), overrides.
Value resolve_parameters(Experiment& experiment, const PresetStore& store,
                         const Environment& environment) {
  const Value& module = experiment.module_keys;
  Value parameters = Value::empty_map();
  if (module.find("config") == nullptr) {
    parameters = module;  // already flattened: an exported configuration
  } else {
    parameters =
        load_preset(store, "modules/" + experiment.framework, "config", module, environment);
    const Value model =
        load_preset(store, "models/" + experiment.framework, "model", module, environment);
    for (const auto& [key, value] : model.map) parameters.map.emplace(key, value);
    convert_null_strings(parameters, true);
    for (const auto& [key, value] : module.map)
      if (key != "config" && key != "overrides" && key != "name" && key != "params")
        parameters.map.emplace(key, value);
    if (const Value* overrides = module.find("overrides");
        overrides != nullptr && !overrides->is_null()) {
      if (!overrides->is_map())
        raise<ConfigError>("config: {} overrides={}: a map of parameters is needed",
                           overrides->origin.text(), brief(*overrides));
      Value expanded = *overrides;
      expand_dotted_keys(expanded, experiment.notices);
      merge_overrides(parameters, expanded);
    }
  }
  for (const auto& [key, text] :
       {std::pair<std::string, std::string>{"framework", experiment.framework},
        {"name", experiment.module}}) {
    const Value* written = module.find(key);
    Value value = Value::of(text);
    value.origin = written != nullptr ? written->origin : module.origin;
    parameters.map[key] = value;
  }
  return parameters;
}

Value resolve_platform(const Value& top, const PresetStore& store, const Environment& environment) {
  Value request = Value::empty_map();
  Value file = Value::of(std::string(kDefaultPlatform));
  if (const Value* platform = top.find("platform"); platform != nullptr && !platform->is_null()) {
    if (!platform->is_map())
      raise<ConfigError>("config: {} platform={}: a map with config and overrides is needed",
                         platform->origin.text(), brief(*platform));
    request = *platform;
    if (const Value* named = request.find("config"); named != nullptr) file = *named;
  }
  request.map["config"] = file;
  Value platform = load_preset(store, "platforms", "config", request, environment);
  if (const Value* overrides = request.find("overrides");
      overrides != nullptr && overrides->is_map())
    merge_into(platform, *overrides);
  for (const char* key :
       {"name", "num_nodes_env_key", "node_rank_env_key", "master_addr_env_key",
        "master_port_env_key", "gpus_per_node_env_key", "master_sink_level", "workspace"})
    if (platform.find(key) == nullptr)
      raise<ConfigError>("config: {} platform={}: this preset lacks the key {}", file.origin.text(),
                         file.text, key);
  return platform;
}

}  // namespace

Environment or_process_environment(Environment environment) {
  return environment ? std::move(environment) : process_environment;
}

Experiment load_experiment(const ExperimentOptions& options) {
  const Environment environment = or_process_environment(options.environment);
  Experiment experiment;
  experiment.file = options.file;
  experiment.top = load_yaml_tree(YamlSource{OriginKind::kFile, false, options.file}, environment);
  require_top_level(options.file, experiment.top);
  experiment.module = choose_module(options.file, experiment.top);
  experiment.module_keys = experiment.top.map["modules"].map[experiment.module];
  experiment.framework = module_framework(experiment.module, experiment.module_keys);
  const PresetStore store(options.presets_directory);
  experiment.parameters = resolve_parameters(experiment, store, environment);
  experiment.platform = resolve_platform(experiment.top, store, environment);
  experiment.sevenfold = Value::empty_map();
  if (const Value* block = experiment.top.find("sevenfold");
      block != nullptr && !block->is_null()) {
    if (!block->is_map())
      raise<ConfigError>(
          "config: {} sevenfold={}: a map is needed, for example sevenfold: {{ranks: 4}}",
          block->origin.text(), brief(*block));
    experiment.sevenfold = *block;
  }
  experiment.top.map.erase("modules");
  experiment.top.map.erase("sevenfold");
  apply_overrides(experiment, options.overrides);
  return experiment;
}

}  // namespace sevenfold::config
