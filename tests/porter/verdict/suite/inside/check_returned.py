"""Results that are given: one that differs where it is returned too is the device's own, another has to match."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.testing._internal.opinfo.core import SampleInput

import aten_overlay
from porter.verdict.suite.overloads import Returned, call_overload
from porter.verdict.suite.variations.outs import place_apart

aten_overlay.start()
ROW = "native_layer_norm.out"


class Suite(Returned):
    """One test, of which only the comparison is asked."""

    opinfos: Any = SimpleNamespace(
        tolerances=lambda *_: {"rtol": 1e-5, "atol": 1e-5},
        context=SimpleNamespace(through=(), through_backward=(), has_before=False, flushes=False),
    )
    elements = answers = 0

    def test_outs(self) -> None: ...


@pytest.fixture
def sample() -> SampleInput:
    x = torch.randn(3, 4)
    outs = {f"out{at}": place_apart(torch.empty(3, size)) for at, size in enumerate((4, 1, 1))}
    args = ([4], None, None, 1e-5)
    return SampleInput(x, args=args, kwargs={**outs, "overload": ROW})


@pytest.fixture
def leaving() -> Iterator[None]:
    """A device that leaves the mean and the deviation to itself where it returns them."""
    library = torch.library.Library("aten", "IMPL")

    def normalize(x: Any, shape: Any, weight: Any, bias: Any, eps: float) -> Any:
        result, *others = torch.native_layer_norm(x.cpu(), shape, weight, bias, eps)
        return result.to("mps"), *(torch.full_like(each, 7).to("mps") for each in others)

    library.impl("native_layer_norm", normalize, "MPS")
    yield
    library._destroy()


def compare(sample: SampleInput, *wrong: int) -> None:
    want = call_overload(sample.input, *sample.args, **sample.kwargs)
    got = tuple(each.clone().fill_(7) if at in wrong else each.clone() for at, each in enumerate(want))
    on_device = tuple(each.to("mps") for each in got)
    Suite("test_outs").same_where_returned(call_overload, torch.float32, sample, on_device, want)  # type: ignore[arg-type, no-untyped-call]


def test_a_result_that_differs_only_where_it_is_given_is_wrong(sample: SampleInput) -> None:
    compare(sample)
    with pytest.raises(AssertionError):
        compare(sample, 1)


@pytest.mark.usefixtures("leaving")
def test_a_result_that_differs_where_it_is_returned_too_is_not_compared(sample: SampleInput) -> None:
    compare(sample, 1, 2)
    with pytest.raises(AssertionError, match="result 0"):
        compare(sample, 0, 1)


class Operator:
    """What an OpInfo's operator ends in, by its name."""

    def __init__(self, name: str) -> None:
        self.name = self.aten_name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return call_overload(*args, **kwargs)


@pytest.mark.parametrize(("name", "is_hidden"), [("nn.functional.layer_norm", True), ("native_layer_norm", False)])
def test_a_result_that_differs_as_recorded_is_not_compared_where_arguments_vary(name: str, is_hidden: bool) -> None:
    row = "native_layer_norm"
    sample = SampleInput(torch.randn(3, 4), args=([4], None, None, 1e-5), kwargs={"overload": row})
    want = call_overload(sample.input, *sample.args, **sample.kwargs)
    suite: Any = Suite("test_outs")  # type: ignore[no-untyped-call]
    op = Operator(name)

    def compare_call(label: str, *wrong: int) -> None:
        got = tuple((each.clone().fill_(7) if at in wrong else each.clone()).to("mps") for at, each in enumerate(want))
        suite.same_where_returned(op, torch.float32, sample, got, want, label)

    varied = f"{row} with eps=1: "
    with pytest.raises(AssertionError):
        compare_call(varied, 1)
    if is_hidden:
        compare_call(f"{row} as recorded: ", 1)
        compare_call(varied, 1)
    else:
        with pytest.raises(AssertionError):
            compare_call(f"{row} as recorded: ", 1)
    for wrong in (0, 2):
        with pytest.raises(AssertionError):
            compare_call(varied, wrong)
