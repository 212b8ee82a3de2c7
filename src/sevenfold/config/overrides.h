#pragma once

#include <string>
#include <vector>

#include "sevenfold/config/experiment.h"

namespace sevenfold::config {

// Applies key=value words in order. `a.b=1` sets a member of a map; `sevenfold.shuffle=false` goes
// to the sevenfold block; work_group, user_name, exp_name and workspace to the top level; all else
// to the module's parameters. Leading dashes and the long form modules.NAME.overrides.KEY are
// tolerated.
void apply_overrides(Experiment& experiment, const std::vector<std::string>& words);

// Turns dotted keys of an `overrides` map (`training.steps: 5`) into nested ones, and says so.
void expand_dotted_keys(Value& overrides, std::vector<std::string>& notices);

}  // namespace sevenfold::config
