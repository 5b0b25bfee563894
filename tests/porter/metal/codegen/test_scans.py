"""Kernels that sum up to every element, by lanes along a row and by lanes of neighboring rows, against float64."""

from __future__ import annotations

import ctypes
from itertools import product

import pytest
import torch
from expecttest import assert_expected_inline

from aten_overlay.toolchain import build, torch_flags
from porter.core.dtypes import FLOAT
from porter.loops.expressions import Expr, Loop, Op, Reduction, ReductionKind, intern
from porter.loops.fusion import Store
from porter.loops.host_values import Constant, Size, SizeProduct
from porter.loops.program import Programs
from porter.metal.codegen.scan import ScanNest, with_scans, write_scan_dispatch
from porter.metal.helpers import read_helper
from tests.porter.metal.codegen.test_kernel_values import HELPERS, STYLES, compile_one, name_instance
from tests.porter.plan.recorded import fork

SCAN_HELPERS = "".join(read_helper(f"{name}.metal") for name in ("combined_t", "shuffle_up"))
NONE = {ReductionKind.SUM: 0, ReductionKind.PRODUCT: 1}
COMPUTE = {ReductionKind.SUM: torch.cumsum, ReductionKind.PRODUCT: torch.cumprod}
# Rows and lanes of a threadgroup: a simdgroup along a row, several, and 32 neighboring rows.
GROUPS = ((1, 32), (1, 96), (1, 1024), (32, 1), (32, 5), (32, 32))
# Beside what lanes read at once: 4 elements each, 128 of a simdgroup, 4096 of 1,024 lanes.
LENGTHS = (1, 3, 4, 5, 127, 129, 257, 385, 4097)
SLICES = (1, 2, 3, 8)  # of a row, of which some may be empty


def scanned(kind: ReductionKind) -> Programs:
    """A kernel of 2 by 7 by 3 elements, which are combined along the second dimension up to each."""
    count, inner = fork.named("count", Size("self", Constant(1)), 7), fork.named("inner", Size("self", Constant(2)), 3)
    row, along, column = Loop("i0", 2), Loop("i1", 7, count), Loop("i2", 3, inner)
    turn = Loop("r1.0", 7, count)

    def place(step: Loop) -> Expr:
        start = intern(Op.PRODUCT, (fork.index(row), fork.integer(count)))
        line = intern(Op.SUM, (start, fork.index(step)))
        return intern(Op.SUM, (intern(Op.PRODUCT, (line, fork.integer(inner))), fork.index(column)))

    upto = intern(Op.SUM, (fork.index(along), fork.integer(1)))
    none = intern(Op.NUMBER, (), FLOAT, NONE[kind])
    value = intern(Op.SELECT, (intern(Op.LESS, (fork.index(turn), upto)), fork.read(place(turn)), none), FLOAT)
    total = intern(Op.REDUCE, (value,), FLOAT, Reduction(kind, (turn,)))
    store = Store(fork.OUTPUT, FLOAT, 42, (row, along, column), place(along), total)
    return with_scans(fork.program("scanned", store, (row, along, column), SizeProduct("result0"), (2, 7, 3)))


@pytest.mark.parametrize("kind", NONE)
def test_scans_carry_on_from_lane_to_lane_and_from_turn_to_turn(kind: ReductionKind) -> None:
    programs = scanned(kind)
    assert isinstance(programs.cases[0].nests[0], ScanNest)
    kernel, library = compile_one(programs, STYLES[0], "float_int", HELPERS + SCAN_HELPERS)
    for length, inner, (columns, lanes), slices in product(LENGTHS, (1, 3, 33), GROUPS, SLICES):
        if slices > 1 and (columns > 1 or kind is ReductionKind.PRODUCT):
            continue
        source = (
            torch.rand(2, length, inner) + 0.5 if kind is ReductionKind.SUM else torch.rand(2, length, inner) / 9 + 0.95
        )
        output = torch.full_like(source, 7)
        numbers = [torch.tensor([each], dtype=torch.int32) for each in (inner, length)]
        library.run(
            name_instance(kernel, "float_int"),
            [output, source, *numbers],
            (2 * inner, lanes, slices),
            (columns, lanes, 1),
        )
        torch.testing.assert_close(output.double(), COMPUTE[kind](source.double(), 1), rtol=1e-5, atol=0)


@pytest.mark.parametrize("period", [1, 2, 64, 128, 256])
def test_what_stands_before_a_slice_is_added_up_in_order(period: int) -> None:
    """Large numbers of either sign cancel in each row up to any element: no sum of a slice may go beyond all numbers."""
    programs = scanned(ReductionKind.SUM)
    kernel, library = compile_one(programs, STYLES[0], "float_int", HELPERS + SCAN_HELPERS)
    signs = torch.tensor([1.0, -1.0]).repeat_interleave(period).repeat(8192 // period)
    source = (signs * (3e38 / period)).view(2, 8192, 1)
    output = torch.full_like(source, 7)
    numbers = [torch.tensor([each], dtype=torch.int32) for each in (1, 8192)]
    library.run(name_instance(kernel, "float_int"), [output, source, *numbers], (2, 96, 8), (1, 96, 1))
    torch.testing.assert_close(output, torch.cumsum(source, 1), rtol=1e-4, atol=1e33)


def test_the_launch_of_neighboring_rows_and_of_one_alone() -> None:
    texts = (
        write_scan_dispatch("PSO", "rows", "length", "inner", "", "output.is_alias_of(self)"),
        write_scan_dispatch("sumPSO", "output.numel() / length", "length", "", "sum_", "output.is_alias_of(self)"),
        write_scan_dispatch("prodPSO", "rows", "length", "", "prod_", ""),
    )
    assert_expected_inline(
        "\n\n".join(map("\n".join, texts)),
        """\
// lanes go along a row, or have neighboring rows each
const NSUInteger columns = inner >= 32 && rows >= 2048 ? 32 : 1;
const auto enough = columns > 1 ? 16 : std::max<int64_t>(at::ceil_div<int64_t>(4096, rows), 4) * 32;
const auto lanes = std::min<NSUInteger>([PSO maxTotalThreadsPerThreadgroup] / columns, std::min<int64_t>(columns > 1 ? at::ceil_div<int64_t>(length, 4) : at::ceil_div<int64_t>(length, 128) * 32, enough));
const int64_t slices = columns > 1 || output.is_alias_of(self) ? 1 : std::clamp<int64_t>(std::min<int64_t>(131072 / (rows * lanes), length / 16384), 1, 8);
[computeEncoder dispatchThreads:MTLSizeMake(rows, lanes, slices)
threadsPerThreadgroup:MTLSizeMake(columns, lanes, 1)];

const int64_t sum_rows = output.numel() / length;
const auto sum_enough = std::max<int64_t>(at::ceil_div<int64_t>(4096, sum_rows), 4) * 32;
const auto sum_lanes = std::min<NSUInteger>([sumPSO maxTotalThreadsPerThreadgroup], std::min<int64_t>(at::ceil_div<int64_t>(length, 128) * 32, sum_enough));
const int64_t sum_slices = output.is_alias_of(self) ? 1 : std::clamp<int64_t>(std::min<int64_t>(131072 / (sum_rows * sum_lanes), length / 16384), 1, 8);
[computeEncoder dispatchThreads:MTLSizeMake(sum_rows, sum_lanes, sum_slices)
threadsPerThreadgroup:MTLSizeMake(1, sum_lanes, 1)];

const auto prod_enough = std::max<int64_t>(at::ceil_div<int64_t>(4096, rows), 4) * 32;
const auto prod_lanes = std::min<NSUInteger>([prodPSO maxTotalThreadsPerThreadgroup], std::min<int64_t>(at::ceil_div<int64_t>(length, 128) * 32, prod_enough));
[computeEncoder dispatchThreads:MTLSizeMake(rows, prod_lanes, 1)
threadsPerThreadgroup:MTLSizeMake(1, prod_lanes, 1)];""",
    )


@pytest.fixture(scope="module")
def lanes(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """How many lanes and columns threadgroups have, for rows alone and for those with neighbors."""
    entries = ["#include <ATen/ceil_div.h>\n#include <algorithm>\n#include <cstdint>\nusing NSUInteger = uint64_t;"]
    for name, inner in (("alone", ""), ("adjacent", "inner")):
        *lines, _, _ = write_scan_dispatch("PSO", "rows", "length", inner, "", "false")
        text = "\n".join(lines).replace("[PSO maxTotalThreadsPerThreadgroup]", "most")
        head = f'extern "C" int64_t {name}(int64_t rows, int64_t length, int64_t inner, NSUInteger most) {{'
        entries.append(f"{head}\n{text}\nreturn (lanes{' * 100 + columns' if inner else ''}) * 10 + slices;\n}}")
    source = tmp_path_factory.mktemp("scan") / "scan.cpp"
    source.write_text("\n".join(entries))
    library = ctypes.CDLL(str(build("scan", [source], ["-std=c++20", *torch_flags()])))
    library.alone.restype = library.adjacent.restype = ctypes.c_int64
    return library


@pytest.mark.parametrize(
    ("rows", "length", "alone", "columns", "adjacent", "slices"),
    [
        (1, 1, 32, 1, 32, 1),
        (1, 10**6, 1024, 1, 1024, 8),
        (32, 131072, 1024, 1, 1024, 4),  # 128 threadgroups
        (64, 65536, 1024, 1, 1024, 2),
        (1, 40_000, 1024, 1, 1024, 2),  # slices of a few turns at least
        (200, 4096, 672, 1, 672, 1),  # 21 simdgroups a row are over 4,096 of all
        (2047, 5, 32, 1, 32, 1),
        (2048, 5, 32, 32, 2, 1),
        (100_000, 4096, 128, 32, 16, 1),
        (2**33, 4096, 128, 32, 16, 1),
    ],
)
def test_a_row_has_the_lanes_that_it_has_elements_for_or_that_keep_a_gpu_busy(
    lanes: ctypes.CDLL, rows: int, length: int, alone: int, columns: int, adjacent: int, slices: int
) -> None:
    def choose(inner: int, most: int = 1024) -> tuple[int, int, int]:
        numbers = map(ctypes.c_int64, (rows, length, inner, most))
        threads, parts = divmod(int((lanes.adjacent if inner else lanes.alone)(*numbers)), 10)
        return (*divmod(threads, 100), parts) if inner else (threads, 1, parts)

    assert choose(0) == choose(31) == (alone, 1, slices)
    assert choose(32) == (adjacent, columns, slices)
    assert choose(0, most=96)[0] == min(alone, 96)
    assert choose(32, most=96)[0] == min(adjacent, 96 // columns)
