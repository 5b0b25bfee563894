"""Metal for an NVIDIA GPU: to PTX by clang alone, without a GPU or a CUDA toolkit."""
