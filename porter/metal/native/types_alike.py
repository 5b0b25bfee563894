"""Whether the kernels of one program, as templates, compute for the types of another what its own kernels do.

Values of the type that a kernel is instantiated for are computed in `opmath_t` of it, bools as integers; others have
one type in all instances. Bools are exact in any type, so it does not matter which one reads them.
"""

from __future__ import annotations

from porter.core.dtypes import BOOL, INT, DType
from porter.loops.expressions import Expr, Op, intern, walk
from porter.loops.fusion import Store
from porter.loops.program import SymbolicProgram


def computes_alike(one: SymbolicProgram, other: SymbolicProgram) -> bool:
    """Whether one program's kernels serve the types of the other, whose kernels have the same rows and buffers."""
    return all(_resolve(one, dtype) == _resolve(other, dtype) for dtype in other.dtypes)


def _resolve(program: SymbolicProgram, dtype: DType) -> list[tuple[object, ...]]:
    """What each store of a program writes and where, in an instance for one type."""
    stores = (store for symbolic in program.nests for store in symbolic.nest.stores)
    return [_resolve_store(program, store, dtype) for store in stores]


def _resolve_store(program: SymbolicProgram, store: Store, dtype: DType) -> tuple[object, ...]:
    key = program.example.tensors[program.key].dtype
    computed = INT if dtype == BOOL else dtype.opmath

    def resolve(type_: DType | None) -> DType | None:
        return computed if type_ is not None and type_ != BOOL and type_ == key.opmath else type_

    made: dict[Expr, Expr] = {}
    for each in walk(store.place, store.value):
        args, attribute = [made[arg] for arg in each.args], each.attribute
        type_ = resolve(each.dtype)
        if each.op is Op.CAST and (type_ == args[0].dtype or (dtype == BOOL and args[0].op is Op.LOAD)):
            made[each] = args[0]
            continue
        if each.op is Op.LOAD:
            type_, attribute = computed, program.roles[each.attribute]  # type: ignore[index]
        if each.op is Op.NUMBER and isinstance(attribute, (int, float)) and float(attribute).is_integer():
            type_, attribute = (computed if dtype == BOOL else type_), int(attribute)
        made[each] = intern(each.op, args, type_, attribute)
    return program.roles[store.buffer], store.guard, store.loops, made[store.place], made[store.value]
