#include "dataset/golden.h"

#include <gmock/gmock.h>

#include <set>

namespace sevenfold {
namespace {

std::set<std::string> keys_of(const nlohmann::json& object) {
  std::set<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.insert(key);
  return keys;
}

// A case that comes with another version of the file must not go untested. Where each is tested:
// * rng: order/numpy_random_test.cpp, order/torch_random_test.cpp
// * split: order/split_test.cpp
// * gpt, gpt_variants, final_epoch_sweep: order/sample_index_test.cpp, gpt_dataset_test.cpp
// * blend, blend_exhaustive, blend_sizes: order/blend_test.cpp
// * blend_end_to_end: data_sources_test.cpp
// * sampler, sampler_rank_imbalance, sampler_full_validation: order/sampler_test.cpp
// * masks: batch_test.cpp
// * num_samples: order/samples_needed_test.cpp
// * batch_schedule: order/batch_schedule_test.cpp
// * mock: mock_documents_test.cpp
// * edge (an empty split hangs or aborts): order/split_test.cpp
TEST(MegatronGolden, HoldsNoCaseThatNoTestReads) {
  EXPECT_EQ(keys_of(testing::megatron_golden()),
            (std::set<std::string>{"source", "about", "rng", "split", "gpt", "gpt_variants",
                                   "final_epoch_sweep", "blend", "blend_exhaustive", "blend_sizes",
                                   "blend_end_to_end", "sampler", "sampler_rank_imbalance",
                                   "sampler_full_validation", "masks", "num_samples",
                                   "batch_schedule", "mock", "edge"}));
  EXPECT_EQ(keys_of(testing::megatron_golden()["rng"]),
            (std::set<std::string>{"mt19937_first_8", "shuffle_of_arange", "torch_randperm"}));
}

}  // namespace
}  // namespace sevenfold
