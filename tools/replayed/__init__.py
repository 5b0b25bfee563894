"""Families of PyTorch's kernels, and arguments that they can be called with."""
