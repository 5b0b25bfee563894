"""A copy of the embedded fork with operators of made-up graphs, and their programs as recordings would give them."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.dtypes import BFLOAT, FLOAT, HALF, INT, LONG, DType
from porter.core.layout import METAL_HEADERS, NATIVE_FUNCTIONS, OPERATIONS
from porter.loops.expressions import Buffer, Expr, Loop, Op, Reduction, ReductionKind, call, intern
from porter.loops.fusion import LoopNest, Store
from porter.loops.host_values import (
    Apply,
    Arguments,
    Constant,
    EndDim,
    HostValue,
    Named,
    Scalar,
    Size,
    SizeProduct,
    SizesOver,
    TensorValue,
)  # fmt: skip
from porter.loops.program import ArgumentBuffer, Programs, ResultBuffer, Role, SymbolicNest, SymbolicProgram
from porter.mpsgraph.conditions import Answered, read_question
from porter.plan.planner import plan_operator

ROWS = """
- func: turned(Tensor self, int times) -> Tensor
  dispatch:
    CPU: turned_cpu
    MPS: turned_mps

- func: returned(Tensor self, int times) -> Tensor
  dispatch:
    CPU: returned_cpu
    MPS: returned_mps

- func: mean_square.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CPU: mean_square_out_cpu
    MPS: mean_square_out_mps

- func: largest.out(Tensor self, int[1]? dim=None, bool keepdim=False, *, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CPU: largest_out_cpu
    MPS: largest_out_mps

- func: shares(Tensor self) -> Tensor
  dispatch:
    CPU: shares_cpu
    MPS: shares_mps
"""
HOST = """#include <ATen/native/mps/OperationUtils.h>

namespace at::native {

struct SharesCachedGraph : public MPSCachedGraph {
  MPSGraphTensor* shares = nil;
};

static Tensor turn_template(const Tensor& self, int64_t times, bool back) {
  TORCH_CHECK(times > 0, back ? "returned" : "turned", ": times must be positive");
  Tensor output = at::empty(self.sizes(), self.options());
  MPSStream* stream = getCurrentMPSStream();
  @autoreleasepool {
    auto cachedGraph = LookUpOrCreateCachedGraph<MPSUnaryCachedGraph>(key, makeGraph);
    Placeholder selfPlaceholder = Placeholder(cachedGraph->inputTensor_, self);
    runMPSGraph(stream, cachedGraph->graph(), feeds, output);
  }
  return output;
}

Tensor turned_mps(const Tensor& self, int64_t times) {
  return turn_template(self, times, /*back=*/false);
}

Tensor returned_mps(const Tensor& self, int64_t times) {
  return turn_template(self, times, /*back=*/true);
}

Tensor& largest_out_mps(const Tensor& self, OptionalIntArrayRef dim, bool keepdim, Tensor& out) {
  TORCH_CHECK(self.numel() > 0, "largest: no elements");
  runMPSGraph(getCurrentMPSStream(), makeGraph(dim, keepdim), feeds, out);
  return out;
}

Tensor& mean_square_out_mps(const Tensor& self, Tensor& out) {
  // the mean of no elements is not a number
  if (self.numel() == 0) {
    return out.fill_(NAN);
  }
  out.resize_({});
  NSNumber* count = @(self.numel());
  runMPSGraph(getCurrentMPSStream(), makeGraph(count), feeds, out);
  return out;
}

Tensor shares_mps(const Tensor& self) {
  Tensor output = at::empty_like(self);
  auto graph = LookUpOrCreateCachedGraph<SharesCachedGraph>(key, makeGraph);
  runMPSGraph(getCurrentMPSStream(), graph->graph(), feeds, output);
  return output;
}

} // namespace at::native
"""
LIBRARY = """#include <ATen/native/mps/MetalShaderLibrary.h>

namespace at::native {
#ifndef PYTORCH_JIT_COMPILE_SHADERS
static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();
#else
#include <ATen/native/mps/Other_metallib.h>
#endif
} // namespace at::native
"""
REDUCTIONS = "".join(
    f"T threadgroup_{kind}(threadgroup opmath_t<T>* data, T val, unsigned idx, unsigned size);\nT simd_{kind}(T val);\n"
    for kind in ("sum", "prod", "max", "min")
)
TYPES = (FLOAT, HALF, BFLOAT)
INPUT, OUTPUT = Buffer(0), Buffer(1)


def copy_fork(folder: Path, reductions: bool = True) -> Checkout:
    """The fork, with a header of threadgroup reductions if wanted."""
    root = folder / "fork"
    shutil.copytree(EMBEDDED_FORK, root)
    with (root / NATIVE_FUNCTIONS).open("a") as file:
        file.write(ROWS)
    (root / OPERATIONS / "Turns.mm").write_text(HOST)
    (root / OPERATIONS / "Other.mm").write_text(LIBRARY)
    if reductions:
        (root / METAL_HEADERS / "reduction_utils.h").write_text(REDUCTIONS)
    return Checkout(root, "made up")


def diff(folder: Path, op: str, programs: Programs | None, reductions: bool = True) -> str:
    """The diff of a port."""
    plan = plan_operator(copy_fork(folder, reductions), op, programs=lambda served: programs)
    assert plan.complete
    return plan.changes.diff()


def integer(value: int | Named) -> Expr:
    return intern(Op.INTEGER, (), None, value)


def index(loop: Loop) -> Expr:
    return intern(Op.LOOP, (), None, loop)


def read(place: Expr) -> Expr:
    return intern(Op.LOAD, (place,), FLOAT, INPUT)


def named(name: str, value: HostValue, example: int) -> Named:
    return Named(name, value, example)


def program(name: str, store: Store, rows: tuple[Loop, ...], count: HostValue, shape: tuple[int, ...]) -> Programs:
    """The programs of an operator of one kernel; the shape is that of the result."""
    calls = tuple(_call(dtype, shape) for dtype in TYPES)
    roles: dict[Buffer, Role] = {INPUT: ArgumentBuffer("self"), OUTPUT: ResultBuffer(0)}
    nest = SymbolicNest(LoopNest((store,), rows), count)
    return Programs(name, (SymbolicProgram(name, (), "self", TYPES, (nest,), roles, (), calls[0], calls),))


def _call(dtype: DType, shape: tuple[int, ...]) -> Arguments:
    return Arguments({"self": TensorValue((6, 7), dtype), "result0": TensorValue(shape, dtype)}, {"times": 2})


def turned(more: bool = False) -> Programs:
    """A map: rows of elements, each `times` places on, or one more."""
    width, times = named("width", Size("self", Constant(-1)), 7), named("times", Scalar("times"), 2)
    row, column = Loop("i0", 6), Loop("i1", 7, width)
    by = (integer(times), integer(1)) if more else (integer(times),)
    moved = intern(Op.REMAINDER, (intern(Op.SUM, (index(column), *by)), integer(width)))
    start = intern(Op.PRODUCT, (index(row), integer(width)))
    place = intern(Op.SUM, (start, index(column)))
    store = Store(OUTPUT, FLOAT, 42, (row, column), place, read(intern(Op.SUM, (start, moved))))
    return program("turned", store, (row, column), SizeProduct("result0"), (6, 7))


def mean_square() -> Programs:
    """A reduction of all elements."""
    count = named("numel", SizeProduct("self"), 42)
    each = Loop("r1.0", 42, count)
    square = call("square", (read(index(each)),), FLOAT)
    total = intern(Op.REDUCE, (square,), FLOAT, Reduction(ReductionKind.SUM, (each,)))
    mean = call("division", (total, intern(Op.NUMBER, (), FLOAT, count)), FLOAT)
    return program("mean_square", Store(OUTPUT, FLOAT, 1, (), integer(0), mean), (), Constant(1), ())


def shares() -> Programs:
    """A kernel over rows: each element's share of the sum of its row."""
    width = named("width", Size("self", Constant(-1)), 7)
    row, column, each = Loop("i0", 6), Loop("i1", 7, width), Loop("r1.0", 7, width)
    start = intern(Op.PRODUCT, (index(row), integer(width)))
    total = intern(
        Op.REDUCE, (read(intern(Op.SUM, (start, index(each)))),), FLOAT, Reduction(ReductionKind.SUM, (each,))
    )
    place = intern(Op.SUM, (start, index(column)))
    store = Store(OUTPUT, FLOAT, 42, (row, column), place, call("division", (read(place), total), FLOAT))
    return program("shares", store, (row,), SizeProduct("self", None, Constant(-1)), (6, 7))


def largest(kind: ReductionKind = ReductionKind.MAX) -> Programs:
    """A reduction over named dimensions: two cases of what one kernel computes, as recordings give them."""
    first, last = EndDim("dim", "self", False), EndDim("dim", "self", True)
    after = Apply("+", (last, Constant(1)))
    inner = named("inner", SizeProduct("self", after), 5)
    reduced = named("reduced", SizesOver("self", "dim"), 3)
    outer, column, each = Loop("i0", 2), Loop("i1", 5, inner), Loop("r1.0", 3, reduced)
    block = named("block", SizeProduct("self", first), 15)
    neighbors = Answered(read_question("names_adjacent_dims(dim, self.dim())"), True)
    place = intern(Op.SUM, (intern(Op.PRODUCT, (index(outer), integer(block))), index(column)))
    place = intern(Op.SUM, (place, intern(Op.PRODUCT, (index(each), integer(inner)))))
    value = intern(Op.REDUCE, (read(place),), FLOAT, Reduction(kind, (each,)))
    at = intern(Op.SUM, (intern(Op.PRODUCT, (index(outer), integer(inner))), index(column)))
    adjacent = _reduces(neighbors, Store(OUTPUT, FLOAT, 10, (outer, column), at, value), (1,), (2, 5))

    row, column, step = Loop("r1.0", 2), Loop("i0", 3), Loop("r1.1", 5)
    place = intern(Op.SUM, (intern(Op.PRODUCT, (index(row), integer(15))), index(step)))
    place = intern(Op.SUM, (place, intern(Op.PRODUCT, (index(column), integer(5)))))
    value = intern(Op.REDUCE, (read(place),), FLOAT, Reduction(kind, (row, step)))
    others = replace(neighbors, holds=False)
    apart = _reduces(others, Store(OUTPUT, FLOAT, 3, (column,), index(column), value), (0, 2), (3,))
    return Programs("largest.out", (apart, adjacent))


def _reduces(when: Answered, store: Store, dims: tuple[int, ...], shape: tuple[int, ...]) -> SymbolicProgram:
    """A case of a tensor of sizes 2, 3 and 5 that is reduced over some dimensions."""
    roles: dict[Buffer, Role] = {INPUT: ArgumentBuffer("self"), OUTPUT: ResultBuffer(0)}
    given = [{"self": TensorValue((2, 3, 5), dtype), "result0": TensorValue(shape, dtype)} for dtype in TYPES]
    calls = tuple(Arguments(tensors, {"dim": dims, "keepdim": flag}) for tensors in given for flag in (False, True))
    nest = SymbolicNest(LoopNest((store,), store.loops), SizesOver("self", "dim", others=True))
    return SymbolicProgram("largest.out", (when,), "self", TYPES, (nest,), roles, (), calls[0], calls)


def largest_index() -> Programs:
    """Where the largest elements over named dimensions are."""
    programs = largest(ReductionKind.ARG_MAX)
    return replace(programs, cases=tuple(map(_index_case, programs.cases[1:])))


def _index_case(case: SymbolicProgram) -> SymbolicProgram:
    [symbolic] = case.nests
    [store] = symbolic.nest.stores
    best = store.value
    [each] = best.reduction.loops
    found = intern(Op.REDUCE, (best.args[0], intern(Op.INDEX_VALUE, (index(each),), INT)), INT, best.reduction)
    stored = replace(store, dtype=LONG, value=intern(Op.CAST, (found,), LONG))
    nest = replace(symbolic, nest=replace(symbolic.nest, stores=(stored,)))
    calls = tuple(replace(call, tensors={**call.tensors, "result0": TensorValue((2, 5), LONG)}) for call in case.calls)
    return replace(case, when=(), nests=(nest,), example=calls[0], calls=calls)
