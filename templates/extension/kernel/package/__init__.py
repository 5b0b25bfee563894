"""Metal kernels as PyTorch operators; each is called as its MetalKernel was."""

from importlib.util import find_spec

import torch  # before the library: it brings what the library links with

if find_spec("$name._C") is None:
    raise ImportError(
        "these are the sources of $name, which are not built: run `python setup.py build_ext --inplace` beside them, "
        "or install $name and import it from another folder"
    )
from $name import _C  # loading it registers the operators
from $name.ops import $names

__all__ = [$quoted]
