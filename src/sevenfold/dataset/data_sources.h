#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "sevenfold/config/config.h"
#include "sevenfold/dataset/gpt_dataset.h"

namespace sevenfold {

struct DataRequest {
  int64_t seq_length = 0;
  int64_t vocab_size = 0;
  uint64_t seed = 1234;
  int64_t train_samples = 0;  // train_samples_needed
  std::optional<int64_t>
      valid_samples;  // valid_samples_needed; none: all, once (full validation); 0: no set
};

struct DataSources {
  std::unique_ptr<GptDataset> train;
  std::unique_ptr<GptDataset> valid;  // null when no validation was asked for
};

// Opens the files of an experiment, cuts them by its split string and checks the token ids of files
// up to 256 MiB. Throws ConfigError (no data named, empty part) and DataError (missing or corrupt
// files).
DataSources open_data(const DataConfig& config, const DataRequest& request);

}  // namespace sevenfold
