"""Every optimizer of `torch.optim` in each of its implementations, with the arguments of PyTorch's own database."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import nn
from torch.testing._internal.common_optimizers import optim_db

from training.case import OptimizerCase

ABSTRACT: Mapping[str, str] = {"Optimizer": "the base of all optimizers"}
# The implementations that an optimizer may have besides its plain loop; `differentiable` is a loop as well.
_FORMS = ("foreach", "fused")


class Network(nn.Module):
    """Convolution, normalization and a linear layer: parameters of one to four dimensions."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.Tanh(), nn.Flatten(), nn.Linear(48, 2))

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        """Two numbers for each image."""
        result: torch.Tensor = self.layers(value)
        return result

    def example(self, dtype: torch.dtype) -> torch.Tensor:
        """Five images."""
        torch.manual_seed(7)
        return torch.randn(5, 2, 6, 6).to(dtype)


class Matrices(nn.Module):
    """Linear layers without biases, for what trains matrices only."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 8, bias=False), nn.Tanh(), nn.Linear(8, 3, bias=False))

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        """Three numbers for each row."""
        result: torch.Tensor = self.layers(value)
        return result

    def example(self, dtype: torch.dtype) -> torch.Tensor:
        """Five rows."""
        torch.manual_seed(7)
        return torch.randn(5, 6).to(dtype)


class Table(nn.Module):
    """An embedding whose gradients are sparse."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = nn.Embedding(9, 4, sparse=True)

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        """A row for each index."""
        result: torch.Tensor = self.rows(value)
        return result

    def example(self, dtype: torch.dtype) -> torch.Tensor:
        """Indices, one of them twice."""
        return torch.tensor([1, 7, 1, 3])


# What these optimizers take: any parameters unless named here.
_MODELS: Mapping[str, Callable[[], nn.Module]] = {"Muon": Matrices, "SparseAdam": Table}


def names() -> list[str]:
    """Every optimizer that `torch.optim` exports."""
    classes = ((name, getattr(torch.optim, name)) for name in dir(torch.optim))
    return [name for name, each in classes if inspect.isclass(each) and issubclass(each, torch.optim.Optimizer)]


def cases(dtype: torch.dtype, most: int) -> Iterator[OptimizerCase]:
    """At most `most` sets of arguments of each optimizer, in each of its implementations."""
    known: dict[str, Any] = {str(vars(info)["optim_cls"].__name__): info for info in optim_db}
    for name in names():
        info = known.get(name)
        for index in range(min(most, len(_options(info, dtype))) if info else 0):
            yield from _forms(name, info, dtype, index)


def _forms(name: str, info: Any, dtype: torch.dtype, index: int) -> Iterator[OptimizerCase]:
    given = _options(info, dtype)[index].desc
    model = _made_alike(_MODELS.get(name, Network))
    forms = ("", *(form for form in _FORMS if form in info.supported_impls))
    for form in forms:
        yield OptimizerCase(
            name, f"{given}, {form}" if form else given, dtype, info.optim_cls, _chosen(info, dtype, index, form), model
        )
    if info.supports_sparse and not index:
        options = _chosen(info, dtype, index, "")
        yield OptimizerCase(name, f"{given}, sparse gradients", dtype, info.optim_cls, options, _made_alike(Table))


def _options(info: Any, dtype: torch.dtype) -> list[Any]:
    return list(info.optim_inputs_func(device="mps", dtype=dtype))


def _chosen(info: Any, dtype: torch.dtype, index: int, form: str) -> Callable[[], dict[str, Any]]:
    """The keyword arguments of one implementation. The plain loop is asked for where others would be taken instead."""
    named = {each: each == form for each in _FORMS if each in info.supported_impls}
    return lambda: {**_options(info, dtype)[index].kwargs, **named}


def _made_alike(make: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
    def made() -> nn.Module:
        torch.manual_seed(11)
        return make()

    return made
