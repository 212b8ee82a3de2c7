#include <cstdio>
#include <exception>
#include <string>

#include "sevenfold/cli/commands.h"
#include "sevenfold/core/error.h"

namespace sevenfold::cli {
namespace {

// "sevenfold data prepare": the subcommands that the command line has named.
std::string command_path(const CLI::App& app) {
  std::string path = app.get_name();
  for (const CLI::App* command = &app; !command->get_subcommands().empty();) {
    command = command->get_subcommands().front();
    path += " " + command->get_name();
  }
  return path;
}

}  // namespace

int run_program(CLI::App& app, int argc, char** argv, const int& exit_code) {
  try {
    app.parse(argc, argv);
    std::fflush(stdout);
    return exit_code;
  } catch (const CLI::Success& request) {  // --help, --version
    return app.exit(request);
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "{}: {}; see `{} --help`\n", app.get_name(), error.what(), command_path(app));
    return 2;
  } catch (const ConfigError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  } catch (const DataError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}

}  // namespace sevenfold::cli
