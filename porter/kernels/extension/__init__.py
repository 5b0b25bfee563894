"""C++ extensions of PyTorch for the mps device: complete projects, from a template or from a file's kernels."""
