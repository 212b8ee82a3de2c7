#pragma once

#include <cstdint>
#include <string>

namespace sevenfold {

// "1 micro batch", "8 micro batches".
std::string counted(int64_t count, const char* singular, const char* plural);

}  // namespace sevenfold
