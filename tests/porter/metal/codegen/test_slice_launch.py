"""How host code shares rows among threads, compiled and called."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from itertools import product
from types import SimpleNamespace
from typing import cast

import pytest

from aten_overlay.toolchain import build, torch_flags
from porter.loops.expressions import ReductionKind
from porter.metal.codegen.kernel import NativeKernel
from porter.metal.codegen.slice_launch import SlicedRows, write_helper

SIZES = (1, 2, 7, 31, 32, 33, 64, 1000, 1024, 1025, 65_535, 65_536, 100_003, 10**6, 10**8, 2**31 + 5)
Share = Callable[..., tuple[int, int]]
ENTRY = """
extern "C" void share(int64_t rows, int64_t length, bool are_adjacent, int64_t group_size, int64_t* result) {
  const auto threads = share_rows(rows, length, are_adjacent, group_size);
  result[0] = threads.lanes;
  result[1] = threads.slices;
}
"""


@pytest.fixture(scope="module")
def share(tmp_path_factory: pytest.TempPathFactory) -> Share:
    """The helper of host files, without what dispatches."""
    source = tmp_path_factory.mktemp("share") / "share.cpp"
    choice = write_helper(threadgroup_reductions=True).partition("static void dispatch_rows")[0]
    source.write_text(f"#include <ATen/ceil_div.h>\n#include <algorithm>\n#include <cstdint>\n{choice}{ENTRY}")
    library = ctypes.CDLL(str(build("share", [source], ["-std=c++20", *torch_flags()])))

    def call(rows: int, length: int, are_adjacent: bool, group_size: int = 256) -> tuple[int, int]:
        result = (ctypes.c_int64 * 2)()
        sizes = map(ctypes.c_int64, (rows, length))
        library.share(*sizes, ctypes.c_bool(are_adjacent), ctypes.c_int64(group_size), result)
        return result[0], result[1]

    return call


def list_rows() -> Iterator[tuple[int, int, bool]]:
    yield from product(SIZES, (0, *SIZES), (False, True))


def test_no_thread_has_more_than_256_elements(share: Share) -> None:
    for each in list_rows():
        lanes, slices = share(*each)
        assert (lanes == 1 or lanes % 32 == 0) and lanes <= 256 and slices >= 1
        assert lanes * slices * 256 >= each[1]


def test_a_slice_has_32_elements_of_a_thread(share: Share) -> None:
    for each in list_rows():
        lanes, slices = share(*each)
        assert slices == 1 or lanes * slices * 32 <= each[1]


def test_indices_and_the_width_of_a_grid_fit_in_32_bits(share: Share) -> None:
    for each in (each for each in list_rows() if each[1] <= 2**30):
        lanes, slices = share(*each)
        assert each[1] + lanes * slices < 2**31


@pytest.mark.parametrize(
    ("partial", "has_long", "has_floating", "asked"),
    [
        ("long", False, True, "32"),
        ("float", True, True, ""),
        ("c10::metal::accum_t<T>", True, True, "isIntegralType(self.scalar_type(), /*includeBool=*/true) ? 32 : 256"),
        ("c10::metal::accum_t<T>", True, False, "32"),
        ("c10::metal::accum_t<T>", False, True, ""),
    ],
)
def test_a_simdgroup_sums_64_bit_integers(
    share: Share, partial: str, has_long: bool, has_floating: bool, asked: str
) -> None:
    """Of several, c10::metal::threadgroup_sum has as many lanes shuffle as there are, which read from inactive ones."""
    sums = [SimpleNamespace(type=partial, found_in=None, kind=ReductionKind.SUM)]
    elements = SimpleNamespace(has_long=has_long, has_floating=has_floating)
    kernel = cast(NativeKernel, SimpleNamespace(uses_reductions=True, partials=sums, elements=elements))
    group_size = SlicedRows(kernel, "", "rows", "length", "", "", {"T": "self"}).group_size
    assert group_size == (f"/*group_size=*/{asked}" if asked else "")
    assert {share(*each, 32)[0] for each in list_rows()} == {1, 32}


def test_the_size_of_a_row_chooses_its_threads(share: Share) -> None:
    assert share(10**6, 20, False) == (1, 1)
    assert share(10**4, 1000, False) == (32, 1)
    assert share(1000, 2000, False) == (128, 1)  # of 16 elements a thread
    assert share(1000, 50_000, False) == (256, 2)
    assert share(1, 65_535, False) == (256, 7)
    assert share(1, 65_536, False) == (256, 8)
    assert share(1, 10**8, False) == (256, 2048)
    assert share(2, 10**8, False) == (256, 1526)  # of 256 elements a thread
    assert share(1000, 1000, True) == (1, 31)
    assert share(10**6, 1000, True) == (1, 4)
    assert share(32, 1000, True) == (32, 1)  # too few elements for a second launch
