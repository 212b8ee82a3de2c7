#include <cstdio>
#include <exception>

#include "sevenfold/cli/commands.h"
#include "sevenfold/core/error.h"

namespace sevenfold::cli {

int run_program(CLI::App& app, int argc, char** argv, const int& exit_code) {
  try {
    app.parse(argc, argv);
    std::fflush(stdout);
    return exit_code;
  } catch (const CLI::Success& request) {  // --help, --version
    return app.exit(request);
  } catch (const CLI::ParseError& error) {
    const CLI::App* command = &app;
    while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
    fmt::print(stderr, "{}: {}; see `{} --help`\n", app.get_name(), error.what(),
               command == &app ? app.get_name() : app.get_name() + " " + command->get_name());
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
