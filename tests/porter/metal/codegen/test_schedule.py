"""How host code chooses the instance of a kernel and its threads: compiled, and called for rows of many sizes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from itertools import product

import pytest

from aten_overlay.toolchain import build
from porter.metal.codegen.schedule import Family, RowLaunch, Schedule, choose_schedule
from porter.metal.helpers import read_helper

SCHEDULE = choose_schedule(Family.KEPT_ROWS, neighbors=4)
SIZES = (1, 31, 32, 33, 127, 128, 129, 2048, 4099, 8191, 8192, 8193, 10**6)
STAND_INS = """
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>
namespace at { static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; } }
using NSUInteger = uint64_t;
struct Tensor { int64_t offset; int64_t storage_offset() const { return offset; } };
struct MergedDims { std::vector<int64_t> sizes; std::vector<int64_t> strides; };
"""


def write_entries() -> Iterator[str]:
    launch = RowLaunch(SCHEDULE, "", "rows", "length", "inner", ("inner",), ("length", "stride", "offset"))
    lines = [each.text for each in launch.declare()]
    chosen = next(each for each in launch.dispatch("PSO") if each.startswith("const NSUInteger lanes"))
    yield STAND_INS + read_helper("count_neighbors.mm")
    yield 'extern "C" void choose(int64_t rows, int64_t length, int64_t inner, bool is_long, int64_t* result,'
    yield "            int64_t stride, int64_t offset) {"
    yield 'const std::string index_type = is_long ? "long" : "int";'
    yield from (*lines, chosen.replace("[PSO maxTotalThreadsPerThreadgroup]", "1024"))
    yield "result[0] = count; result[1] = lanes; result[2] = neighbors; }"
    yield 'extern "C" int64_t neighbors(int64_t offset, int64_t stride, int64_t size, int64_t step, int64_t dims) {'
    yield "MergedDims kept{{3}, {stride}}, reduced{std::vector<int64_t>(dims, size), std::vector<int64_t>(dims, step)};"
    yield "return count_neighbors(Tensor{offset}, kept, reduced); }"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    source = tmp_path_factory.mktemp("schedule") / "schedule.cpp"
    source.write_text("\n".join(write_entries()))
    return ctypes.CDLL(str(build("schedule", [source], ["-std=c++20"])))


@pytest.fixture
def choose(library: ctypes.CDLL) -> Callable[..., tuple[int, int, int]]:
    def call(
        rows: int, length: int, inner: int, is_long: bool, stride: int = 0, offset: int = 0
    ) -> tuple[int, int, int]:
        result = (ctypes.c_int64 * 3)()
        numbers = map(ctypes.c_int64, (rows, length, inner))
        library.choose(*numbers, ctypes.c_bool(is_long), result, *map(ctypes.c_int64, (stride, offset)))
        return result[0], result[1], result[2]

    return call


def test_no_row_is_cut_short(choose: Callable[..., tuple[int, int, int]]) -> None:
    for rows, length, inner, is_long in product((1, 65_536), (0, *SIZES), (1, 32), (False, True)):
        count, lanes, width = choose(rows, length, inner, is_long)
        assert (count, width) in SCHEDULE.list_instances() and (width == 1 or length % width == 0)
        assert count in SCHEDULE.counts and (lanes == 1 or (lanes % 32 == 0 and lanes <= 1024))
        assert count == SCHEDULE.any_row or count * lanes >= length


def test_indices_of_64_bits_have_the_instance_for_any_row(choose: Callable[..., tuple[int, int, int]]) -> None:
    assert choose(7, 100, 1, True)[0] == SCHEDULE.any_row != choose(7, 100, 1, False)[0]


def test_rows_in_registers_have_neighbors_where_they_are_dense_and_aligned(
    choose: Callable[..., tuple[int, int, int]],
) -> None:
    assert choose(7, 128, 1, False, 128, 8)[2] == 4
    # a row's tail, a step between its elements, 64 bits, a row's start, an offset
    planted = ((127, 1, False, 128, 8), (128, 2, False, 128, 8), (128, 1, True, 128, 8), (128, 1, False, 126, 8))
    assert [choose(7, *each)[2] for each in (*planted, (128, 1, False, 128, 2))] == [1] * 5


def test_neighbors_are_read_where_all_rows_are_dense_and_aligned(library: ctypes.CDLL) -> None:
    def count(*numbers: int) -> int:
        library.neighbors.restype = ctypes.c_int64
        return int(library.neighbors(*map(ctypes.c_int64, numbers)))

    assert count(8, 12, 12, 1, 1) == 4
    assert [count(8, 256, size, 1, 1) for size in (32, 36, 124, 128)] == [4, 1, 1, 4]
    # an offset, a row's start, a row's tail, a stride, and several dimensions
    planted = ((6, 12, 12, 1, 1), (8, 13, 12, 1, 1), (8, 12, 11, 1, 1), (8, 12, 12, 2, 1))
    assert [count(*each) for each in planted] == [1, 1, 1, 1]
    assert count(8, 12, 12, 1, 2) == 0


def test_counts_ascend() -> None:
    with pytest.raises(ValueError, match="ascending"):
        Schedule(Family.KEPT_ROWS, (4, 1))
    assert choose_schedule(Family.KEPT_ROWS, 2).counts == (1, 4, 8)
    with pytest.raises(ValueError, match="no whole number of 4 neighbors"):
        Schedule(Family.KEPT_ROWS, (1, 6), 4)
