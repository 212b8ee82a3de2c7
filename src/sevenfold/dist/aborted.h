#pragma once

#include "sevenfold/core/error.h"

namespace sevenfold {

// Another rank has failed and this one is told to leave. Secondary: run_ranks drops it and reports
// the failure that came first. Let it pass; never catch it to go on.
class Aborted : public CommError {
 public:
  using CommError::CommError;
};

}  // namespace sevenfold
