#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sevenfold/config/config.h"
#include "sevenfold/dataset/gpt_dataset.h"

namespace sevenfold {

struct DataRequest {
  int64_t seq_length = 0;
  int64_t vocab_size = 0;
  uint64_t seed = 1234;
  int64_t train_samples = 0;  // train_samples_needed
  // valid_samples_needed; none: all, once (full validation); 0: no set.
  std::optional<int64_t> valid_samples;
  int64_t test_samples = 0;  // test_samples_needed; 0: no set
};

struct DataSources {
  std::unique_ptr<SampleSource> train;
  std::unique_ptr<SampleSource> valid;  // null when no validation was asked for
  // Null when no test was asked for, or the data has none: no test_data_path, or a split whose test
  // part is absent, empty or shorter than a sample of unshuffled data.
  std::unique_ptr<SampleSource> test;
  // The same parts where they are one file each, for statistics of its text; else null.
  const GptDataset* train_text = nullptr;
  const GptDataset* valid_text = nullptr;
  std::vector<std::string> notices;  // what the user should know of how they were opened
};

// Opens the files of an experiment (or makes up the documents of mock_data), cuts them by its split
// string, blends them and checks the token ids of parts up to 256 MiB. Throws ConfigError (no data
// named, empty part, weights that cannot be used) and DataError (missing or corrupt files).
DataSources open_data(const DataConfig& config, const DataRequest& request);

}  // namespace sevenfold
