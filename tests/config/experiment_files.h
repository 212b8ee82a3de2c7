#pragma once

#include <map>
#include <string>
#include <vector>

#include "sevenfold/config/experiment.h"
#include "sevenfold/config/load.h"

namespace sevenfold {

// A folder of YAML files for one test, removed afterwards.
class ExperimentFiles {
 public:
  ExperimentFiles();
  ~ExperimentFiles();
  ExperimentFiles(const ExperimentFiles&) = delete;
  ExperimentFiles& operator=(const ExperimentFiles&) = delete;

  // Writes a file (folders are made) and returns its path.
  std::string write(const std::string& name, const std::string& text) const;
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

 private:
  std::string folder_;
};

// A small Llama (4 layers, width 32, 4 heads, 2 groups, vocabulary 101) on data prefix D1.
// `module_yaml` lines are put below `overrides:` (6 blanks deep), `top_yaml` lines at the end.
std::string small_llama(const std::string& module_yaml = "", const std::string& top_yaml = "");

// A small Llama of the torchtitan vocabulary (flavor debugmodel; 4 layers, width 32, 4 heads, 2 KV
// heads, vocabulary 101) on data prefix D1. `module_yaml` lines are put below `overrides:`.
std::string small_titan(const std::string& module_yaml = "", const std::string& top_yaml = "");

// An environment that holds just these variables.
config::Environment environment_of(std::map<std::string, std::string> variables);

// Loads a text as run.yaml with key=value words, in an empty environment.
Config load_text(const std::string& text, std::vector<std::string> words = {});
config::Experiment load_raw(const std::string& text, std::vector<std::string> words = {});

// What the ConfigError says that `load_text` throws; "" if it throws none. The folder of the file
// is cut off.
std::string error_of(const std::string& text, std::vector<std::string> words = {});
// The rule's id, and the sentence behind it.
std::string rule_of(const std::string& text, std::vector<std::string> words = {});

}  // namespace sevenfold
