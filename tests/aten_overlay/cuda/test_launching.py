"""Metal's grids as launches on a GPU."""

from __future__ import annotations

import struct
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aten_overlay.errors import OverlayError
from aten_overlay.metal.cuda.launching import SHARED_LIMIT, plan_launch
from aten_overlay.metal.cuda.module import Entry, Parameter

FORMS = {form: f"f__{form}" for form in ("grid", "flat", "several")}
TILE = Parameter("tile", "threadgroup", 0, 4, 4, 4, 4, True)
OTHER = Parameter("other", "threadgroup", 2, 4, 4, 4, 4, True)
ENTRY = Entry("f", FORMS, 8, (TILE, OTHER), 512, 1024, False)
LENGTHS = {0: 20, 2: 32}
DIMENSION = st.integers(1, 2**20)


@pytest.mark.parametrize(
    ("form", "grid", "group", "symbol", "blocks"),
    [
        ("several", (10000,), (256,), "f__several", (5, 1, 1)),
        ("several", (2**31,), (256,), "f__flat", (2**23, 1, 1)),
        ("several", (100, 2), (32,), "f__grid", (4, 2, 1)),
        ("flat", (100,), (32,), "f__flat", (4, 1, 1)),
        ("flat", (2**32 - 1,), (1,), "f__grid", None),
        ("grid", (7, 65535, 3), (8, 1, 1), "f__grid", (1, 65535, 3)),
        ("grid", (7, 65536, 3), (8, 1, 1), "f__grid", (65536 * 3, 1, 1)),
    ],
)
def test_the_form_and_blocks_of_a_grid(
    form: str, grid: tuple[int, ...], group: tuple[int, ...], symbol: str, blocks: tuple[int, int, int] | None
) -> None:
    if blocks is None:
        with pytest.raises(OverlayError, match="too many"):
            plan_launch(ENTRY, form, grid, group, LENGTHS)
        return
    launch = plan_launch(ENTRY, form, grid, group, LENGTHS)
    assert (launch.symbol, launch.blocks, launch.threads) == (symbol, blocks, prod(group))


@given(st.tuples(DIMENSION, DIMENSION, DIMENSION), st.tuples(*[st.integers(1, 8)] * 3))
def test_there_is_a_block_for_every_threadgroup(grid: tuple[int, int, int], group: tuple[int, int, int]) -> None:
    counts = [-(-n // m) for n, m in zip(grid, group, strict=True)]
    try:
        launch = plan_launch(ENTRY, "grid", grid, group, LENGTHS)
    except OverlayError as error:
        assert error.code == "PTR383"
        assert prod(counts) > (2**31 - 1) * 65535
        return
    assert prod(launch.blocks) >= prod(counts)
    assert max(launch.blocks[1:]) <= 65535 and launch.blocks[0] < 2**31
    assert struct.unpack("<9I", launch.sizes) == (*grid, *group, *counts)
    assert launch.blocks == tuple(counts) or prod(launch.blocks) < prod(counts) + launch.blocks[1]


def test_threadgroup_arguments_follow_each_other() -> None:
    launch = plan_launch(ENTRY, "grid", (64,), (64,), LENGTHS)
    assert (launch.offsets, launch.dynamic_bytes) == ({0: 0, 2: 32}, 64)


@pytest.mark.parametrize(
    ("group", "grid", "lengths", "what"),
    [
        ((1024,), (2048,), LENGTHS, "takes 512"),
        ((0,), (10,), LENGTHS, "cannot run"),
        ((1,), (0,), LENGTHS, "cannot run"),
        ((1,), (2**32,), LENGTHS, "cannot run"),
        ((1,), (10,), {0: 16}, "no length for threadgroup argument 2"),
        ((1,), (10,), {0: SHARED_LIMIT, 2: 16}, "bytes of threadgroup memory"),
    ],
)
def test_what_cannot_be_launched(
    group: tuple[int, ...], grid: tuple[int, ...], lengths: dict[int, int], what: str
) -> None:
    with pytest.raises(OverlayError, match=what) as raised:
        plan_launch(ENTRY, "grid", grid, group, lengths)
    assert raised.value.code == "PTR383"
