"""Metal kernels as PyTorch operators; each is called as its MetalKernel was."""

import torch  # before the library: it brings what the library links with

from $name import _C  # loading it registers the operators
from $name.ops import $names

__all__ = [$quoted]
