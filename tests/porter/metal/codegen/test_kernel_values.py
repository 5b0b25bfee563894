"""The kernels of three families against float64, at sizes other than those of their example."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from math import prod

import pytest
import torch

from aten_overlay.metal.launch import Library
from porter.core.dtypes import FLOAT, LONG
from porter.loops.expressions import ReductionKind
from porter.loops.program import Programs
from porter.metal.codegen.canonicalize import prepare
from porter.metal.codegen.cases import join_cases
from porter.metal.codegen.elements import COMBINED, KEY
from porter.metal.codegen.kernel import KernelStyle, NativeKernel, write_kernel
from porter.metal.codegen.schedule import ANY_DIMS, NEIGHBORS, ONE_DIM, Family
from porter.metal.helpers import read_helper
from porter.plan.recorded.helpers import find_helper
from tests.porter.metal.compiled import compile_soon
from tests.porter.plan.recorded import fork

SHARED = find_helper("simdgroup_sum").read_text()  # type: ignore[union-attr]
HELPERS = f"namespace c10 {{\nnamespace metal {{\n{SHARED}}}\n}}\n" + "".join(
    read_helper(f"{name}.metal") for name in ("strided_offset", "neighbors", "acc_t", "least_value", "greatest_value")
)
INCLUDES = "#include <c10/metal/reduction_utils.h>\n#include <c10/metal/utils.h>\nusing namespace metal;\n"
SIMDGROUP = 32
STYLES = (KernelStyle(True, False), KernelStyle(False, False))
SIZES = ((1, 1), (3, 7), (5, 33), (2, 2500))
TYPES = {"float": (torch.float32, 2e-6), "half": (torch.float16, 2e-3), "bfloat": (torch.bfloat16, 1e-2)}


def compile_one(
    programs: Programs, style: KernelStyle, suffix: str, helpers: str = HELPERS
) -> tuple[NativeKernel, Library]:
    [program] = join_cases(prepare(programs).cases, style)
    kernel = write_kernel(program, program.nests[0], "tested", {0: "output"}, style)
    names = [name_instance(kernel, suffix, instance) for instance in kernel.schedule.list_instances() or [()]]
    if kernel.combination:
        types = [suffix.split("_")[0] for _ in kernel.combination.elements.parameters]
        names.append("_".join((kernel.combination.name, *types)))
    return kernel, compile_soon(INCLUDES + helpers + kernel.source, *names)


def name_instance(kernel: NativeKernel, suffix: str, instance: tuple[int, ...] = ()) -> str:
    """The name of an instance, of that for any row where a kernel has several."""
    chosen = instance or next(iter(kernel.schedule.list_instances()), ())
    return "_".join(("tested", suffix, *map(str, chosen)))


@dataclass(frozen=True)
class Threads:
    """How threads share rows: `lanes` have a row, or each of its slices; a threadgroup has `rows` of up to a simdgroup."""

    lanes: int
    slices: int
    rows: int = 8


MOST = 256  # elements of a thread, for which sums are accurate
# A thread, a simdgroup and a threadgroup for each row, and several of each.
THREADS = (*(Threads(lanes, slices) for lanes in (1, 32, 96) for slices in (1, 2, 5)), Threads(32, 70))


def reduce_rows(
    library: Library,
    kernel: NativeKernel,
    suffix: str,
    threads: Threads,
    output: torch.Tensor,
    *given: torch.Tensor,
    turn: int | None = None,
) -> None:
    """Launches a reduction, and what combines slices; `given` are its arguments after the results."""
    assert kernel.combination is not None
    count, slices = max(1, output.numel()), torch.tensor([threads.slices], dtype=torch.int32)
    types = {"float": torch.float32, "int": torch.int32, "long": torch.int64, "float3": torch.complex128}
    types |= {"half": torch.float32, "bool": torch.int32}
    for spelled in (COMBINED, "c10::metal::opmath_t"):
        types[f"{spelled}<{KEY}>"] = types[suffix.partition("_")[0]]
    partials = [torch.full((count * threads.slices,), 77, dtype=types[each.type]) for each in kernel.partials]
    grid, group = (
        (threads.slices * threads.lanes, count),
        (threads.lanes, threads.rows if threads.lanes <= SIMDGROUP else 1),
    )
    library.run(
        name_instance(kernel, suffix, (turn,) if turn is not None else ()),
        [output, *partials, *given, slices],
        grid,
        group,
    )
    if threads.slices > 1:
        name = next(name for name in library.names if name.startswith(kernel.combination.name))
        numbers = [given[-1].long() for _ in kernel.combination.numbers]
        library.run(name, [output, *partials, *numbers, slices], (count * 32,), (32,))


def run(
    kernel: NativeKernel,
    library: Library,
    suffix: str,
    shape: tuple[int, ...],
    *given: torch.Tensor,
    lanes: int = 64,
    instance: tuple[int, ...] = (),
) -> torch.Tensor:
    source, *numbers = given
    output = torch.full(shape, 7.0).to(source.dtype)
    rows = output.numel() if kernel.is_map else source.shape[0] if shape else 1
    group: tuple[int, ...] = (64 if kernel.uses_reductions else 32,)
    threads: tuple[int, ...] = (rows if kernel.is_map else rows * group[0],)
    if kernel.schedule.family is Family.KEPT_ROWS:
        threads, group = (lanes, rows), (lanes, 8 if lanes <= SIMDGROUP else 1)
    library.run(name_instance(kernel, suffix, instance), [output, source, *numbers], threads, group)
    return output


@pytest.mark.parametrize("name", TYPES)
def test_rows_in_registers(name: str) -> None:
    dtype, tolerance = TYPES[name]
    kernel, library = compile_one(fork.shares(), STYLES[0], f"{name}_int")
    instances = kernel.schedule.list_instances()
    assert instances == [(1, 1), (4, 1), (16, 1), (1, 4), (4, 4), (16, 4)]
    for size, (count, width), lanes in product((*SIZES, (3, 8), (2, 2496)), instances, (32, 64, 160)):
        if size[1] % width:
            continue
        source = (torch.rand(size) + 0.5).to(dtype)
        columns = torch.tensor([size[1]], dtype=torch.int32)
        shares = run(kernel, library, f"{name}_int", size, source, columns, lanes=lanes, instance=(count, width))
        exact = source.double() / source.double().sum(-1, keepdim=True)
        if count == 1 or count * lanes >= size[1]:
            torch.testing.assert_close(shares.double(), exact, rtol=tolerance, atol=0)
        else:  # a row that is cut short
            assert not torch.allclose(shares.double(), exact, rtol=tolerance, atol=0)


@pytest.mark.parametrize("name", TYPES)
def test_rows_of_simdgroups(name: str) -> None:
    dtype, tolerance = TYPES[name]
    suffix = f"{name}_int"
    kernel, library = compile_one(fork.shares(), STYLES[1], suffix)
    for size in SIZES:
        source = (torch.rand(size) + 0.5).to(dtype)
        shares = run(kernel, library, suffix, size, source, torch.tensor([size[1]], dtype=torch.int32))
        exact = source.double() / source.double().sum(-1, keepdim=True)
        torch.testing.assert_close(shares.double(), exact, rtol=tolerance, atol=0)


@pytest.mark.parametrize("index", ["int", "long"])
def test_a_reduction_of_all(index: str) -> None:
    suffix = f"float_{index}"
    kernel, library = compile_one(fork.mean_square(), STYLES[0], suffix)
    width = torch.int32 if index == "int" else torch.int64
    for size, threads in product(SIZES, THREADS):
        if prod(size) > MOST * threads.lanes * threads.slices:
            continue
        source, found = torch.randn(size), torch.full((), 7.0)
        count = torch.tensor([source.numel()], dtype=width)
        reduce_rows(library, kernel, suffix, threads, found, source, count)
        torch.testing.assert_close(found.double(), source.double().square().mean(), rtol=2e-6, atol=0)


def test_a_map_of_any_type() -> None:
    for name, source in (("short", torch.arange(21, dtype=torch.int16)), ("bool", torch.arange(21) % 3 == 0)):
        suffix = f"{name}_int"
        kernel, library = compile_one(fork.turned(), STYLES[0], suffix)
        numbers = (torch.tensor([7], dtype=torch.int32), torch.tensor([3], dtype=torch.int32))
        found = run(kernel, library, suffix, (3, 7), source.view(3, 7), *numbers)
        assert found.equal(source.view(3, 7).roll(-3, -1))


def list_counts(given: torch.Tensor, dims: tuple[int, ...]) -> list[int]:
    """The counts of elements of a turn that host code may choose for a reduction."""
    if len(dims) > 1:
        return [ANY_DIMS]
    dense = given.stride(dims[0]) == 1 and not any(
        n % NEIGHBORS for n in (given.size(dims[0]), *given.stride()) if n > 1
    )
    return [ANY_DIMS, ONE_DIM, *([NEIGHBORS] if dense else [])]


def reduce(programs: Programs, given: torch.Tensor, dims: tuple[int, ...], result: torch.dtype) -> torch.Tensor:
    """What the kernel of a reduction over dimensions computes, by the strides of a tensor: the same in all ways."""
    kernels = [compile_one(programs, style, "float_int") for style in STYLES]
    kept = tuple(reversed([i for i in range(given.dim()) if i not in dims]))
    numbers = [
        torch.tensor([of(i) for i in chosen] or [default], dtype=torch.int64)
        for chosen in (kept, tuple(reversed(dims)))
        for of, default in ((given.size, 1), (given.stride, 0))
    ]
    ndim = torch.tensor([max(1, len(kept)), len(dims)], dtype=torch.int32)
    storage = given.as_strided((given.untyped_storage().nbytes() // given.itemsize,), (1,), 0)
    found = []
    for (kernel, library), threads, turn in product(kernels, THREADS, list_counts(given, dims)):
        if kernel is kernels[1][0] and threads.lanes > SIMDGROUP:
            continue
        output = torch.full([given.size(i) for i in reversed(kept)], 7).to(result)
        count = torch.tensor([given.numel() // output.numel()], dtype=torch.int32)
        reduce_rows(library, kernel, "float_int", threads, output, storage, *numbers, ndim, count, turn=turn)
        found.append(output)
    for other in found:
        torch.testing.assert_close(other, found[0], rtol=1e-5, atol=1e-5, equal_nan=True)
    return found[-1]


@pytest.mark.parametrize("dims", [(0,), (2,), (0, 2), (1, 2), (0, 1, 2, 3)])
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 1, 0, 2)])
def test_a_reduction_over_dimensions_of_any_strides(dims: tuple[int, ...], order: tuple[int, ...]) -> None:
    given = torch.randn(3, 70, 2, 5).permute(order)
    given.select(2, 1)[..., 0] = torch.nan
    found = reduce(fork.largest(), given, dims, torch.float32)
    torch.testing.assert_close(found, given.amax(dims), rtol=0, atol=0, equal_nan=True)
    sums = reduce(fork.largest(ReductionKind.SUM), given.nan_to_num(0), dims, torch.float32)
    torch.testing.assert_close(sums.double(), given.nan_to_num(0).double().sum(dims), rtol=1e-5, atol=1e-5)


def test_the_index_of_the_largest_is_the_first_one() -> None:
    given = torch.randint(0, 4, (300, 3)).float()
    assert reduce(fork.largest_index(), given, (0,), torch.int64).equal(given.argmax(0))
    given[200, 1], given[250, 1] = torch.nan, torch.nan
    given[:, 2] = -torch.inf
    assert reduce(fork.largest_index(), given, (0,), torch.int64).equal(given.argmax(0))
    assert reduce(fork.largest_index(), given.t(), (1,), torch.int64).equal(given.t().argmax(1))
    dense = given.t().contiguous()
    assert reduce(fork.largest_index(), dense, (1,), torch.int64).equal(dense.argmax(1))


def with_integers(programs: Programs) -> Programs:
    """Programs whose kernel is a template for integers too."""
    cases = []
    for case in programs.cases:
        integral = [
            replace(
                call,
                tensors={
                    name: replace(each, dtype=LONG if each.dtype == FLOAT else each.dtype)
                    for name, each in call.tensors.items()
                },
            )
            for call in case.calls
            if call.tensors["self"].dtype == FLOAT
        ]
        cases.append(replace(case, dtypes=(*case.dtypes, LONG), calls=(*case.calls, *integral)))
    return replace(programs, cases=tuple(cases))


@pytest.mark.parametrize("count", [3, 500])
def test_extreme_values_that_are_infinite_are_found_in_kernels_for_integers_too(count: int) -> None:
    """Threads that have no element of a row join in with what an extreme value starts from."""
    for kind, infinity in ((ReductionKind.MAX_NAN, -torch.inf), (ReductionKind.MIN_NAN, torch.inf)):
        given = torch.full((count, 2), infinity)
        programs = with_integers(fork.largest(kind))
        assert reduce(programs, given, (0,), torch.float32).tolist() == [infinity, infinity]
    given[:, 1] = -torch.inf
    assert reduce(with_integers(fork.largest_index()), given, (0,), torch.int64).tolist() == [0, 0]


def test_any_and_all_take_fractions_and_nan_as_true() -> None:
    given = torch.tensor([[0.5, torch.nan, 0.25], [0.5, 0.0, 1.0], [0.0, 0.0, 0.0]])
    assert reduce(fork.largest(ReductionKind.ALL), given, (1,), torch.float32).tolist() == [1, 0, 0]
    assert reduce(fork.largest(ReductionKind.ANY), given, (1,), torch.float32).tolist() == [1, 1, 0]


@pytest.mark.parametrize("kind", [ReductionKind.ANY, ReductionKind.ALL])
def test_lanes_share_truths_of_all_types_by_simd_functions_too(kind: ReductionKind) -> None:
    source = compile_one(with_integers(fork.largest(kind)), STYLES[1], "long_int")[0].source
    assert f"simd_{kind.name.lower()}(" in source and "opmath_t" not in source
