#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "sevenfold/cli/commands.h"
#include "sevenfold/core/error.h"

namespace sevenfold::cli {
namespace {

// Replaces this process by sevenfold-engine with the same arguments.
[[noreturn]] void exec_engine(char** argv) {
  std::error_code ignored;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const std::filesystem::path engine = self.parent_path() / "sevenfold-engine";
  if (!std::filesystem::exists(engine, ignored))
    raise<ConfigError>(
        "sevenfold: `{}` needs sevenfold-engine, which is not at {}; build it with "
        "`cmake --preset release && cmake --build --preset release` (it needs LibTorch: "
        "apt-get install libtorch-dev)",
        argv[1], engine.string());
  // LibTorch's worker threads would spin for milliseconds at the end of every small loop; where
  // ranks or other programs use the same cores, a step then takes twenty times as long.
  setenv("GOMP_SPINCOUNT", "1000", /*overwrite=*/0);
  std::fflush(stdout);
  execv(engine.c_str(), argv);
  raise<Error>("sevenfold: cannot start {}: {}", engine.string(), std::strerror(errno));
}

}  // namespace

void add_engine_commands(CLI::App& app, char** argv) {
  for (const auto& [name, help] :
       {std::pair{"train", "Train an experiment file"},
        std::pair{"verify", "Show that a layout computes what one rank computes"},
        std::pair{"checkpoint", "Look into checkpoints: inspect or verify"}}) {
    CLI::App* command = app.add_subcommand(name, help);
    command->prefix_command();
    command->set_help_flag();  // the engine's own help answers
    command->callback([argv] { exec_engine(argv); });
  }
}

}  // namespace sevenfold::cli
