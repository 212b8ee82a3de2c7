#pragma once

#include <CLI/CLI.hpp>

namespace sevenfold::apps {

// Each adds one subcommand of sevenfold-engine; the callback does the work and sets `exit_code`.
void add_train_command(CLI::App& app, int& exit_code);
void add_checkpoint_command(CLI::App& app, int& exit_code);
void add_verify_command(CLI::App& app, int& exit_code);

}  // namespace sevenfold::apps
