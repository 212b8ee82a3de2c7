#pragma once

#include <map>
#include <string>

#include "sevenfold/config/load.h"
#include "sevenfold/config/parameters.h"
#include "sevenfold/config/sevenfold_block.h"
#include "sevenfold/config/torchtitan/key_names.h"

namespace sevenfold::config {

// A torchtitan experiment in the megatron vocabulary, whose rules then make a Config of it.
struct Translation {
  Parameters parameters;  // by megatron keys
  SevenfoldBlock block;
  LoadOptions options;  // with the number of ranks
  KeyNames names;       // for the sentences of the rules
  // By megatron key: what to say in the place of "not supported yet", where no name for name will
  // do.
  std::map<std::string, std::string> refusals;
};

// `own`: by dotted names. Throws RuleError for what only TorchTitan's rules forbid; notices and
// unsupported values are left in `own`.
Translation translate(Parameters& own, const SevenfoldBlock& block, const LoadOptions& options);

}  // namespace sevenfold::config
