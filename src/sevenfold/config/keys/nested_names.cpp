#include "sevenfold/config/keys/key_tables.h"

// Names that the typo rule needs beside the tables: members of nested keys of the megatron
// vocabulary.

namespace sevenfold::config {
namespace {

constexpr std::string_view kNestedMegatron[] = {
    "lora.alpha",
    "lora.dim",
    "lora.dropout",
    "lora.dropout_position",
    "lora.enabled",
    "lora.lora_A_init_method",
    "lora.lora_B_init_method",
    "lora.target_modules",
    "mock_dataset.class",
    "mock_dataset.params",
    "torch_compile.backend",
    "torch_compile.enable",
    "torch_compile.fullgraph",
    "torch_compile.mode",
};

}  // namespace

std::span<const std::string_view> nested_megatron_names() {
  return kNestedMegatron;
}

}  // namespace sevenfold::config
