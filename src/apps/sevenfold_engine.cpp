// sevenfold-engine: the torch half. Started by `sevenfold`, which stands next to it.

#include "apps/blas_kernels.h"
#include "apps/engine_commands.h"
#include "sevenfold/cli/commands.h"
#include "sevenfold/dist/allocator.h"

int main(int argc, char** argv) {
  sevenfold::apps::restart_with_fitting_blas_kernels(argv);
  sevenfold::configure_process_memory();
  sevenfold::install_allocator();
  CLI::App app("Trains experiment files, proves layouts, looks into checkpoints.", "sevenfold");
  app.require_subcommand(1);
  int exit_code = 0;
  sevenfold::apps::add_train_command(app, exit_code);
  sevenfold::apps::add_verify_command(app, exit_code);
  sevenfold::apps::add_checkpoint_command(app, exit_code);
  return sevenfold::cli::run_program(app, argc, argv, exit_code);
}
