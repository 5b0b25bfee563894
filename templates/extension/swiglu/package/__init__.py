"""PyTorch operators in Metal, with CPU implementations and gradients."""

import torch  # before the library: it brings what the library links with

from $name import _C  # loading it registers the operators
from $name.ops import swiglu

__all__ = ["swiglu"]
