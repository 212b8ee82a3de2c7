// sevenfold: the torch-free half. Starts in milliseconds; hands train and verify to
// sevenfold-engine.

#include "sevenfold/cli/commands.h"

int main(int argc, char** argv) {
  CLI::App app(
      "Trains transformer models under any combination of seven parallel dimensions, proves that a "
      "layout computes what one rank computes, and plans runs.",
      "sevenfold");
  app.require_subcommand(1);
  app.set_version_flag("--version", SEVENFOLD_VERSION);
  int exit_code = 0;
  sevenfold::cli::add_engine_commands(app, argv);
  sevenfold::cli::add_config_command(app, exit_code);
  sevenfold::cli::add_batch_command(app, exit_code);
  sevenfold::cli::add_mesh_command(app, exit_code);
  sevenfold::cli::add_schedule_command(app, exit_code);
  sevenfold::cli::add_data_command(app, exit_code);
  return sevenfold::cli::run_program(app, argc, argv, exit_code);
}
