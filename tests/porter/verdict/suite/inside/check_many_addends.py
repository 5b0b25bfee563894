"""Sums of many addends: which samples have some, and that a kernel which adds them up in 16 bits is found."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

import aten_overlay
from porter.verdict.suite import counters, results
from porter.verdict.suite.sums import Sums
from porter.verdict.suite.variations.many_addends import adds_many, is_linear, list_many

device = aten_overlay.start()
HALVES = (torch.float16, torch.bfloat16)


def add_up(addends: torch.Tensor, in_half: bool) -> torch.Tensor:
    """The sum over the first dimension, one by one as a thread adds up, in 32 bits or in the addends' own type."""
    total = torch.zeros_like(addends[0], dtype=addends.dtype if in_half else torch.float32)
    for addend in addends.cpu():
        total = total.cpu() + addend.to(total.dtype)
    return total.to(addends.device, addends.dtype)


class Windows(torch.autograd.Function):
    """Means of windows of a vector; the gradient of an element is the sum over the windows that it lies in."""

    @staticmethod
    def forward(context: Any, x: torch.Tensor, size: int, in_half: bool) -> torch.Tensor:
        context.size, context.in_half, context.shape = size, in_half, x.shape
        return x.unfold(-1, size, 1).float().mean(-1).to(x.dtype)

    @staticmethod
    def backward(context: Any, *slopes: torch.Tensor) -> Any:
        [slope] = slopes
        padded = torch.nn.functional.pad(slope / context.size, (context.size - 1, context.size - 1))
        return add_up(padded.unfold(-1, context.size, 1).movedim(-1, 0), context.in_half), None, None


class Rows(torch.autograd.Function):
    """Elements of a vector at indices; the gradient of one is the sum over the indices that name it."""

    @staticmethod
    def forward(context: Any, x: torch.Tensor, index: torch.Tensor, in_half: bool) -> torch.Tensor:
        context.index, context.in_half, context.shape = index, in_half, x.shape
        return x[index.to(x.device)]

    @staticmethod
    def backward(context: Any, *slopes: torch.Tensor) -> Any:
        [slope] = slopes
        named = context.index.to(slope.device)[:, None] == torch.arange(context.shape[0], device=slope.device)
        return add_up(named.to(slope.dtype) * slope[:, None], context.in_half), None, None


class Totals(torch.autograd.Function):
    """Sums of columns, whose gradient is expanded."""

    @staticmethod
    def forward(context: Any, x: torch.Tensor, in_half: bool) -> torch.Tensor:
        context.shape = x.shape
        return add_up(x, in_half)

    @staticmethod
    def backward(context: Any, *slopes: torch.Tensor) -> Any:
        return slopes[0].expand(context.shape), None


class Suite(Sums):
    """One test, of which only what it notes is asked."""

    opinfos: Any = SimpleNamespace(
        context=SimpleNamespace(
            through=(), through_backward=(), count_ported=lambda _: 1, has_before=False, flushes=False
        )
    )
    elements = answers = 0

    def test_sums(self) -> None: ...


@pytest.fixture(autouse=True)
def counted() -> Any:
    counters.install(dict, device.fallbacks)
    yield
    results.get_record("test_sums").findings.clear()


def on_device_alone(function: Callable[..., Any], is_wrong: bool) -> Any:
    """An operator that adds up in 32 bits on the CPU, and on the device unless it is wrong."""
    return lambda x, *rest: function(x, *rest, is_wrong and x.device.type == "mps")


CASES: dict[str, tuple[Any, Any]] = {
    "windows": (Windows.apply, lambda dtype: SampleInput(_draw(2047, dtype), args=(1024,))),
    "rows": (Rows.apply, lambda dtype: SampleInput(_draw(3, dtype), args=(torch.ones(1024, dtype=torch.int64),))),
    "totals": (Totals.apply, lambda dtype: SampleInput(_draw(8192, dtype).view(1024, 8).detach().requires_grad_())),
}


def _draw(size: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.rand(size).to(dtype).requires_grad_()


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_what_is_added_up_in_16_bits_is_found_and_nothing_else(name: str, dtype: torch.dtype) -> None:
    function, make = CASES[name]
    sample: SampleInput = make(dtype)
    for is_wrong in (False, True):
        op = on_device_alone(function, is_wrong)
        assert adds_many(op, sample)
        Suite("test_sums").match_sums(op, sample, "mps")  # type: ignore[no-untyped-call]
        assert bool(results.get_record("test_sums").findings) == is_wrong


def test_what_no_kernel_under_test_computes_is_not_judged() -> None:
    function, make = CASES["totals"]
    suite = Suite("test_sums")  # type: ignore[no-untyped-call]
    suite.opinfos = SimpleNamespace(
        context=SimpleNamespace(through=(), through_backward=(), count_ported=lambda _: 0, flushes=False)
    )
    suite.match_sums(on_device_alone(function, True), make(torch.bfloat16), "mps")
    assert not results.get_record("test_sums").findings


def find(name: str) -> OpInfo:
    return next(op for op in op_db if op.name == name)


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("nn.functional.avg_pool2d", ["windows that overlap"]),
        ("nn.functional.embedding", ["equal indices"]),
        ("index_add", ["equal indices"]),
        ("nn.functional.layer_norm", []),
    ],
)
def test_samples_are_of_linear_operators_that_add_up_many(name: str, labels: list[str]) -> None:
    opinfos: Any = SimpleNamespace(
        grad_dtypes=HALVES,
        reaching_samples=lambda op, dtype, requires_grad: list(
            op.sample_inputs("cpu", dtype, requires_grad=requires_grad)
        ),
    )
    assert [label for label, _ in list_many(opinfos, find(name), torch.float16)] == labels


def test_what_is_linear() -> None:
    sample = SampleInput(torch.rand(3, requires_grad=True), args=(torch.rand(3, requires_grad=True),))
    assert is_linear(torch.add, sample)  # type: ignore[arg-type]
    assert not is_linear(torch.mul, sample)  # type: ignore[arg-type]
    assert not is_linear(torch.maximum, sample)  # type: ignore[arg-type]
    assert not is_linear(lambda x, y: x + y + 1, sample)  # type: ignore[arg-type]
