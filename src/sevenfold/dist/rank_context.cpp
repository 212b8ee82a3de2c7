#include "sevenfold/dist/rank_context.h"

#include "sevenfold/core/error.h"

namespace sevenfold {

Communicator& RankContext::group(const std::string& name) const {
  const auto found = groups.find(name);
  if (found == groups.end()) {
    std::string known;
    for (const auto& [each, communicator] : groups) known += (known.empty() ? "" : ", ") + each;
    raise<InternalError>("dist: rank {} has no group \"{}\"; it has: {}", rank, name, known);
  }
  return *found->second;
}

}  // namespace sevenfold
