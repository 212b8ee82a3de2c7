#include "cli/run_command.h"

#include <gtest/gtest.h>

namespace sevenfold {

Outcome run_command(void (*add)(CLI::App&, int&), const std::string& name,
                    std::vector<std::string> words) {
  words.insert(words.begin(), {"sevenfold", name});
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  CLI::App app("test", "sevenfold");
  app.require_subcommand(1);
  Outcome outcome;
  int exit_code = 0;
  add(app, exit_code);
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  outcome.exit_code = cli::run_program(app, static_cast<int>(argv.size()), argv.data(), exit_code);
  outcome.out = ::testing::internal::GetCapturedStdout();
  outcome.error = ::testing::internal::GetCapturedStderr();
  return outcome;
}

}  // namespace sevenfold
