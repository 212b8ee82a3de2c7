#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>

#include "sevenfold/cli/commands.h"
#include "sevenfold/config/yaml/value.h"
#include "sevenfold/core/error.h"

namespace sevenfold::cli {
namespace {

using config::one_line;

// "sevenfold data prepare": the subcommands that the command line has named.
std::string command_path(const CLI::App& app) {
  std::string path = app.get_name();
  for (const CLI::App* command = &app; !command->get_subcommands().empty();) {
    command = command->get_subcommands().front();
    path += " " + command->get_name();
  }
  return path;
}

// A first word that is no command would otherwise be reported as a missing one.
void check_command_name(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return;
  std::string known;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_name() == argv[1]) return;
    known += (known.empty() ? "" : ", ") + command->get_name();
  }
  raise<ConfigError>("{}: no command is called '{}'; commands are {}; see `{} --help`",
                     app.get_name(), argv[1], known, app.get_name());
}

}  // namespace

// Names and values of the user may hold line breaks, which ConfigError and DataError repeat. A
// CommError ends with a table on purpose.
int run_program(CLI::App& app, int argc, char** argv, const int& exit_code) {
  // Past a size limit, writing then fails with a reason instead of ending the process half-way.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    check_command_name(app, argc, argv);
    app.parse(argc, argv);
    // A result that could not be written is a failure: a full disk, a closed pipe.
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
      raise<Error>("{}: cannot write to standard output: {}", app.get_name(), std::strerror(errno));
    return exit_code;
  } catch (const CLI::Success& request) {  // --help, --version
    return app.exit(request);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "{}: {}; see `{} --help`\n", app.get_name(), one_line(error.what()),
               command_path(app));
    return 2;
  } catch (const ConfigError& error) {
    fmt::print(stderr, "{}\n", one_line(error.what()));
    return 2;
  } catch (const DataError& error) {
    fmt::print(stderr, "{}\n", one_line(error.what()));
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}

}  // namespace sevenfold::cli
