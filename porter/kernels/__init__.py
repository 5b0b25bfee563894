"""Kernels that a person writes: `MetalKernel` takes the body alone, and generates the rest."""

from __future__ import annotations

from porter.kernels import export
from porter.kernels.compare import Tolerance
from porter.kernels.extension.from_kernels import FORM
from porter.kernels.functions import compile_shader, custom_function
from porter.kernels.kernel import Kernel, MetalParameter
from porter.kernels.metal_kernel import MetalKernel, metal_kernel
from porter.kernels.references import differentiate
from porter.kernels.torch_metal_kernel import TorchMetalKernel

__all__ = [
    "Kernel",
    "MetalKernel",
    "MetalParameter",
    "Tolerance",
    "TorchMetalKernel",
    "compile_shader",
    "custom_function",
    "differentiate",
    "metal_kernel",
]

export.register(FORM)
