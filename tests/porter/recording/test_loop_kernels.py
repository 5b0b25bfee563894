"""The kernels of loop nests, run on the host and compared with the graphs in float64."""

from __future__ import annotations

import re

import pytest
import torch

from aten_overlay.apple.mpsgraph.types import MPS
from aten_overlay.toolchain import torch_root
from porter.core.errors import PorterError
from porter.metal.codegen.kernel import join_simdgroup
from porter.metal.loop_spelling import Spelling
from porter.metal.loop_text import write_nest
from shared.loop_forms import check_loop_form
from tests.porter.recording.graphs import GraphBuilder
from tests.porter.recording.loop_kernels import check_loop_kernels
from tests.porter.recording.test_loop_meanings import (
    ARITHMETIC,
    GRID,
    GRIDS,
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
    "grids": GRIDS, "arithmetic": ARITHMETIC,
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


def test_coordinates_of_elements_that_are_moved_are_computed_in_float() -> None:
    builder = GraphBuilder()
    images, grid = builder.feed(torch.randn(1, 2, 4, 5)), builder.feed(torch.rand(1, 3, 2, 2) * 2 - 1)
    made = builder.send(f"{GRID}:nearestRoundingMode:constantValue", images, grid, 0, True, False, False, 4, 4, 0.0)
    [nest], _ = check_loop_form(builder.run(made))
    buffers = [nest.stores[0].buffer, *nest.reads()]
    names = {buffer: f"b{i}" for i, buffer in enumerate(buffers)}
    spelling = Spelling(names, dict.fromkeys(buffers, "T"), lambda dtype: dtype.metal, join_simdgroup)
    text = "\n".join(write_nest(nest, spelling))
    assert text.count("static_cast<float>(b") == 2
    assert re.findall(r"\bT\(.*?\)", text) == ["T(0)"]  # outside of the image


def test_rows_longer_and_shorter_than_a_simdgroup() -> None:
    builder = GraphBuilder()
    results = [
        builder.send("softMaxWithTensor:axis", builder.feed(torch.randn(3, size, 2)), 1) for size in (1, 7, 32, 95)
    ]
    _, differences = check_loop_kernels(builder.run(*results), INCLUDE)
    assert differences == []


def test_parts_of_complex_numbers_are_reduced_as_real_numbers() -> None:
    builder = GraphBuilder()
    fed = builder.feed(torch.randn(5, 70, dtype=torch.complex64) + 3)
    parts = [builder.send(f"{part}PartOfTensor", fed) for part in ("real", "imaginary")]
    spread = [builder.send("varianceOfTensor:axes", each, [1]) for each in parts]
    variance = builder.send("additionWithPrimaryTensor:secondaryTensor", *spread)
    mean = builder.send("meanOfTensor:axes", fed, [1])
    source, differences = check_loop_kernels(builder.run(variance, mean), INCLUDE)
    assert differences == []
    assert "device const float2* b2" in source


@pytest.mark.parametrize("selector", ["squareWithTensor", "exponentWithTensor"])
def test_operations_that_mix_the_parts_of_complex_numbers_have_no_loop_form(selector: str) -> None:
    builder = GraphBuilder()
    mixed = builder.send(selector, builder.feed(torch.randn(3, dtype=torch.complex64)))
    with pytest.raises(PorterError, match="complex elements has no loop form"):
        check_loop_form(builder.run(mixed))
