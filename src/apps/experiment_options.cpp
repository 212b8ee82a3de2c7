#include "apps/experiment_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "sevenfold/cli/number_options.h"
#include "sevenfold/cli/tokenizer_facts.h"
#include "sevenfold/core/error.h"

namespace sevenfold::apps {

void ExperimentOptions::add_to(CLI::App& command) {
  load.environment = read_environment;
  load.tokenizer_facts = cli::tokenizer_facts;
  command.add_option("file", load.file, "Experiment file (Primus YAML)")
      ->required()
      ->type_name("FILE");
  command.add_option("overrides", load.overrides, "Overrides, key=value")->type_name("key=value");
  cli::add_whole_number(command, "--ranks", load.ranks, {1, kMaxWorldSize}, "World size");
  command.add_option("--backend", load.backend, "threads: ranks are threads of this process")
      ->type_name("B");
  command.add_option("--device", load.device, "auto or cpu")->type_name("D");
  command.add_option("--precision", load.precision, "fp64, fp32, bf16 or fp16")->type_name("P");
  command.add_option("--presets", load.presets_directory, "Search presets in a Primus checkout")
      ->type_name("DIR");
  command.add_flag("--strict", load.strict, "Unknown keys are errors");
}

std::optional<std::string> read_environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

FaultSet planted_faults() {
  const FaultSet faults = FaultSet::parse(read_environment("SEVENFOLD_FAULTS").value_or(""));
  if (faults.any())
    fmt::print(stderr,
               "warning: planted faults are switched on (SEVENFOLD_FAULTS={}): results are wrong "
               "on purpose\n",
               faults.to_string());
  return faults;
}

Config load_supported(const LoadOptions& options, std::FILE* out,
                      const std::vector<std::string>& allowed) {
  Config config = load_config(options);
  for (const Unsupported& value : config.unsupported)
    if (std::find(allowed.begin(), allowed.end(), value.key) == allowed.end())
      throw ConfigError(value.text);
  for (const Notice& notice : config.notices) fmt::print(out, "notice: {}\n", notice.text);
  fmt::print(out, "keys: {} used, {} ignored, {} unknown (`sevenfold config {}` lists them)\n",
             config.keys.used, config.keys.ignored, config.keys.unknown, options.file);
  return config;
}

}  // namespace sevenfold::apps
