"""Operators that write several results to `out=`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch.testing._internal.opinfo.core import SampleInput

import aten_overlay
from porter.verdict.suite import counters, results
from porter.verdict.suite.context import Context, set_context

device = aten_overlay.start()
set_context(Context(bases=("aminmax",)))

from porter.verdict.suite import test_variants as variants  # noqa: E402

TEST = "test_out_aminmax_mps_float32"
SAMPLE = SampleInput(torch.arange(12.0).view(3, 4))
WANT = (SAMPLE.input.amin(1), SAMPLE.input.amax(1))


@dataclass(frozen=True)
class Operator:
    """A call in the place of an OpInfo."""

    call: Callable[..., Any]
    name: str = "aminmax"

    def __call__(self, *given: Any, **named: Any) -> Any:
        return self.call(*given, **named)


@pytest.fixture
def suite() -> Any:
    """One test, of which only what it notes is asked."""
    made = vars(variants)["TestVariantsMPS"](TEST)
    made.elements = made.answers = 0
    return made


@pytest.fixture(autouse=True)
def counted() -> Any:
    counters.install(dict, device.fallbacks)


def write(x: torch.Tensor, out: Any) -> Any:
    torch.amin(x, 1, out=out[0])
    torch.amax(x, 1, out=out[1])
    return out


def write_first(x: torch.Tensor, out: Any) -> Any:
    torch.amin(x, 1, out=out[0])
    return out


def write_densely(x: torch.Tensor, out: Any) -> Any:
    torch.amin(x, 1, out=out[0])
    out[1].as_strided(out[1].shape, (1,), out[1].storage_offset()).copy_(x.amax(1))
    return out


def write_beyond(x: torch.Tensor, out: Any) -> Any:
    out[1].as_strided((4,), out[1].stride(), out[1].storage_offset()).zero_()
    return write(x, out)


@pytest.mark.parametrize(
    ("call", "wrong"),
    [
        (write, []),
        (write_first, ["out= a dense view: ", "out= a strided view: "]),
        (write_densely, ["out= a strided view: "]),
        (write_beyond, ["out= a dense view: wrote outside", "out= a strided view: wrote outside"]),
    ],
)
def test_each_result_is_written_to_its_view_alone(suite: Any, call: Callable[..., Any], wrong: list[str]) -> None:
    suite.guarded_out(Operator(call), torch.float32, SAMPLE, WANT, "mps")
    found = results.get_record(TEST).findings
    told = [each.what for each in found]
    found.clear()
    assert len(told) == len(wrong) and all(map(str.startswith, told, wrong)), told


def test_each_empty_result_takes_the_shape(suite: Any) -> None:
    def resize(x: torch.Tensor, out: Any) -> Any:
        return write(x, [each.resize_(3) for each in out])

    suite.resized_out(Operator(resize), SAMPLE, WANT, "mps")
    with pytest.raises(AssertionError, match="mismatch"):
        suite.resized_out(Operator(lambda x, out: (x, x)), SAMPLE, WANT, "mps")


def test_results_that_the_cpu_writes_to_no_tensors_are_left_out() -> None:
    assert variants.takes_several(write, SAMPLE, WANT)
    assert not variants.takes_several(torch.sum, SAMPLE, WANT)
    assert not variants.takes_several(write, SAMPLE, (*WANT, 1)) and not variants.takes_several(write, SAMPLE, WANT[0])
