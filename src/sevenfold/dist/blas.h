#pragma once

namespace sevenfold {

// Prepares the BLAS that LibTorch uses for ranks that are threads: one BLAS thread per call, for
// parallel ranks already use the cores. Throws ConfigError for OpenBLAS built without threads: it
// computes wrong results when several threads call it at once. Another BLAS than OpenBLAS is left
// alone.
void prepare_blas_for_rank_threads();

// OpenBLAS picks its kernels by processor model when it is loaded, and takes one that it does not
// know (most that are newer than it) for a processor of 2004: products then take four times as long
// or more. Where that has happened, starts this program again with OPENBLAS_CORETYPE=Haswell, the
// AVX2 kernels, and does not return. A value that the user has set is left alone. Call it early in
// main; argv as main got it.
void restart_with_fitting_blas_kernels(char** argv);

}  // namespace sevenfold
