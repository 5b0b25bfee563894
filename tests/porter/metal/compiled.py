"""Kernels that tests write, for their values: compiled soon, as verdicts do, and once in a process."""

from __future__ import annotations

from functools import cache

from aten_overlay.metal.build import QUICK, Options, compile_kernels
from aten_overlay.metal.launch import Library
from aten_overlay.toolchain import torch_root


@cache
def compile_soon(source: str, *names: str) -> Library:
    """Kernels of a source that includes headers of torch's alone."""
    options = Options(include=(torch_root() / "include",), optimization=QUICK)
    return Library(compile_kernels(source, names, options))
