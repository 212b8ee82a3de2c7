// Owns the precompiled LibTorch header that the torch targets reuse.
