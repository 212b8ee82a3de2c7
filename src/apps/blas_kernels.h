#pragma once

namespace sevenfold::apps {

// OpenBLAS picks its kernels by processor model when it is loaded, and takes one that it does not
// know (most that are newer than it) for a processor of 2004: products then take four times as long
// or more. Where that has happened, starts this program again with OPENBLAS_CORETYPE=Haswell, the
// AVX2 kernels, and does not return. A value that the user has set is left alone. Call it early in
// main; argv as main got it.
void restart_with_fitting_blas_kernels(char** argv);

}  // namespace sevenfold::apps
