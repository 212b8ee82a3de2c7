#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "apps/engine_commands.h"
#include "sevenfold/checkpoint/checkpoint.h"
#include "sevenfold/checkpoint/folder.h"
#include "sevenfold/core/error.h"
#include "sevenfold/core/units.h"

namespace sevenfold::apps {
namespace {

namespace fs = std::filesystem;

struct CheckpointArguments {
  std::string path;
  bool json = false;
};

Checkpoint open_checkpoint(const fs::path& path) {
  if (const auto found = checkpoint_at(path)) return Checkpoint(*found);
  std::error_code ignored;
  raise<ConfigError>("checkpoint: {}: {}", path.string(),
                     fs::is_directory(path, ignored)
                         ? "the folder holds no checkpoint (step-00000100, ...)"
                         : "there is no such folder");
}

struct Contents {
  int64_t parameters = 0;  // elements of weights
  int64_t weights = 0;     // tensors
  int64_t states = 0;
  int64_t pieces = 0;
  std::set<std::string> files;
};

Contents contents_of(const Checkpoint& checkpoint) {
  Contents contents;
  for (const auto& [name, tensor] : checkpoint.index().tensors) {
    const bool is_state = name.find('/') != std::string::npos;
    (is_state ? contents.states : contents.weights) += 1;
    if (!is_state) contents.parameters += tensor.num_elements();
    contents.pieces += static_cast<int64_t>(tensor.pieces.size());
    for (const StoredPiece& piece : tensor.pieces) contents.files.insert(piece.file);
  }
  return contents;
}

void print_text(const Checkpoint& checkpoint) {
  const Contents contents = contents_of(checkpoint);
  const CheckpointIndex& index = checkpoint.index();
  fmt::print("{}: after step {}, {} samples\n", checkpoint.folder().string(), index.run.iteration,
             with_commas(index.run.consumed_samples));
  fmt::print(
      "{} parameters in {} tensors, {}\n", with_commas(contents.parameters), contents.weights,
      index.optimizer.empty() ? "no optimizer states"
                              : fmt::format("{} states of {}", contents.states, index.optimizer));
  fmt::print("{} in {} files, {} pieces\n\n", format_bytes(checkpoint.bytes()),
             contents.files.size(), contents.pieces);
  for (const auto& [name, tensor] : index.tensors)
    fmt::print("{:<64} {:>5} {:>16} in {} piece{}\n", name,
               safetensors_name(tensor.pieces.front().type),
               fmt::format("[{}]", fmt::join(tensor.shape, ", ")), tensor.pieces.size(),
               tensor.pieces.size() == 1 ? "" : "s");
}

void print_json(const Checkpoint& checkpoint) {
  const Contents contents = contents_of(checkpoint);
  const CheckpointIndex& index = checkpoint.index();
  nlohmann::ordered_json tensors = nlohmann::ordered_json::object();
  for (const auto& [name, tensor] : index.tensors)
    tensors[name] = {{"shape", tensor.shape},
                     {"dtype", safetensors_name(tensor.pieces.front().type)},
                     {"pieces", tensor.pieces.size()}};
  const nlohmann::ordered_json document = {{"path", checkpoint.folder().string()},
                                           {"iteration", index.run.iteration},
                                           {"consumed_samples", index.run.consumed_samples},
                                           {"parameters", contents.parameters},
                                           {"optimizer", index.optimizer},
                                           {"bytes", checkpoint.bytes()},
                                           {"files", contents.files},
                                           {"tensors", tensors}};
  fmt::print("{}\n", document.dump(2));
}

void inspect(const CheckpointArguments& arguments) {
  const Checkpoint checkpoint = open_checkpoint(arguments.path);
  if (arguments.json) return print_json(checkpoint);
  print_text(checkpoint);
  fmt::print("next: sevenfold checkpoint verify {}\n", checkpoint.folder().string());
}

void verify(const CheckpointArguments& arguments) {
  const auto start = std::chrono::steady_clock::now();
  const Checkpoint checkpoint = open_checkpoint(arguments.path);
  checkpoint.check_sums();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const Contents contents = contents_of(checkpoint);
  if (arguments.json) {
    const nlohmann::ordered_json document = {{"path", checkpoint.folder().string()},
                                             {"bytes", checkpoint.bytes()},
                                             {"pieces", contents.pieces},
                                             {"pass", true}};
    fmt::print("{}\n", document.dump(2));
    return;
  }
  fmt::print("{} is whole: {} in {} pieces have their checksums ({:.1f} s)\n",
             checkpoint.folder().string(), format_bytes(checkpoint.bytes()), contents.pieces,
             seconds);
  fmt::print("next: sevenfold train FILE --resume {} --out DIR\n", checkpoint.folder().string());
}

void add_action(CLI::App& command, const char* name, const char* help, int& exit_code,
                void (*act)(const CheckpointArguments&)) {
  auto arguments = std::make_shared<CheckpointArguments>();
  CLI::App* action = command.add_subcommand(name, help);
  action->add_option("path", arguments->path, "A checkpoint, or a folder of them: its newest")
      ->required()
      ->type_name("DIR");
  action->add_flag("--json", arguments->json, "One JSON document");
  action->callback([arguments, act, &exit_code] {
    act(*arguments);
    exit_code = 0;
  });
}

}  // namespace

void add_checkpoint_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("checkpoint", "Look into checkpoints");
  command->require_subcommand(1);
  add_action(*command, "inspect", "Step, tensors, shapes and types", exit_code, inspect);
  add_action(*command, "verify", "Compare every checksum", exit_code, verify);
}

}  // namespace sevenfold::apps
