#pragma once

#include <string>

namespace sevenfold::bench {

// "model name" of the first processor and the instruction set that the loops use, for the heading.
std::string processor_name();

}  // namespace sevenfold::bench
