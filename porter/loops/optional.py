"""Programs that also compute calls which leave tensors out: a number stands for what is not read.

A result that is not asked for, and an argument that is not given, are not written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from porter.core.dtypes import BOOL
from porter.core.errors import explained
from porter.loops.expressions import Buffer, Expr, Op, intern, number, select, walk
from porter.loops.fusion import Store
from porter.loops.host_values import (
    Arguments,
    Given,
    HostValue,
    Named,
    Number,
    SizeProduct,
    is_result,
    list_names,
    substitute,
)
from porter.loops.printing import name_number
from porter.loops.program import ArgumentBuffer, ResultBuffer, Role, SymbolicNest, SymbolicProgram, Temporary, find_flag

NEUTRAL = (1, 0)  # what a factor and a term are that are left out


def list_left_out(program: SymbolicProgram, call: Arguments) -> list[str] | None:
    """The tensors of a program that a call leaves out; None if it has others, or numbers need one of them."""
    known = program.example.tensors.keys()
    if not call.tensors.keys() < known:
        return None
    missing = [name for name in known if name not in call.tensors]
    needed = (number.value for number in program.numbers if not isinstance(number.value, Given))
    sizes = (nest.rows for nest in program.nests)
    is_needed = any(list_names(each) & set(missing) for each in (*needed, *sizes))
    return None if is_needed or program.key in missing else missing


def list_read(program: SymbolicProgram, tensors: Iterable[str]) -> list[str]:
    """Those of some tensors whose elements other results depend on, and that no flag chooses yet."""
    wanted = set(tensors)
    found: dict[str, None] = {}
    for store in program.stores:
        chosen = {arg for each in walk(store.value) if find_flag(each) for arg in each.args}
        chosen |= {arg for each in chosen if each.op is Op.CAST for arg in each.args}
        for each in walk(store.value):
            if each.op is Op.LOAD and each not in chosen:
                name = _name_memory(program, each)
                if name in wanted and name != name_role(program.roles[store.buffer]):
                    found[name] = None
    return list(found)


def list_readers(program: SymbolicProgram, tensor: str) -> frozenset[str]:
    """The other memory of the call whose elements are computed from those of a tensor, directly or by way of others."""
    stores = program.stores
    made = {buffer for buffer, role in program.roles.items() if role == ArgumentBuffer(tensor)}
    known = len(made)
    while known:
        made |= {each.buffer for each in stores if made & _list_buffers(each)}
        known = len(made) if len(made) > known else 0
    written = (name_role(program.roles[each.buffer]) for each in stores if each.buffer in made)
    return frozenset(written) - {"", tensor}


def _list_buffers(store: Store) -> set[Buffer]:
    return {each.attribute for each in walk(store.value) if isinstance(each.attribute, Buffer)}


def is_explained(program: SymbolicProgram, tensor: str) -> bool:
    """Whether a call without a tensor asks for what is computed from it: then one number stands for it, not any."""
    readers = list_readers(program, tensor)
    without = [call for call in program.calls if tensor not in call.tensors]
    return any(not readers or not readers.isdisjoint(call.tensors) for call in without)


def allow_left_out(program: SymbolicProgram, tensors: Sequence[str], neutral: Mapping[str, Number]) -> SymbolicProgram:
    """The program for calls with and without some tensors; `neutral` are the numbers for those that are read."""
    flags = {each.value.tensor: each for each in program.numbers if isinstance(each.value, Given)}
    for name in tensors:
        if name not in flags:
            used = [each.name for each in (*program.numbers, *flags.values())]
            flags[name] = Named(name_number(Given(name), used), Given(name), True)
    numbers = dict.fromkeys((*program.numbers, *flags.values()))
    nests = [
        replace(
            each,
            nest=replace(each.nest, stores=tuple(_guard(store, program, flags, neutral) for store in each.nest.stores)),
        )
        for each in program.nests
    ]
    return replace(program, nests=tuple(nests), numbers=tuple(numbers))


def allow_unasked(program: SymbolicProgram, results: Collection[str], mask: str) -> SymbolicProgram:
    """The program for calls that leave out any of some results too; the argument `mask` has a flag for each result.

    Code that runs no graph for such calls has none to record, and returns results unwritten. Raises PTR361 for a result
    that others are computed from, or that sizes are taken of.
    """
    for role in list(dict.fromkeys(program.roles.values())):
        name = name_role(role)
        is_known = any(name not in call.tensors for call in program.calls)
        if not isinstance(role, ResultBuffer) or name not in results or is_known:
            continue
        counted = _count_by_arguments(program, name)
        if counted is None or list_read(counted, [name]):
            raise explained("PTR361", f"all recorded calls of {program.name} ask for result {role.index}")
        program = allow_left_out(counted, [name], {})
        program = replace(program, calls=(*program.calls, _leave_out(program.example, name, mask, role.index)))
    return program


def _leave_out(call: Arguments, result: str, mask: str, at: int) -> Arguments:
    """A call that does not ask for one of its results."""
    flags = call.others.get(mask)
    asked = tuple(bool(each) and i != at for i, each in enumerate(flags)) if isinstance(flags, tuple) else flags
    tensors = {name: value for name, value in call.tensors.items() if name != result}
    return replace(call, tensors=tensors, others={**call.others, mask: asked})


def _count_by_arguments(program: SymbolicProgram, result: str) -> SymbolicProgram | None:
    """The program whose kernels run over the sizes of an argument where they did over those of a result that always has
    the same; None if there is no such argument, or if kernels take sizes of the result.
    """
    arguments = (name for name in program.example.tensors if not is_result(name))
    alike = next((name for name in arguments if _have_one_shape(program, name, result)), result)
    count: dict[HostValue, HostValue] = {SizeProduct(result): SizeProduct(alike)}
    nests = tuple(replace(each, rows=substitute(each.rows, count)) for each in program.nests)
    numbers = [each.value for each in program.numbers if not isinstance(each.value, Given)]
    is_needed = any(result in list_names(each) for each in (*numbers, *(nest.rows for nest in nests)))
    return None if is_needed else replace(program, nests=nests)


def _have_one_shape(program: SymbolicProgram, one: str, other: str) -> bool:
    """Whether every call has both tensors, of the same shape."""
    pairs = [(call.tensors.get(one), call.tensors.get(other)) for call in program.calls]
    return all(a and b and a.shape == b.shape for a, b in pairs)


def _guard(store: Store, program: SymbolicProgram, flags: Mapping[str, Named], neutral: Mapping[str, Number]) -> Store:
    own = name_role(program.roles[store.buffer])
    made: dict[Expr, Expr] = {}
    for each in walk(store.value):
        made[each] = intern(each.op, [made[arg] for arg in each.args], each.dtype, each.attribute)
        if find_flag(each) and _name_loaded(program, each.args[1]) in neutral:
            made[each] = made[each.args[1]]  # another number stands for it now
            continue
        loaded = each.args[0] if each.op is Op.CAST else each
        name = _name_memory(program, loaded)
        is_value = loaded is not each or (each.dtype is not None and each.dtype.opmath == each.dtype)
        if name in neutral and name != own and is_value:
            assert each.dtype is not None
            flag = intern(Op.NUMBER, (), BOOL, flags[name])
            made[each] = select(flag, made[each], number(neutral[name], each.dtype))
    return replace(store, value=made[store.value], guard=flags.get(own, store.guard))


def _name_loaded(program: SymbolicProgram, value: Expr) -> str:
    """The name of what an element is of, perhaps in another type; nothing for another expression."""
    return _name_memory(program, value.args[0] if value.op is Op.CAST else value)


def _name_memory(program: SymbolicProgram, loaded: Expr) -> str:
    """The name of what an element is of; nothing for another expression."""
    return name_role(program.roles[loaded.attribute]) if isinstance(loaded.attribute, Buffer) else ""


def name_role(role: Role) -> str:
    """The name of memory of the call."""
    match role:
        case ArgumentBuffer(name):
            return name
        case ResultBuffer(index):
            return f"result{index}"
    return ""


def join_flags(program: SymbolicProgram) -> SymbolicProgram:
    """The program with one flag for tensors that every call gives, or leaves out, together."""
    flags = [each for each in program.numbers if isinstance(each.value, Given)]
    columns: dict[tuple[bool, ...], Named] = {}
    same = {}
    for flag in flags:
        assert isinstance(flag.value, Given)
        tensor = flag.value.tensor
        column = (is_result(tensor), *(tensor in call.tensors for call in program.calls))
        same[flag] = columns.setdefault(column, flag)
    return _replace_flags(program, same)


def _replace_flags(program: SymbolicProgram, same: Mapping[Named, Named]) -> SymbolicProgram:
    if all(old == new for old, new in same.items()):
        return program

    def change(store: Store) -> Store:
        made: dict[Expr, Expr] = {}
        for each in walk(store.value):
            attribute = (
                same.get(each.attribute, each.attribute) if isinstance(each.attribute, Named) else each.attribute
            )
            made[each] = intern(each.op, [made[arg] for arg in each.args], each.dtype, attribute)
        return replace(
            store, value=made[store.value], guard=same.get(store.guard, store.guard) if store.guard else None
        )

    nests = [
        replace(each, nest=replace(each.nest, stores=tuple(map(change, each.nest.stores)))) for each in program.nests
    ]
    numbers = dict.fromkeys(same.get(each, each) for each in program.numbers)
    return replace(program, nests=tuple(nests), numbers=tuple(numbers))


def find_flag_of(program: SymbolicProgram, tensor: str) -> Named | None:
    """The flag of a tensor that some calls leave out; None of one that all give."""
    flags = (each for each in program.numbers if isinstance(each.value, Given))
    return next((each for each in flags if _are_given_together(program, each, tensor)), None)


def _are_given_together(program: SymbolicProgram, flag: Named, tensor: str) -> bool:
    assert isinstance(flag.value, Given)
    same_kind = is_result(flag.value.tensor) == is_result(tensor)
    return same_kind and all((flag.value.tensor in each.tensors) == (tensor in each.tensors) for each in program.calls)


def name_flags(program: SymbolicProgram, names: Mapping[str, str]) -> SymbolicProgram:
    """The program with its flags of results called as these; `names` are the variables of results."""
    flags = [each for each in program.numbers if isinstance(each.value, Given) and is_result(each.value.tensor)]
    return _replace_flags(program, {each: replace(each, name=f"has_{names[each.value.tensor]}") for each in flags})  # type: ignore[union-attr, index]


def drop_unread(program: SymbolicProgram) -> SymbolicProgram:
    """The program without what it stores in memory of its own that nothing reads."""
    read = {buffer for nest in program.nests for buffer in nest.nest.reads()}

    def keep(symbolic: SymbolicNest) -> SymbolicNest:
        stores = (
            each
            for each in symbolic.nest.stores
            if each.buffer in read or not isinstance(program.roles[each.buffer], Temporary)
        )
        return replace(symbolic, nest=replace(symbolic.nest, stores=tuple(stores)))

    nests = tuple(each for each in map(keep, program.nests) if each.nest.stores)
    kept: set[Buffer] = {
        buffer for nest in nests for buffer in (*nest.nest.reads(), *(s.buffer for s in nest.nest.stores))
    }
    roles = {buffer: role for buffer, role in program.roles.items() if buffer in kept}
    return replace(program, nests=nests, roles=roles) if nests else program
