#pragma once

#include <string>
#include <vector>

#include "sevenfold/cli/commands.h"

namespace sevenfold {

struct Outcome {
  int exit_code = 0;
  std::string out;
  std::string error;
};

// Runs `sevenfold NAME WORDS...` inside this program; `add` is the command's add function.
Outcome run_command(void (*add)(CLI::App&, int&), const std::string& name,
                    std::vector<std::string> words);

}  // namespace sevenfold
