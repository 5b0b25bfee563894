"""What is trained: a module or an optimizer with its arguments, made anew for each side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class ModuleCase:
    """A module's class and what it is called with. `make` and `inputs` build both on the CPU, the same each time."""

    name: str
    variant: str
    dtype: torch.dtype
    training: bool
    make: Callable[[], torch.nn.Module]
    inputs: Callable[[], tuple[tuple[Any, ...], Mapping[str, Any]]]


@dataclass(frozen=True)
class OptimizerCase:
    """An optimizer's class, its keyword arguments, and the model whose parameters it changes."""

    name: str
    variant: str
    dtype: torch.dtype
    make: Callable[..., torch.optim.Optimizer]
    options: Callable[[], dict[str, Any]]
    model: Callable[[], torch.nn.Module]


Case = ModuleCase | OptimizerCase
