"""Kernels that a person writes: `MetalKernel` takes the body alone, and generates the rest."""

from __future__ import annotations

from porter.kernels.kernel import Kernel, MetalParameter
from porter.kernels.metal_kernel import MetalKernel, metal_kernel

__all__ = ["Kernel", "MetalKernel", "MetalParameter", "metal_kernel"]
