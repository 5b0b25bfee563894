"""When a call needs its operator: while anything would see it there."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest
import torch
from torch.autograd import forward_ad
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from porter.kernels.repeated import is_watched


class FunctionMode(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class DispatchMode(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class Own(torch.Tensor):
    pass


def test_nothing_sees_plain_tensors_and_numbers() -> None:
    assert not is_watched([torch.ones(3), 2, None])
    assert not is_watched([])


@pytest.mark.parametrize(
    "context", [FunctionMode, DispatchMode, forward_ad.dual_level, torch.autograd.profiler.profile]
)
def test_what_sees_operators_is_not_left_out(context: Callable[[], AbstractContextManager[Any]]) -> None:
    with context():
        assert is_watched([torch.ones(3)])
    assert not is_watched([torch.ones(3)])


def test_transforms_and_traces_are_not_left_out() -> None:
    seen: list[bool] = []

    def note(x: torch.Tensor) -> torch.Tensor:
        seen.append(is_watched([x]))
        return x * 2

    torch.func.vmap(note)(torch.ones(2, 3))
    torch.func.jvp(note, (torch.ones(3),), (torch.ones(3),))
    torch.jit.trace(note, torch.ones(3), check_trace=False)
    assert seen == [True] * len(seen)
    assert len(seen) >= 3


@pytest.mark.parametrize(
    ("context", "watched"), [(nullcontext, True), (torch.no_grad, False), (torch.inference_mode, False)]
)
def test_a_gradient_needs_the_operator(context: Callable[[], AbstractContextManager[Any]], watched: bool) -> None:
    parameter = torch.nn.Parameter(torch.ones(3))
    with context():
        assert is_watched([parameter, torch.ones(3)]) is watched


def test_a_subclass_needs_the_operator() -> None:
    assert is_watched([torch.ones(3).as_subclass(Own)])
