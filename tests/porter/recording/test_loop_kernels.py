"""The kernels of loop nests, run on the host and compared with the graphs in float64."""

from __future__ import annotations

import pytest
import torch

from aten_overlay.apple.mpsgraph.types import MPS
from aten_overlay.toolchain import torch_root
from porter.recording.loop_kernels import check_loop_kernels
from tests.porter.recording.graphs import GraphBuilder
from tests.porter.recording.test_loop_meanings import (
    ARITHMETIC,
    INDEXED,
    PADS,
    RESIZES,
    ROWS,
    VIEWS,
    WINDOWS,
    Case,
    feed,
)  # fmt: skip

INCLUDE = torch_root() / "include"
FAMILIES = {
    "views": VIEWS, "pads": PADS, "rows": ROWS, "indexed": INDEXED, "windows": WINDOWS, "resizes": RESIZES,
    "arithmetic": ARITHMETIC,
}  # fmt: skip
HALF = MPS[torch.float16]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_operations_of_a_family_run_right(family: str) -> None:
    """All in one graph, so that they compile as one unit."""
    torch.manual_seed(0)
    builder = GraphBuilder()
    results = [_send(builder, case) for case in FAMILIES[family]]
    _, differences = check_loop_kernels(builder.run(*results), INCLUDE)
    assert differences == []


def _send(builder: GraphBuilder, case: Case):  # type: ignore[no-untyped-def]
    selector, *arguments = case
    return builder.send(selector, *(feed(builder, each) for each in arguments))


def test_halves_are_computed_in_float_and_rounded_once() -> None:
    builder, x = GraphBuilder(), torch.randn(5, 70).half() * 30
    fed = builder.feed(x)
    squares = builder.send("squareWithTensor", fed)  # of which the sum is beyond half's range on the way
    mean = builder.send("meanOfTensor:axes", squares, [1])
    scaled = builder.send("divisionWithPrimaryTensor:secondaryTensor", fed, builder.send("squareRootWithTensor", mean))
    source, differences = check_loop_kernels(builder.run(scaled), INCLUDE)
    assert differences == []
    assert source.count("static_cast<half>") == 1


def test_rows_longer_and_shorter_than_a_simdgroup() -> None:
    builder = GraphBuilder()
    results = [
        builder.send("softMaxWithTensor:axis", builder.feed(torch.randn(3, size, 2)), 1) for size in (1, 7, 32, 95)
    ]
    _, differences = check_loop_kernels(builder.run(*results), INCLUDE)
    assert differences == []
