#pragma once

#include <optional>
#include <string>

#include "sevenfold/dataset/order/sample_index.h"

namespace sevenfold {

// A sample index on disk (layout: docs/data.md).

// Maps the file and checks it whole. None when it is missing, truncated, damaged, or its key is not
// `key`.
std::optional<SampleIndex> read_index_file(const std::string& path, const std::string& key);

// Writes a temporary file in the same folder, makes it durable and moves it to `path`. Takes
// leftovers of killed writers away that are older than a day. Throws DataError, leaving nothing,
// when that fails.
void write_index_file(const std::string& path, const std::string& key, const SampleIndex& index);

}  // namespace sevenfold
