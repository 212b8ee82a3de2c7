#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "sevenfold/dataset/indexed/indexed_dataset.h"
#include "sevenfold/dataset/order/sample_index.h"
#include "sevenfold/dataset/sample_source.h"
#include "support/fixtures.h"

namespace sevenfold::testing {

// Values that Megatron-LM's own modules gave (tests/golden/megatron-data.json).
const nlohmann::json& megatron_golden();

// Compares values with an array of the golden file: "count", "fnv1a64" and whichever of "values",
// "first" and "last" it holds.
void expect_array(std::span<const int64_t> values, const nlohmann::json& entry);

// 64-bit FNV-1a over the values as little-endian int64, in 16 hex digits: how the golden file names
// an array.
std::string fnv1a64_of(std::span<const int64_t> values);
std::vector<int64_t> flatten(std::span<const SampleStart> starts);

// Inputs, then labels, of samples 0 .. count-1, as the golden file lists them.
std::vector<int64_t> tokens_then_labels(const SampleSource& samples, int64_t count);

// The fixture called "D1", "D2", ..., written into the directory.
std::shared_ptr<const IndexedDataset> open_fixture(const TemporaryDirectory& directory,
                                                   const std::string& name);

// The part of the data set and the options of one entry of "gpt", "gpt_variants" or
// "final_epoch_sweep".
struct GoldenCase {
  std::shared_ptr<const IndexedDataset> data;
  SequenceRange sequences;
  SampleIndexOptions options;

  SampleIndex build() const;
};
GoldenCase golden_case(const TemporaryDirectory& directory, const nlohmann::json& entry);

}  // namespace sevenfold::testing
