#include "sevenfold/dataset/data_sources.h"

#include <string>

#include "sevenfold/core/error.h"
#include "sevenfold/dataset/order/split.h"

namespace sevenfold {
namespace {

std::unique_ptr<GptDataset> open_part(std::shared_ptr<const IndexedDataset> data,
                                      SequenceRange sequences, std::optional<int64_t> num_samples,
                                      const DataConfig& config, const DataRequest& request) {
  GptDatasetOptions options;
  options.sequences = sequences;
  options.seq_length = request.seq_length;
  options.vocab_size = request.vocab_size;
  options.num_samples = num_samples;
  options.seed = request.seed;
  options.shuffle = config.shuffle;
  auto part = std::make_unique<GptDataset>(std::move(data), options);
  part->validate_tokens();
  return part;
}

void check_config(const DataConfig& config, bool wants_valid) {
  if (config.mock_data)
    raise<ConfigError>(
        "dataset: mock_data=true is not there yet; name a file with data_path, made by "
        "`sevenfold data prepare`");
  if (!config.data_prefix.empty()) return;
  if (config.train_prefix.empty())
    raise<ConfigError>(
        "dataset: the experiment names no training data; set data_path (or "
        "train_data_path) to a PREFIX made by `sevenfold data prepare`");
  if (wants_valid && config.valid_prefix.empty())
    raise<ConfigError>(
        "dataset: train_data_path is set but valid_data_path is not; name validation data "
        "or set eval_iters=0");
}

}  // namespace

DataSources open_data(const DataConfig& config, const DataRequest& request) {
  const bool wants_valid = request.valid_samples != 0;
  check_config(config, wants_valid);
  DataSources sources;
  const auto part = [&](const std::string& own_prefix, Split split,
                        std::shared_ptr<const IndexedDataset> whole,
                        std::optional<int64_t> num_samples) {
    if (whole) {
      const SequenceRange range = require_split(config.split, *whole, split);
      return open_part(std::move(whole), range, num_samples, config, request);
    }
    auto data = std::make_shared<const IndexedDataset>(own_prefix);
    const SequenceRange range = data->all_sequences();
    return open_part(std::move(data), range, num_samples, config, request);
  };
  std::shared_ptr<const IndexedDataset> whole;
  if (!config.data_prefix.empty())
    whole = std::make_shared<const IndexedDataset>(config.data_prefix);
  sources.train = part(config.train_prefix, Split::kTrain, whole, request.train_samples);
  if (wants_valid)
    sources.valid = part(config.valid_prefix, Split::kValid, whole, request.valid_samples);
  return sources;
}

}  // namespace sevenfold
