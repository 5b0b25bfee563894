"""Kernels that a person writes: `MetalKernel` takes the body alone, and generates the rest."""

from __future__ import annotations

from porter.kernels.coreai_face import TorchMetalKernel
from porter.kernels.functions import custom_function
from porter.kernels.kernel import Kernel, MetalParameter
from porter.kernels.mlx_face import MetalKernel, metal_kernel
from porter.kernels.references import differentiate

__all__ = [
    "Kernel",
    "MetalKernel",
    "MetalParameter",
    "TorchMetalKernel",
    "custom_function",
    "differentiate",
    "metal_kernel",
]
