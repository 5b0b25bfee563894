"""A kernel, and how a script comes to a call of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from porter.kernels.call import Number
from porter.kernels.metal_kernel import MetalKernel
from porter.kernels.script import Stage
from porter.kernels.torch_metal_kernel import TorchMetalKernel

AnyKernel: TypeAlias = MetalKernel | TorchMetalKernel


@dataclass(frozen=True)
class StageUse:
    """The stage that makes a call, its function that launches the kernel, and the values it was given.

    `call_numbers` are the inputs of the kernel that were numbers.
    """

    stage: Stage
    function: Callable[..., Any]
    values: Mapping[str, Any]
    call_numbers: Mapping[str, Number]
    file: str

    @property
    def numbers(self) -> dict[str, Number]:
        """The values that are numbers."""
        return {name: value for name, value in self.values.items() if not isinstance(value, torch.Tensor)}
