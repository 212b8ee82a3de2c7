#pragma once

#include <filesystem>
#include <string_view>

namespace sevenfold {

// Writes PATH.partial, syncs it, renames it to PATH and syncs the folder: readers see the whole old
// or the whole new text, and what has returned is still there after a power failure. One writer of
// a path at a time.
// Throws Error, "train: cannot write PATH: reason" where `module` is "train" (nothing before
// "cannot" where it is empty); no partial file is left, and the file is as it was unless only the
// folder could not be synced.
void write_file_atomically(const std::filesystem::path& path, std::string_view text,
                           std::string_view module = {});

}  // namespace sevenfold
