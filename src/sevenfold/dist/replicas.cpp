#include "sevenfold/dist/replicas.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>

#include "sevenfold/core/error.h"
#include "sevenfold/dist/ledger.h"

namespace sevenfold {
namespace {

// The finaliser of SplitMix64: every input bit flips every output bit with probability one half.
uint64_t mix(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

}  // namespace

uint64_t hash_bits(const at::Tensor& tensor) {
  SEVENFOLD_CHECK(tensor.is_contiguous() && tensor.device().is_cpu(),
                  "replica check needs a contiguous CPU tensor");
  const auto* bytes = static_cast<const char*>(tensor.data_ptr());
  const size_t num_bytes = tensor.nbytes();
  uint64_t hash = mix(num_bytes * 256 + static_cast<uint64_t>(tensor.scalar_type()) + 1);
  // Words are mixed with their position and added: no chain from word to word, so the loop is fast.
  for (size_t offset = 0; offset < num_bytes; offset += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes + offset, std::min(sizeof(word), num_bytes - offset));
    hash += mix(word ^ mix(offset + 0x9e3779b97f4a7c15u));
  }
  return mix(hash);
}

bool bits_equal_over(Communicator& group, const at::Tensor& tensor) {
  if (group.size() == 1) return true;
  const auto hash = static_cast<int64_t>(hash_bits(tensor));
  // max(h) and max(~h) = ~min(h): equal members exactly if the greatest is the least.
  MemoryScope scope(MemoryCategory::kCommunication);
  at::Tensor extremes = at::empty({2}, at::kLong);
  extremes.data_ptr<int64_t>()[0] = hash;
  extremes.data_ptr<int64_t>()[1] = ~hash;
  group.all_reduce_max(extremes).wait();
  return extremes.data_ptr<int64_t>()[0] == ~extremes.data_ptr<int64_t>()[1];
}

}  // namespace sevenfold
