#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "sevenfold/config/load.h"
#include "sevenfold/schedule/algorithms.h"
#include "sevenfold/schedule/request.h"

namespace sevenfold::cli {

// True of a name that ends in .csv: a schedule file.
bool names_a_table(const std::string& name);

// What the command line of `sevenfold schedule` says.
struct ScheduleArguments {
  LoadOptions load;  // of an experiment whose schedule is asked for; file empty: none
  std::string algorithm;
  bool is_table = false;    // `algorithm` is a schedule file, whatever its name
  ScheduleRequest request;  // num_ranks and num_microbatches 0: not given
  std::optional<double> max_memory;
  int64_t width = 160;
  std::string svg_file;
  std::string csv_file;
  bool as_text = false;
  bool as_json = false;
  bool compares = false;

  ScheduleArguments() { request.num_ranks = request.num_microbatches = 0; }
  // True if the schedule comes from a file, not from an algorithm.
  bool reads_a_file() const;
};

// `arguments` outlives the parsing.
void add_schedule_options(CLI::App& command, ScheduleArguments& arguments);

// The options that say the same sizes, costs and limits: "--stages 4 --microbatches 8". For one
// algorithm only what it takes; null: for all.
std::string request_words(const ScheduleArguments& arguments, const Algorithm* algorithm);

}  // namespace sevenfold::cli
