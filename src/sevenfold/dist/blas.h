#pragma once

namespace sevenfold {

// Prepares the BLAS that LibTorch uses for ranks that are threads: one BLAS thread per call, for
// parallel ranks already use the cores. Throws ConfigError for OpenBLAS built without threads: it
// computes wrong results when several threads call it at once. Another BLAS than OpenBLAS is left
// alone.
void prepare_blas_for_rank_threads();

}  // namespace sevenfold
