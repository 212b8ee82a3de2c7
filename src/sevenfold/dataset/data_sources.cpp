#include "sevenfold/dataset/data_sources.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "sevenfold/core/error.h"
#include "sevenfold/core/units.h"
#include "sevenfold/dataset/blended_source.h"
#include "sevenfold/dataset/indexed/indexed_dataset.h"
#include "sevenfold/dataset/mock_documents.h"
#include "sevenfold/dataset/order/sample_index.h"
#include "sevenfold/dataset/order/split.h"

namespace sevenfold {
namespace {

using Samples = std::unique_ptr<SampleSource>;
using Data = std::shared_ptr<const SequenceSource>;

// One part (training, validation or test) of an experiment.
struct Part {
  Split split = Split::kTrain;
  std::optional<int64_t> num_samples;  // asked; none: all, once
};

// Words that a user may have meant as a weight: they begin like a number.
bool begins_like_number(const std::string& word) {
  const size_t digit = word.find_first_not_of("+-.");
  return digit != std::string::npos && word[digit] >= '0' && word[digit] <= '9';
}

// A data set is two files; without them the message names the key that asks for it.
void check_files_exist(const BlendConfig& blend, const std::string& prefix) {
  for (const char* suffix : {".idx", ".bin"}) {
    std::error_code unknown;
    if (std::filesystem::exists(prefix + suffix, unknown) || unknown) continue;
    std::string way_out = fmt::format(
        "make it with `sevenfold data prepare --output {}`, or correct the path", prefix);
    if (prefix.ends_with(".bin") || prefix.ends_with(".idx"))
      way_out =
          fmt::format("a data set is named by its prefix: {}", prefix.substr(0, prefix.size() - 4));
    else if (blend.weights.empty() && blend.prefixes.size() % 2 == 0 && begins_like_number(prefix))
      way_out = fmt::format(
          "`{}` is no number, so all words were read as prefixes without weights; write weight "
          "prefix weight prefix ...",
          prefix);
    raise<DataError>("dataset: {}{}there is no {}{}; {}", blend.where,
                     blend.where.empty() ? "" : ": ", prefix, suffix, way_out);
  }
}

Data open_files(const BlendConfig& blend, const std::string& prefix) {
  check_files_exist(blend, prefix);
  return std::make_shared<const IndexedDataset>(prefix);
}

// Every sample of a blend is listed.
void check_blend_size(size_t num_sets, int64_t num_samples) {
  if (num_samples <= kMaxIndexEntries) return;
  raise<DataError>(
      "dataset: a blend of {} data sets: {} samples are more than an index can list ({} entries); "
      "ask for fewer samples",
      num_sets, with_commas(num_samples), with_commas(kMaxIndexEntries));
}

int64_t num_tokens(const SequenceSource& data, const SequenceRange& range) {
  int64_t tokens = 0;
  for (int64_t i = range.begin; i < range.end; ++i) tokens += data.sequence_length(i);
  return tokens;
}

// Opens the parts of an experiment one after the other; files that parts share are opened once.
class PartOpener {
 public:
  PartOpener(const DataConfig& config, const DataRequest& request)
      : config_(config), request_(request), split_(config.split) {
    if (config.mock_data) {
      use_mock_data();
      return;
    }
    shared_ = config.data;
    for (const std::string& prefix : shared_.prefixes)
      shared_files_.push_back(open_files(shared_, prefix));
  }

  Samples open(const BlendConfig& own, const Part& part) {
    is_cut_ = !shared_.empty();
    const BlendConfig& blend = is_cut_ ? shared_ : own;
    files_ = shared_files_;
    if (!is_cut_)
      for (const std::string& prefix : blend.prefixes) files_.push_back(open_files(blend, prefix));
    // A file of its own is asked for all the samples, whatever weight it has.
    const bool is_one = blend.prefixes.size() == 1 && (blend.weights.empty() || !is_cut_);
    if (is_one) return open_set(0, part, config_.shuffle ? part.num_samples : std::nullopt);
    return blend.weights.empty() ? blend_by_size(part) : blend_by_weight(blend.weights, part);
  }

  // Whether the data goes as far as a test set: small data seldom does.
  bool has_test_part() const {
    if (shared_.empty()) return !config_.test.empty();
    return std::all_of(shared_files_.begin(), shared_files_.end(), [this](const Data& file) {
      const auto range = split_sequences(split_, file->num_sequences())[2];
      return range && num_tokens(*file, *range) > (config_.shuffle ? 0 : request_.seq_length);
    });
  }

  const std::vector<std::string>& notices() const { return notices_; }

 private:
  void use_mock_data() {
    const int64_t eod = config_.eod_token_id.value_or(request_.vocab_size - 1);
    if (eod >= request_.vocab_size)
      raise<ConfigError>("dataset: mock_data ends documents with token {}, beyond vocab_size={}",
                         eod, request_.vocab_size);
    shared_files_ = {std::make_shared<const MockDocuments>(request_.vocab_size, eod)};
    shared_.prefixes = {shared_files_[0]->name()};
    split_ = MockDocuments::kSplit;
  }

  std::unique_ptr<GptDataset> open_set(size_t set, const Part& part,
                                       std::optional<int64_t> num_samples) const {
    GptDatasetOptions options;
    options.sequences = is_cut_
                            ? require_split(split_, *files_[set], part.split, config_.split_where)
                            : files_[set]->all_sequences();
    options.seq_length = request_.seq_length;
    options.vocab_size = request_.vocab_size;
    options.num_samples = num_samples;
    options.seed = request_.seed;
    options.shuffle = config_.shuffle;
    options.cache.directory = cache_directory(set);
    options.cache.notice = [this](const std::string& text) { notices_ = {text}; };
    auto samples = std::make_unique<GptDataset>(files_[set], options);
    samples->validate_tokens();
    return samples;
  }

  // Beside the data, where nothing else is said. Made-up data has no place of its own.
  std::string cache_directory(size_t set) const {
    if (!config_.cache_directory.empty() || config_.mock_data) return config_.cache_directory;
    return files_[set]->name() + ".cache";
  }

  Samples blend_by_weight(const std::vector<double>& given, const Part& part) const {
    if (!part.num_samples)
      raise<ConfigError>(
          "dataset: full validation reads every sample once, so weights cannot be followed; name "
          "the prefixes without weights or set full_validation=false");
    check_blend_size(given.size(), *part.num_samples);
    const std::vector<double> weights = normalize(given);
    const std::vector<int64_t> targets = blend_targets(weights, *part.num_samples);
    const int64_t size = std::accumulate(targets.begin(), targets.end(), int64_t{0});
    // Megatron normalizes what is normalized, which moves last bits and so the order.
    BlendIndex index = blend(normalize(weights), size);
    const std::vector<int64_t> taken = samples_taken(index, targets.size());
    std::vector<Samples> sets;
    for (size_t d = 0; d < targets.size(); ++d) {
      sets.push_back(open_set(d, part, with_surplus(targets[d], config_.surplus)));
      // Many sets of tiny weight round the size up, and a large set then gives more than its target
      // and the surplus; Megatron stops there with an IndexError.
      if (sets[d]->num_samples() < taken[d]) sets[d] = open_set(d, part, taken[d]);
    }
    return std::make_unique<BlendedSource>(std::move(sets), std::move(index));
  }

  // Without weights every set gives one epoch, in proportion to its size.
  Samples blend_by_size(const Part& part) const {
    std::vector<Samples> sets;
    std::vector<int64_t> sizes;
    for (size_t d = 0; d < files_.size(); ++d) {
      sets.push_back(open_set(d, part, std::nullopt));
      sizes.push_back(sets.back()->num_samples());
    }
    const int64_t total = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
    check_blend_size(sets.size(), std::min(part.num_samples.value_or(total), total));
    if (!part.num_samples)
      return std::make_unique<BlendedSource>(std::move(sets), blend_exhaustive(sizes));
    check_one_epoch_is_enough(part, total);
    const std::vector<double> weights(sizes.begin(), sizes.end());
    return std::make_unique<BlendedSource>(
        std::move(sets), blend(normalize(weights), std::min(*part.num_samples, total)));
  }

  void check_one_epoch_is_enough(const Part& part, int64_t total) const {
    if (part.split != Split::kTrain || !config_.shuffle || *part.num_samples <= total ||
        config_.loader == LoaderKind::kCyclic)
      return;
    raise<ConfigError>(
        "dataset: training takes {} samples, but {} data sets without weights are read once and "
        "hold {}; write weight prefix weight prefix ... to repeat them",
        with_commas(*part.num_samples), files_.size(), with_commas(total));
  }

  const DataConfig& config_;
  const DataRequest& request_;
  std::string split_;
  BlendConfig shared_;  // cut by the split string
  std::vector<Data> shared_files_;
  std::vector<Data> files_;  // of the part being opened
  bool is_cut_ = false;
  mutable std::vector<std::string> notices_;  // one for all parts and sets
};

void check_config(const DataConfig& config, const DataRequest& request) {
  for (const BlendConfig* blend : {&config.data, &config.train, &config.valid, &config.test})
    SEVENFOLD_CHECK(blend->weights.empty() || blend->weights.size() == blend->prefixes.size());
  if (config.mock_data || !config.data.empty()) return;
  if (config.train.empty())
    raise<ConfigError>(
        "dataset: the experiment names no training data; set data_path (or "
        "train_data_path) to a PREFIX made by `sevenfold data prepare`");
  if (request.valid_samples != 0 && config.valid.empty())
    raise<ConfigError>(
        "dataset: train_data_path is set but valid_data_path is not; name validation data "
        "or set eval_iters=0");
}

}  // namespace

DataSources open_data(const DataConfig& config, const DataRequest& request) {
  check_config(config, request);
  PartOpener opener(config, request);
  DataSources sources;
  sources.train = opener.open(config.train, {Split::kTrain, request.train_samples});
  if (request.valid_samples != 0)
    sources.valid = opener.open(config.valid, {Split::kValid, request.valid_samples});
  if (request.test_samples != 0 && opener.has_test_part())
    sources.test = opener.open(config.test, {Split::kTest, request.test_samples});
  sources.notices = opener.notices();
  sources.train_text = dynamic_cast<const GptDataset*>(sources.train.get());
  sources.valid_text = dynamic_cast<const GptDataset*>(sources.valid.get());
  return sources;
}

}  // namespace sevenfold
