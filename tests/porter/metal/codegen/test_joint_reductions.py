"""Reductions over the same elements are made in one turn over them, against float64."""

from __future__ import annotations

import torch

from porter.core.dtypes import FLOAT
from porter.loops.expressions import Expr, Loop, Op, Reduction, ReductionKind, call, intern
from porter.loops.fusion import Store
from porter.loops.host_values import Constant, Size, SizeProduct
from porter.loops.program import Programs
from tests.porter.metal.codegen.test_kernel_values import MOST, SIZES, STYLES, THREADS, compile_one, reduce_rows, run
from tests.porter.plan.recorded import fork


def reduce(value: Expr, kind: ReductionKind, loop: Loop) -> Expr:
    return intern(Op.REDUCE, (value,), FLOAT, Reduction(kind, (loop,)))


def span() -> Programs:
    """How far the largest of all elements is from the mean."""
    count = fork.named("numel", SizeProduct("self"), 42)
    loop = Loop("r1.0", 42, count)
    element = fork.read(fork.index(loop))
    total, largest = (reduce(element, kind, loop) for kind in (ReductionKind.SUM, ReductionKind.MAX_NAN))
    mean = call("division", (total, intern(Op.NUMBER, (), FLOAT, count)), FLOAT)
    value = call("subtraction", (largest, mean), FLOAT)
    return fork.program("span", Store(fork.OUTPUT, FLOAT, 1, (), fork.integer(0), value), (), Constant(1), ())


def scaled() -> Programs:
    """The elements of each row, less the least, over the sum of squares."""
    width = fork.named("width", Size("self", Constant(-1)), 7)
    row, column, each = Loop("i0", 6), Loop("i1", 7, width), Loop("r1.0", 7, width)
    start = intern(Op.PRODUCT, (fork.index(row), fork.integer(width)))
    element = fork.read(intern(Op.SUM, (start, fork.index(each))))
    least = reduce(element, ReductionKind.MIN_NAN, each)
    total = reduce(call("square", (element,), FLOAT), ReductionKind.SUM, each)
    place = intern(Op.SUM, (start, fork.index(column)))
    value = call("division", (call("subtraction", (fork.read(place), least), FLOAT), total), FLOAT)
    store = Store(fork.OUTPUT, FLOAT, 42, (row, column), place, value)
    return fork.program("scaled", store, (row,), SizeProduct("self", None, Constant(-1)), (6, 7))


def test_of_all_elements() -> None:
    kernel, library = compile_one(span(), STYLES[0], "float_int")
    for size, threads in ((size, each) for size in SIZES for each in THREADS):
        if torch.Size(size).numel() > MOST * threads.lanes * threads.slices:
            continue
        given, found = torch.randn(size), torch.full((), 7.0)
        reduce_rows(library, kernel, "float_int", threads, found, given, torch.tensor([given.numel()]).int())
        torch.testing.assert_close(found.double(), given.double().max() - given.double().mean(), rtol=2e-6, atol=2e-7)
    assert count_turns(kernel.source) == [1, 1]  # of a row or a slice of it, and over slices


def test_of_rows() -> None:
    for style in STYLES:
        kernel, library = compile_one(scaled(), style, "float_int")
        for size in SIZES:
            given = torch.randn(size)
            found = run(kernel, library, "float_int", size, given, torch.tensor([size[1]]).int())
            exact = given.double()
            exact = (exact - exact.amin(-1, keepdim=True)) / exact.square().sum(-1, keepdim=True)
            torch.testing.assert_close(found.double(), exact, rtol=2e-6, atol=0)
        over_neighbors = 2 if kernel.schedule.neighbors > 1 else 0
        assert count_turns(kernel.source) == [2 + over_neighbors]  # over what is reduced, and over the results


def count_turns(source: str) -> list[int]:
    """How many loops each kernel has."""
    bodies = [part.partition("\n}\n")[0] for part in source.split("\nkernel void ")[1:]]
    return [body.count("for (") for body in bodies]
