#pragma once

#include <CLI/CLI.hpp>

namespace sevenfold::cli {

// Each adds one subcommand to the program. Its callback does the work and sets `exit_code`; errors
// leave it as exceptions (ConfigError, DataError: exit code 2; others: 1).
void add_batch_command(CLI::App& app, int& exit_code);
void add_config_command(CLI::App& app, int& exit_code);
void add_data_command(CLI::App& app, int& exit_code);
void add_mesh_command(CLI::App& app, int& exit_code);
void add_schedule_command(CLI::App& app, int& exit_code);
// train and verify: hands the whole command line to sevenfold-engine, found next to this program.
void add_engine_commands(CLI::App& app, char** argv);

// Parses the command line, which runs the command, and turns every outcome into the contract: exit
// code 0, 1 or 2, and for a failure one sentence on stderr. `exit_code` is what the commands set.
int run_program(CLI::App& app, int argc, char** argv, const int& exit_code);

}  // namespace sevenfold::cli
