"""How operators resample is found from what calls return, by results alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch

from porter.core.dtypes import FLOAT
from porter.metal.forms.resampling import Resampling, Sampling
from porter.recording.calls import OpCall
from porter.recording.forms.windows import find_resampling
from porter.recording.runs import RecordedRun

aten = torch.ops.aten
SIZES = ((5, 7), (7, 3), (4, 4), (3, 11), (9, 5), (2, 8))  # of a dimension, before and after
SCALES = ("scales_h", "scales_w")


def run(overload: Any, arguments: dict[str, Any]) -> RecordedRun:
    call = OpCall(overload, arguments)
    return RecordedRun(call, call.tensors(), (), (call.run(),), False)


def calls(base: str, rank: int, with_scales: bool = True) -> Iterator[RecordedRun]:
    """Calls with and without scales, and corners aligned or not where that can be asked for."""
    overload = getattr(aten, base).default
    schema = {each.name: str(each.type) for each in overload._schema.arguments}
    names = [name for name, type_ in schema.items() if type_ == "Optional[float]"]
    for (before, after), aligned in product(SIZES, (False, True) if "align_corners" in schema else (False,)):
        small, large = [before, before + 1][:rank], [after, after + 2][:rank]
        given: dict[str, Any] = {"output_size": large, "align_corners": aligned}
        if "grad_output" in schema:
            given |= {"grad_output": torch.randn(2, 3, *large), "input_size": [2, 3, *small]}
        else:
            given["self"] = torch.randn(2, 3, *small)
        ratios = dict(zip(names, (b / a for a, b in zip(small, large, strict=True)), strict=True))
        given |= ratios if with_scales and before % 2 else dict.fromkeys(names)
        yield run(overload, {name: given[name] for name in schema})


CASES = {
    "upsample_nearest1d": Resampling(Sampling.NEAREST, "self", ("scales",)),
    "upsample_nearest2d": Resampling(Sampling.NEAREST, "self", SCALES),
    "_upsample_nearest_exact1d": Resampling(Sampling.NEAREST_EXACT, "self", ("scales",)),
    "_upsample_nearest_exact2d": Resampling(Sampling.NEAREST_EXACT, "self", SCALES),
    "upsample_nearest2d_backward": Resampling(Sampling.NEAREST, "grad_output", SCALES, is_gradient=True),
    "_upsample_nearest_exact1d_backward": Resampling(
        Sampling.NEAREST_EXACT, "grad_output", ("scales",), is_gradient=True
    ),
    "upsample_linear1d_backward": Resampling(Sampling.LINEAR, "grad_output", ("scales",), "align_corners", True),
    "upsample_bilinear2d_backward": Resampling(Sampling.LINEAR, "grad_output", SCALES, "align_corners", True),
}


@pytest.mark.parametrize("name", CASES)
def test_how_an_operator_resamples(name: str) -> None:
    found = find_resampling([*calls(name, len(CASES[name].scales))])
    assert found == replace(CASES[name], dtypes=(FLOAT,))


@pytest.mark.parametrize("name", ["upsample_bicubic2d", "upsample_bilinear2d", "upsample_bicubic2d_backward"])
def test_what_is_no_resampling_of_these(name: str) -> None:
    assert find_resampling([*calls(name, 2)]) is None


def shift_result(ran: RecordedRun) -> RecordedRun:
    return replace(ran, results=(ran.results[0] + 1,))


def test_a_call_may_differ_where_the_cpu_does_not() -> None:
    runs = [*calls("upsample_nearest1d", 1)]
    assert find_resampling([shift_result(runs[0]), *runs[1:]]) is not None


def test_most_calls_have_to_agree() -> None:
    runs = [*calls("upsample_nearest1d", 1)]
    assert find_resampling([*map(shift_result, runs[:2]), *runs[2:]]) is None


def test_few_calls_show_nothing() -> None:
    assert find_resampling([*calls("upsample_nearest1d", 1)][:4]) is None


def test_a_scale_that_no_argument_gives_is_not_computed() -> None:
    """One dimension's scale for the other's, as a swap of two arguments would have it."""

    def swap(ran: RecordedRun) -> RecordedRun:
        given = ran.call.arguments
        swapped = {**given, "scales_h": given["scales_w"], "scales_w": given["scales_h"]}
        made = OpCall(ran.call.overload, swapped).run()
        return replace(ran, results=(made,))

    def make(sizes: Sequence[int]) -> RecordedRun:
        given = {"self": torch.randn(2, 3, *sizes), "output_size": [s * 3 for s in sizes]}
        return run(aten.upsample_nearest2d.default, {**given, "scales_h": 3.0, "scales_w": 1.3})

    runs = [make((size, size + 1)) for size in range(4, 10)]
    assert find_resampling(runs) is not None
    assert find_resampling([*map(swap, runs)]) is None


def test_a_resampling_is_printed() -> None:
    assert [*CASES["upsample_linear1d_backward"].describe()] == [
        "result = sum of the elements of grad_output that read it, by their share",
        "in each of the dimensions -1 by scales: the two elements around (i + 0.5) * ratio - 0.5, by distance",
        "with align_corners: the two elements around i * ratio",
    ]
