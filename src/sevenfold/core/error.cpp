#include "sevenfold/core/error.h"

#include <string_view>

namespace sevenfold::internal {

void check_failed(const char* file, int line, const char* condition, const std::string& detail) {
  std::string_view path(file);
  if (const size_t at = path.rfind("src/sevenfold/"); at != std::string_view::npos)
    path.remove_prefix(at + 4);
  raise<InternalError>("internal error at {}:{}: {} does not hold{}{}; please report it", path,
                       line, condition, detail.empty() ? "" : ": ", detail);
}

}  // namespace sevenfold::internal
