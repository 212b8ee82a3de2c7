#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace sevenfold {

// Steps of writing files that outlive a crash. Where one gives false, errno says why.

// All of the bytes, however many calls that takes.
bool write_all(int descriptor, std::span<const std::byte> bytes);

// Makes names that were given or taken away in a folder last. File systems that keep names in
// another way have nothing to do. An empty path is the current folder.
bool sync_folder(const std::filesystem::path& folder);

}  // namespace sevenfold
