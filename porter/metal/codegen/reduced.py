"""Tensors that kernels access by their strides: those reduced over named dimensions, and results of one value.

Recordings find cases of these: the last dimensions, the first ones, neighbors. Each computes the same of the elements
that one result is made of, so one kernel serves all that goes over them by the sizes and strides of the dimensions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from porter.loops.expressions import Buffer, Expr, Loop, Op, Reduction, find_buffers, find_reductions, intern, walk
from porter.loops.fusion import LoopNest, Shape, Store
from porter.loops.host_values import Apply, Arguments, HostValue, Named, SizeProduct, SizesOver, evaluate, list_names
from porter.loops.program import ArgumentBuffer, Programs, ResultBuffer, Role, SymbolicNest, SymbolicProgram
from porter.metal.codegen.host_code import Line, call_helper, declare
from porter.metal.codegen.host_values import Names

ROW = "row"
_EXAMPLE = 2  # the size of the loops, which nothing depends on
_AFFINE = (Op.INTEGER, Op.LOOP, Op.SUM, Op.PRODUCT)


@dataclass(frozen=True)
class StridedArgument(ArgumentBuffer):
    """The elements of a tensor argument by its own strides; `dims` is the argument that says which are reduced."""

    dims: str


def with_strides(programs: Programs) -> Programs:
    """The programs with each case that reduces named dimensions as one of all dimensions and strides."""
    return replace(programs, cases=tuple(_generalize(case) or case for case in programs.cases))


def find_strided(program: SymbolicProgram) -> StridedArgument | None:
    """The tensor that a program reads by its strides."""
    return next((role for role in program.roles.values() if isinstance(role, StridedArgument)), None)


def _generalize(case: SymbolicProgram) -> SymbolicProgram | None:
    """The case for all dimensions; None unless each of its results is made of the elements of one row."""
    dims = [name for name in case.example.others if "dim" in name and name != "keepdim"]
    read = [buffer for nest in case.nests for buffer in nest.nest.reads()]
    if len(case.nests) != 1 or case.nests[0].nest.shape is not Shape.REDUCTION or len(dims) != 1 or len(read) != 1:
        return None
    role = case.roles[read[0]]
    if not isinstance(role, ArgumentBuffer):
        return None
    layout = _read_layout(case.example, role.name, dims[0])
    nest = case.nests[0].nest
    writer = _Writer(case, read[0], SizesOver(role.name, dims[0]), layout, nest.rows)
    try:
        stores = tuple(writer.store(store) for store in nest.stores)
    except _OtherRows:
        return None
    row = Loop(ROW, _EXAMPLE)
    made = SymbolicNest(LoopNest(stores, (row,)), SizeProduct("result0"))
    roles: Mapping[Buffer, Role] = {**case.roles, read[0]: StridedArgument(role.name, dims[0])}
    return replace(case, nests=(made,), roles=roles)


@dataclass(frozen=True)
class _Layout:
    """The offsets of the elements of a contiguous tensor: of the first one of each row, and of others from that."""

    kept: tuple[int, ...]
    reduced: tuple[int, ...]


def _read_layout(call: Arguments, tensor: str, dims: str) -> _Layout:
    shape, named = call.tensors[tensor].shape, call.others[dims]
    listed = named if isinstance(named, tuple) else () if named is None else (named,)
    over = {each % len(shape) for each in listed if isinstance(each, int)} or set(range(len(shape)))
    strides = [prod(shape[i + 1 :]) for i in range(len(shape))]

    def offsets(chosen: Sequence[int]) -> tuple[int, ...]:
        turns = product(*(range(shape[i]) for i in chosen))
        return tuple(sum(at * strides[i] for at, i in zip(turn, chosen, strict=True)) for turn in turns)

    kept = [i for i in range(len(shape)) if i not in over]
    return _Layout(offsets(kept), offsets(sorted(over)))


class _OtherRows(Exception):
    """The elements of a reduction are not those of the named dimensions."""


@dataclass(frozen=True)
class _Writer:
    """Writes the values of a case by the index of a result and that of an element in its row."""

    case: SymbolicProgram
    buffer: Buffer
    count: SizesOver
    layout: _Layout
    rows: tuple[Loop, ...]

    def store(self, store: Store) -> Store:
        is_result = isinstance(self.case.roles[store.buffer], ResultBuffer)
        if not is_result or not _walks(store.place, store.loops, (), range(len(self.layout.kept))):
            raise _OtherRows
        row = Loop(ROW, _EXAMPLE)
        return replace(store, size=_EXAMPLE, loops=(row,), place=_index(row), value=self._write(store.value, ()))

    def _write(self, value: Expr, loops: tuple[Loop, ...]) -> Expr:
        if value.op is Op.REDUCE:
            body = [self._write(arg, value.reduction.loops) for arg in value.args]
            each = self._loop(value.height)
            return intern(Op.REDUCE, body, value.dtype, Reduction(value.reduction.kind, (each,)))
        if value.op is Op.LOAD:
            self._require(
                value.attribute == self.buffer
                and _walks(value.args[0], self.rows, loops, self.layout.kept, self.layout.reduced)
            )
            return intern(Op.LOAD, (_index(self._loop(_height(loops))),), value.dtype, self.buffer)
        if value.op is Op.INDEX_VALUE:
            self._require(_walks(value.args[0], loops, (), range(len(self.layout.reduced))))
            return intern(Op.INDEX_VALUE, (_index(self._loop(_height(loops))),), value.dtype)
        if value.op is Op.NUMBER and isinstance(value.attribute, Named):
            return intern(Op.NUMBER, (), value.dtype, self._number(value.attribute))
        self._require(value.dtype is not None and value.op in (Op.NUMBER, Op.CALL, Op.CAST))
        return intern(value.op, [self._write(arg, loops) for arg in value.args], value.dtype, value.attribute)

    def _require(self, holds: bool) -> None:
        if not holds:
            raise _OtherRows

    def _loop(self, height: int) -> Loop:
        return Loop(f"r{height}.0", _EXAMPLE, self._count())

    def _count(self) -> Named:
        return Named("reduced_size", self.count, _EXAMPLE)

    def _number(self, number: Named) -> Named:
        """A number that does not depend on the shape, but for how many elements a row has."""
        value = self._count_in(number.value)
        return self._count() if value == self.count else replace(number, value=value)

    def _count_in(self, value: HostValue) -> HostValue:
        """A value with the number of elements of a row for what is equal to it in all calls."""
        if not list_names(value) & self.case.example.tensors.keys():
            return value
        if all(evaluate(value, call) == evaluate(self.count, call) for call in self.case.calls):
            return self.count
        self._require(isinstance(value, Apply))
        assert isinstance(value, Apply)
        return replace(value, arguments=tuple(map(self._count_in, value.arguments)))


def _height(loops: Sequence[Loop]) -> int:
    """The height of the reduction that has some loops, which are named by it."""
    if not loops:
        raise _OtherRows
    return int(loops[0].name[1:].split(".")[0])


def _walks(
    place: Expr, rows: Sequence[Loop], loops: Sequence[Loop], kept: Sequence[int], reduced: Sequence[int] = (0,)
) -> bool:
    """Whether an affine index, over rows and within one, is at some offsets in turn.

    What is affine in both adds up, so each is tried with the other at its start.
    """
    if any(each.op not in _AFFINE for each in walk(place)):
        return False
    start = dict.fromkeys((*rows, *loops), 0)
    first = _evaluate(place, start)
    over_rows = [_evaluate(place, start | turn) for turn in _turns(rows)]
    within = [_evaluate(place, start | turn) for turn in _turns(loops)]
    return over_rows == list(kept) and [each - first for each in within] == list(reduced)


def _turns(loops: Sequence[Loop]) -> Iterator[dict[Loop, int]]:
    for turn in product(*(range(each.size) for each in loops)):
        yield dict(zip(loops, turn, strict=True))


def _evaluate(index: Expr, at: Mapping[Loop, int]) -> int:
    if isinstance(index.attribute, Loop):
        return at[index.attribute]
    if isinstance(index.attribute, Named):
        return int(index.attribute.example)
    if index.integer is not None:
        return index.integer
    parts = [_evaluate(arg, at) for arg in index.args]
    return sum(parts) if index.op is Op.SUM else prod(parts)


def _index(loop: Loop) -> Expr:
    return intern(Op.LOOP, (), None, loop)


def list_reduced(program: SymbolicProgram) -> list[HostValue]:
    """How many elements the rows of a program have."""
    stores = program.stores
    loops = [loop for store in stores for each in find_reductions(store.value) for loop in each.reduction.loops]
    return list(dict.fromkeys(loop.number.value for loop in loops if loop.number))


_STRIDES = ("kept.sizes", "kept.strides", "reduced.sizes", "reduced.strides", "ndim")
REDUCED = "reduced_size"  # how many elements the rows of the tensor have


def write_strides(role: StridedArgument, tensor: str, names: Names) -> Iterator[Line]:
    """Variables for the dimensions of a tensor, which is in the variable `tensor`."""
    mask = declare("mask", f"make_dim_mask({_write_dims(role.dims, names)}, {names.member(role.name)}dim())")
    if mask.text not in names.code.text:  # the function may have it, to resize its result
        yield mask
    yield call_helper("kept", "merge_dims", tensor, "~mask")
    yield call_helper("reduced", "merge_dims", tensor, "mask")
    counts = ", ".join(f"static_cast<uint32_t>({each}.sizes.size())" for each in ("kept", "reduced"))
    yield declare("ndim", f"{{{counts}}}", "std::array<uint32_t, 2>")
    yield declare(REDUCED, "c10::multiply_integers(reduced.sizes)", "int64_t")


def _write_dims(argument: str, names: Names) -> str:
    """An argument that names dimensions, as an optional list."""
    name, type_ = names.variable(argument), names.types.get(argument, "")
    if type_ == "int?":
        return f"{name}.has_value() ? OptionalIntArrayRef({name}.value()) : std::nullopt"
    return f"IntArrayRef({name})" if type_ == "int" else name


# The sizes and strides of the dimensions of a result, and how many there are.
DIMENSIONS = ("constant long* sizes", "constant long* strides", "constant uint& ndim")
_DIMENSIONS = ("dims.sizes", "dims.strides", "static_cast<uint32_t>(dims.sizes.size())")


@dataclass(frozen=True)
class UniformResult(ResultBuffer):
    """The elements of a result by its own strides, in any order."""


def with_uniform(programs: Programs) -> Programs:
    """The programs with each case that writes one value to all elements of a result as one of all strides."""
    return replace(programs, cases=tuple(map(_make_uniform, programs.cases)))


def is_uniform(program: SymbolicProgram) -> bool:
    """Whether a program writes its result, which is all that it does, by the strides that it has."""
    return any(isinstance(role, UniformResult) for role in program.roles.values())


def _make_uniform(case: SymbolicProgram) -> SymbolicProgram:
    stores = case.stores
    if len(stores) != 1 or case.nests[0].nest.shape is not Shape.MAP or not stores[0].loops:
        return case
    [store] = stores
    role = case.roles[store.buffer]
    if not isinstance(role, ResultBuffer) or store.value.loops or find_buffers(store.value):
        return case
    return replace(case, roles={**case.roles, store.buffer: UniformResult(role.index)})


def place_uniform(_buffer: Buffer, index: str) -> str:
    """Where the result has the element of an index."""
    return f"strided_offset({index}, sizes, strides, ndim)"


def list_passed(program: SymbolicProgram) -> tuple[str, ...]:
    """What kernels take of the dimensions of a tensor that they access by its strides; nothing if there is none."""
    return _STRIDES if find_strided(program) else _DIMENSIONS if is_uniform(program) else ()


def write_dims(tensor: str) -> Line:
    """A variable for the dimensions of a result, of which those that one stride goes over are one."""
    return call_helper("dims", "merge_dims", tensor, "DimMask().set()")
