#include "sevenfold/schedule/render/words.h"

namespace sevenfold {

std::string counted(int64_t count, const char* singular, const char* plural) {
  return std::to_string(count) + " " + (count == 1 ? singular : plural);
}

}  // namespace sevenfold
