#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sevenfold/cli/commands.h"
#include "sevenfold/cli/key_listing.h"
#include "sevenfold/cli/next_command.h"
#include "sevenfold/cli/tokenizer_facts.h"
#include "sevenfold/config/experiment.h"
#include "sevenfold/config/key_policy.h"
#include "sevenfold/config/load.h"
#include "sevenfold/core/error.h"

namespace sevenfold::cli {
namespace {

using nlohmann::json;

struct ConfigArguments {
  LoadOptions load;
  std::string translate_to;  // --as
  bool raw = false;
  bool help_keys = false;
  bool print_json = false;
  bool print_markdown = false;
};

std::string dump(const json& document) {
  return document.dump(2, ' ', false, json::error_handler_t::replace);
}

void print_raw(const ConfigArguments& arguments) {
  const config::Experiment experiment =
      config::load_experiment({arguments.load.file, arguments.load.overrides,
                               arguments.load.presets_directory, arguments.load.environment});
  if (arguments.load.strict) config::check_keys(experiment, true);
  fmt::print("{}\n", dump(to_json(experiment.parameters)));
}

void print_help_keys(const ConfigArguments& arguments) {
  fmt::print("{}", arguments.print_markdown ? key_listing_markdown()
                   : arguments.print_json   ? key_listing_json()
                                            : key_listing_text());
}

void print_translated(ConfigArguments arguments) {
  const std::string& wanted = arguments.translate_to;
  if (arguments.raw || arguments.print_json)
    raise<ConfigError>("config: --as {}: prints an experiment file; leave out --raw and --json",
                       wanted);
  if (wanted != "megatron" && wanted != "torchtitan")
    raise<ConfigError>("config: --as {}: there is no such vocabulary; use megatron or torchtitan",
                       wanted);
  arguments.load.tokenizer_facts = tokenizer_facts;
  if (wanted == "megatron") {
    fmt::print("{}\n", megatron_yaml(arguments.load));
    return;
  }
  const Config config = load_config(arguments.load);
  if (config.framework != wanted)
    raise<ConfigError>(
        "config: --as torchtitan: {} is written in megatron keys, of which many have no twin "
        "there; "
        "use --as megatron",
        config.file);
  fmt::print("{}\n", config.resolved_yaml);
}

json notes_json(const std::vector<KeyNote>& notes) {
  json result = json::array();
  for (const KeyNote& note : notes)
    result.push_back({{"key", note.key}, {"origin", note.origin}, {"reason", note.reason}});
  return result;
}

void print_json(const Config& config) {
  json values = json::object();
  for (const ConfigEntry& entry : config.entries)
    values[entry.key] = {{"value", json::parse(entry.value_json)}, {"origin", entry.origin}};
  json notices = json::array();
  for (const Notice& notice : config.notices) notices.push_back(notice.text);
  json unsupported = json::array();
  for (const Unsupported& item : config.unsupported)
    unsupported.push_back({{"key", item.key}, {"text", item.text}});
  fmt::print("{}\n", dump({{"file", config.file},
                           {"framework", config.framework},
                           {"values", values},
                           {"notices", notices},
                           {"unsupported", unsupported},
                           {"ignored", notes_json(config.ignored)},
                           {"unknown", notes_json(config.unknown)},
                           {"world_size", config.mesh.world_size()},
                           {"keys",
                            {{"used", config.keys.used},
                             {"ignored", config.keys.ignored},
                             {"unknown", config.keys.unknown}}}}));
}

void print_notes(const char* title, const std::vector<KeyNote>& notes) {
  if (notes.empty()) return;
  fmt::print("\n{}\n", title);
  for (const KeyNote& note : notes)
    fmt::print("  {} ({}): {}\n", note.key, note.origin, note.reason);
}

std::string next_command(const Config& config, const ConfigArguments& arguments) {
  const std::string words = experiment_words(arguments.load);
  if (config.unsupported.empty()) return "sevenfold train " + words;
  return fmt::format("sevenfold mesh {} --world {}", words, config.mesh.world_size());
}

void print_text(const Config& config, const ConfigArguments& arguments) {
  size_t key_width = 0;
  size_t value_width = 0;
  constexpr size_t kWidestValue = 32;
  for (const ConfigEntry& entry : config.entries) {
    key_width = std::max(key_width, entry.key.size());
    value_width = std::max(value_width, std::min(entry.value_json.size(), kWidestValue));
  }
  for (const ConfigEntry& entry : config.entries)
    fmt::print("{:<{}}  {:<{}}  {}\n", config::one_line(entry.key), key_width, entry.value_json,
               value_width, config::one_line(entry.origin));
  print_notes("accepted without effect:", config.ignored);
  print_notes("not known, kept:", config.unknown);
  if (!config.notices.empty()) fmt::print("\nnotices:\n");
  for (const Notice& notice : config.notices) fmt::print("  {}\n", notice.text);
  if (!config.unsupported.empty()) fmt::print("\nrefused by train and verify:\n");
  for (const Unsupported& item : config.unsupported) fmt::print("  {}\n", item.text);
  const MeshShape& mesh = config.mesh;
  fmt::print(
      "\nworld size {}: tp {} x cp {} x dp {} x pp {}; global batch {} = micro batch {} x dp {} x "
      "{} "
      "micro batches\n",
      mesh.world_size(), mesh.tp, mesh.cp, mesh.dp, mesh.pp, config.batch.global_batch_size,
      config.batch.micro_batch_size, mesh.dp, config.batch.num_microbatches);
  fmt::print("keys set by the experiment: {} used, {} ignored, {} unknown\n", config.keys.used,
             config.keys.ignored, config.keys.unknown);
  fmt::print("next: {}\n", next_command(config, arguments));
}

// Leading dashes are tolerated (--lr=0.1): CLI11 leaves such words over.
void add_left_over_words(ConfigArguments& arguments, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word.find('=') == std::string::npos)
      raise<ConfigError>("sevenfold: there is no option {}; see `sevenfold config --help`", word);
    arguments.load.overrides.push_back(word.substr(word.find_first_not_of('-')));
  }
}

void run_config(ConfigArguments arguments) {
  if (arguments.print_json && arguments.print_markdown)
    raise<ConfigError>("config: --json --markdown: a list has one form; give one of them");
  if (arguments.help_keys) return print_help_keys(arguments);
  if (arguments.print_markdown)
    raise<ConfigError>("config: --markdown: only the list of keys has this form; add --help-keys");
  if (arguments.load.file.empty())
    raise<ConfigError>(
        "sevenfold: config needs a FILE; write for example `sevenfold config "
        "examples/quickstart.yaml`");
  if (!arguments.translate_to.empty()) return print_translated(arguments);
  if (arguments.raw) return print_raw(arguments);
  arguments.load.tokenizer_facts = tokenizer_facts;
  const Config config = load_config(arguments.load);
  arguments.print_json ? print_json(config) : print_text(config, arguments);
}

}  // namespace

void add_config_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "config", "Show the values of an experiment file and where each comes from");
  auto arguments = std::make_shared<ConfigArguments>();
  command->add_option("file", arguments->load.file, "Experiment file (Primus YAML)")
      ->type_name("FILE");
  command->add_option("overrides", arguments->load.overrides, "key=value words, highest precedence")
      ->type_name("key=value");
  command
      ->add_option("--presets", arguments->load.presets_directory,
                   "Primus checkout, or its configs folder; default: built in")
      ->type_name("DIR");
  command->add_option("--as", arguments->translate_to,
                      "Print an experiment file of this vocabulary: megatron or torchtitan");
  command->add_flag("--raw", arguments->raw,
                    "JSON of the module's parameters before coercion, rules and fix-ups");
  command->add_flag("--help-keys", arguments->help_keys,
                    "List all keys: type, default, status, meaning, rule");
  command->add_flag("--markdown", arguments->print_markdown, "With --help-keys: as a page");
  command->add_flag("--strict", arguments->load.strict, "An unknown key is an error");
  command->add_flag("--json", arguments->print_json, "One JSON document");
  command->allow_extras();
  command->callback([command, arguments, &exit_code] {
    add_left_over_words(*arguments, command->remaining());
    run_config(*arguments);
    exit_code = 0;
  });
}

}  // namespace sevenfold::cli
