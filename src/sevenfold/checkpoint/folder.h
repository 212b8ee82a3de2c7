#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sevenfold {

// A folder of checkpoints: step-00000100/ and so on, and `latest`, a file with the name of the last
// one written. A checkpoint is whole or invisible: it is written under another name, with every
// file fsynced, and renamed; `latest` follows. Leftovers of killed runs have other names and go
// with the next save.

std::string step_folder_name(int64_t step);                                // "step-00000100"
std::optional<int64_t> step_of_folder(const std::filesystem::path& path);  // by its name

// Steps of the checkpoints in the folder, ascending; empty where it does not exist.
std::vector<int64_t> steps_in(const std::filesystem::path& folder);
// The newest checkpoint of the folder, by step. Throws DataError where `latest` names none:
// somebody else has been there, or a disk lies.
std::optional<std::filesystem::path> newest_checkpoint(const std::filesystem::path& folder);

// The checkpoint at a path: that folder, or of a folder of checkpoints that of `step`, else the
// newest. Nothing where there is none. Throws as newest_checkpoint.
std::optional<std::filesystem::path> checkpoint_at(const std::filesystem::path& path,
                                                   std::optional<int64_t> step = {});

// Which earlier checkpoints stay when one is new: as CheckpointConfig says.
struct Retention {
  int64_t keep_latest = 0;
  int64_t retain_interval = 0;
};
// Steps that go, of `steps` (ascending, the new one last).
std::vector<int64_t> steps_to_remove(const std::vector<int64_t>& steps, const Retention& retention);

// The following throw Error with path and reason.

// Where the files of a step's checkpoint lie until it is published.
std::filesystem::path partial_folder(const std::filesystem::path& folder, int64_t step);
// Makes that folder, empty, and removes leftovers.
void begin_checkpoint(const std::filesystem::path& folder, int64_t step);
// Makes what lies there the checkpoint of the step (in the place of an earlier one of the same
// step) and `latest`, and removes those that retention lets go.
void publish_checkpoint(const std::filesystem::path& folder, int64_t step,
                        const Retention& retention);

}  // namespace sevenfold
