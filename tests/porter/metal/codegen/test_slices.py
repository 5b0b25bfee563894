"""Reductions by one thread, a simdgroup, a threadgroup and several of these, against float64 and the CPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf, nan

import pytest
import torch

from porter.core.dtypes import BOOL, FLOAT
from porter.loops.expressions import Expr, Loop, Op, Reduction, ReductionKind, call, intern
from porter.loops.fusion import Store
from porter.loops.host_values import Constant, SizeProduct
from porter.loops.program import Programs
from porter.metal.codegen.kernel import KernelStyle
from tests.porter.metal.codegen.test_kernel_values import STYLES, Threads, compile_one, reduce_rows
from tests.porter.plan.recorded import fork

SIZES = (1, 31, 33, 1024, 2500, 100_003)
WELFORD = replace(STYLES[0], welford=True)
# As forks have it that are newer than the installed headers.
WELFORD_HELPER = """
namespace c10 { namespace metal {
inline float3 threadgroup_welford_combine(threadgroup float3* data, unsigned idx, unsigned size) {
  ::metal::threadgroup_barrier(::metal::mem_flags::mem_threadgroup);
  float3 all = 0;
  for (unsigned i = 0; i < size; i++) {
    all = welford_combine(all, data[i]);
  }
  return all;
}
}}
"""


def choose(length: int) -> list[Threads]:
    """The ways that threads may share a row: a thread has 256 elements of it at most."""
    ways = [Threads(1, length // 256 + 1), Threads(1, length // 32 + 1), Threads(32, length // 8192 + 1)]
    return [*ways, Threads(1024, 1), Threads(1024, 3)]


def variance(mean_too: bool = False, or_mean: bool = False, twice: bool = False) -> Programs:
    """The variance of all elements, or how far the mean is from it: of two sums, the second around the first.

    With `or_mean`, the mean where the variance is NaN; `twice`, with that of the elements and one added.
    """
    count = fork.named("numel", SizeProduct("self"), 42)
    first, second = Loop("r1.0", 42, count), Loop("r2.0", 42, count)
    number = intern(Op.NUMBER, (), FLOAT, count)

    def add(value: Expr, loop: Loop) -> Expr:
        return intern(Op.REDUCE, (value,), FLOAT, Reduction(ReductionKind.SUM, (loop,)))

    def spread(read: Callable[[Loop], Expr]) -> tuple[Expr, Expr]:
        mean = call("division", (add(read(first), first), number), FLOAT)
        difference = call("subtraction", (read(second), mean), FLOAT)
        return mean, call("division", (add(call("square", (difference,), FLOAT), second), number), FLOAT)

    mean, around = spread(lambda loop: fork.read(fork.index(loop)))
    if twice:
        one = intern(Op.NUMBER, (), FLOAT, 1)
        _, other = spread(lambda loop: call("addition", (fork.read(fork.index(loop)), one), FLOAT))
        around = call("addition", (around, other), FLOAT)
    value = call("subtraction", (around, mean), FLOAT) if mean_too else around
    value = intern(Op.SELECT, (call("isNaN", (around,), BOOL), mean, around), FLOAT) if or_mean else value
    return fork.program("variance", Store(fork.OUTPUT, FLOAT, 1, (), fork.integer(0), value), (), Constant(1), ())


def compute(programs: Programs, given: torch.Tensor, style: KernelStyle = STYLES[0]) -> list[torch.Tensor]:
    """What a reduction of all elements comes to in each way."""
    kernel, library = compile_one(programs, style, "float_int", WELFORD_HELPER)
    found = []
    for threads in choose(given.numel()):
        output = torch.full((), 7.0)
        count = torch.tensor([given.numel()], dtype=torch.int32)
        reduce_rows(library, kernel, "float_int", threads, output, given, count)
        found.append(output)
    return found


@pytest.mark.parametrize("size", SIZES)
def test_sums_are_as_accurate_as_those_of_the_cpu(size: int) -> None:
    given = torch.randn(size)
    exact = given.double().square().mean()
    theirs = float((given.square().mean().double() - exact).abs() / exact)
    for found in compute(fork.mean_square(), given):
        assert float((found.double() - exact).abs() / exact) <= max(theirs, 4 * torch.finfo(torch.float32).eps)


def test_simdgroups_share_rows_where_threadgroups_have_no_functions() -> None:
    kernel, library = compile_one(fork.mean_square(), STYLES[1], "float_int")
    given, count = torch.randn(2500), torch.tensor([2500], dtype=torch.int32)
    for threads in (Threads(1, 10), Threads(32, 1), Threads(32, 3)):
        found = torch.full((), 7.0)
        reduce_rows(library, kernel, "float_int", threads, found, given, count)
        torch.testing.assert_close(found.double(), given.double().square().mean(), rtol=1e-6, atol=0)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("mean_too", [False, True])
def test_variances_around_a_large_mean(size: int, mean_too: bool) -> None:
    given = torch.randn(size) + 1000
    exact = given.double().var(correction=0) - (given.double().mean() if mean_too else 0)
    for found in compute(variance(mean_too), given, WELFORD):
        torch.testing.assert_close(found.double(), exact, rtol=2e-4, atol=1e-6)


def test_two_variances_of_a_row_share_the_memory_of_a_threadgroup() -> None:
    elements = torch.randn(70000) + 1000
    for total in compute(variance(twice=True), elements, WELFORD):
        torch.testing.assert_close(total.double(), 2 * elements.double().var(correction=0), rtol=2e-4, atol=1e-6)
    kernel, _ = compile_one(variance(twice=True), WELFORD, "float_int", WELFORD_HELPER)
    shared = [line.strip() for line in kernel.source.splitlines() if "[1024]" in line or "barrier" in line]
    assert shared == ["threadgroup float3 shared_moments[1024];", "threadgroup_barrier(mem_flags::mem_threadgroup);"]


@pytest.mark.parametrize("values", [(nan,), (inf,), (-inf,), (inf, inf), (inf, -inf)])
@pytest.mark.parametrize(("size", "at"), [(2500, 1700), (2500, 0), (2500, 2498), (3, 1), (3, 0), (2, 0)])
def test_a_variance_of_what_is_not_finite_is_not_a_number(values: tuple[float, ...], size: int, at: int) -> None:
    given = torch.randn(size)
    given[at : at + len(values)] = torch.tensor(values)
    assert all(found.isnan() for found in compute(variance(), given, WELFORD))
    for found in compute(variance(or_mean=True), given, WELFORD):
        torch.testing.assert_close(found, given.mean(), rtol=0, atol=0, equal_nan=True)


def test_the_mean_of_finite_elements_is_finite_though_their_squares_are_not() -> None:
    given = torch.tensor([1e25, -1e25, 3.0]).repeat(70)
    assert all(found.isfinite() for found in compute(variance(or_mean=True), given, WELFORD))


def test_without_the_functions_of_a_fork_two_passes_go_over_a_row() -> None:
    kernel, _ = compile_one(variance(), STYLES[0], "float_int")
    assert kernel.combination is None and kernel.source.count("for (") == 2


@pytest.mark.parametrize("style", STYLES)
def test_a_thread_for_each_row_combines_nothing(style: KernelStyle) -> None:
    kernel, _ = compile_one(fork.mean_square(), style, "float_int")
    assert (
        f"if (group_size.x > 1) {{\n    sum = {'c10::metal::threadgroup' if style is STYLES[0] else 'simd'}_sum("
        in (kernel.source)
    )
