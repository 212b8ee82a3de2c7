#include "dataset/golden.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>
#include <stdexcept>
#include <string_view>

#include "sevenfold/core/random.h"
#include "sevenfold/dataset/batch.h"
#include "sevenfold/dataset/order/split.h"

namespace sevenfold::testing {

const nlohmann::json& megatron_golden() {
  static const nlohmann::json golden =
      nlohmann::json::parse(read_text(SEVENFOLD_SOURCE_DIR "/tests/golden/megatron-data.json"));
  return golden;
}

std::string fnv1a64_of(std::span<const int64_t> values) {
  const auto* bytes = reinterpret_cast<const char*>(values.data());
  return fmt::format("{:016x}", fnv1a64(std::string_view(bytes, values.size() * sizeof(int64_t))));
}

void expect_array(std::span<const int64_t> values, const nlohmann::json& entry) {
  if (entry.contains("count")) {
    EXPECT_EQ(values.size(), entry["count"].get<size_t>());
  }
  EXPECT_EQ(fnv1a64_of(values), entry["fnv1a64"].get<std::string>());
  const auto expect_part = [&](const char* name, auto begin_of) {
    if (!entry.contains(name)) return;
    const auto part = entry[name].get<std::vector<int64_t>>();
    ASSERT_GE(values.size(), part.size());
    const auto begin = begin_of(static_cast<ptrdiff_t>(part.size()));
    EXPECT_EQ(std::vector<int64_t>(begin, begin + static_cast<ptrdiff_t>(part.size())), part)
        << name;
  };
  expect_part("values", [&](ptrdiff_t) { return values.begin(); });
  expect_part("first", [&](ptrdiff_t) { return values.begin(); });
  expect_part("last", [&](ptrdiff_t count) { return values.end() - count; });
}

std::vector<int64_t> flatten(std::span<const SampleStart> starts) {
  std::vector<int64_t> flat;
  for (const SampleStart& start : starts) {
    flat.push_back(start.position);
    flat.push_back(start.offset);
  }
  return flat;
}

std::vector<int64_t> tokens_then_labels(const SampleSource& samples, int64_t count) {
  std::vector<int64_t> all;
  for (int64_t k = 0; k < count; ++k) {
    const TokenBatch batch = read_batch(samples, std::array{k}, {});
    all.insert(all.end(), batch.inputs.begin(), batch.inputs.end());
    all.insert(all.end(), batch.labels.begin(), batch.labels.end());
  }
  return all;
}

std::shared_ptr<const IndexedDataset> open_fixture(const TemporaryDirectory& directory,
                                                   const std::string& name) {
  const std::string prefix = directory / name;
  if (name == "D1") {
    write_d1(prefix);
  } else if (name == "D2") {
    write_d2(prefix);
  } else if (name == "D3") {
    write_d3(prefix);
  } else if (name == "D4") {
    write_d4(prefix);
  } else if (name == "D7") {
    write_d7(prefix);
  } else {
    throw std::runtime_error("no fixture " + name);
  }
  return std::make_shared<const IndexedDataset>(prefix);
}

GoldenCase golden_case(const TemporaryDirectory& directory, const nlohmann::json& entry) {
  GoldenCase result;
  result.data = open_fixture(directory, entry["dataset"]);
  const std::string which = entry["which"];
  const Split part = which == "train"   ? Split::kTrain
                     : which == "valid" ? Split::kValid
                                        : Split::kTest;
  result.sequences = require_split(entry["split"], *result.data, part);
  result.options.seq_length = entry["seq_length"];
  result.options.seed = entry["seed"];
  if (!entry["num_samples"].is_null()) result.options.num_samples = entry["num_samples"];
  result.options.drop_last = entry.value("drop_last_partial_validation_sequence", true);
  result.options.extra_token = entry.value("add_extra_token_to_sequence", true);
  return result;
}

SampleIndex GoldenCase::build() const {
  return build_sample_index(
      data->prefix(), [this](int64_t sequence) { return data->sequence_length(sequence); },
      sequences, options);
}

}  // namespace sevenfold::testing
