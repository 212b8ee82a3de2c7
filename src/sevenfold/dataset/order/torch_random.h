#pragma once

#include <cstdint>
#include <vector>

namespace sevenfold {

// torch.randperm changes its rule at this size, from torch 2 on.
inline constexpr int64_t kTorchInsideOutFrom = 214'748'364;

// torch.randperm(n) of a CPU generator with manual_seed(seed): MT19937, values are torch's, bit for
// bit. Only the low 32 bits of the seed count. From `inside_out_from` elements on the newer rule
// holds (two words a draw); torch 1.13 has the older one at every size, which INT64_MAX gives.
std::vector<int64_t> torch_randperm(int64_t n, uint64_t seed,
                                    int64_t inside_out_from = kTorchInsideOutFrom);

}  // namespace sevenfold
