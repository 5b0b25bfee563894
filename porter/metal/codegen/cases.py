"""Joins cases that one kernel can serve: they differ in the types of their tensors alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from porter.core.dtypes import BOOL, INT, DType
from porter.core.errors import PorterError
from porter.loops.expressions import Expr, Op, intern, walk
from porter.loops.fusion import Store
from porter.loops.host_values import Arguments, evaluate
from porter.loops.program import SymbolicProgram
from porter.metal.codegen.elements import Complex
from porter.metal.codegen.kernel import KernelStyle, write_kernel
from porter.metal.loop_spelling import STATIC_CAST
from porter.mpsgraph.conditions import UNKNOWN, Answered, Question

_FEW = 4  # more conditions than that are not tried in all combinations


def join_cases(cases: Sequence[SymbolicProgram], style: KernelStyle) -> tuple[SymbolicProgram, ...]:
    """The cases, those joined whose kernels have one text as a template over all of their types.

    A case that was joined from others has the conditions that these have in common, and comes after all that were not;
    those without a condition come last, and of these the one of most types. Of two that differ in a flag, the one
    without it comes last. Where what joined cases have in common does not separate them, what else all their calls
    answer alike does.
    """
    wide = _join_alike(cases, style, lambda one, other: True)
    joined = [each for each in wide if each not in cases]

    def rank(case: SymbolicProgram) -> tuple[bool, bool, int, bool]:
        is_negated = len(case.when) == 1 and not case.when[0].holds
        return not case.when, case in joined, len(case.dtypes), is_negated

    ordered = sorted(wide, key=rank)
    if not any(set(one.dtypes) & set(other.dtypes) for i, one in enumerate(joined) for other in joined[:i]):
        return tuple(ordered)
    made = next(_list_chains(ordered), None) or _choose_anew(ordered, cases)
    if made is None:
        return _join_alike(cases, style, lambda one, other: one.when == other.when)
    types = tuple(dict.fromkeys(dtype for case in made for dtype in case.dtypes))
    return tuple(_widen(case, types) for case in made)


def _widen(case: SymbolicProgram, types: Sequence[DType]) -> SymbolicProgram:
    """A case that conditions choose, for all of some types that are of its kinds: calls of a few had no time to run."""
    kinds = {dtype.kind for dtype in case.dtypes}
    missing = tuple(each for each in types if each.kind in kinds and each not in case.dtypes)
    calls = tuple(_with_type(case.example, case.key, each) for each in missing)
    return replace(case, dtypes=(*case.dtypes, *missing), calls=(*case.calls, *calls))


def _with_type(call: Arguments, key: str, dtype: DType) -> Arguments:
    """A call whose tensors of the type of `key` are of another."""
    own = call.tensors[key].dtype
    tensors = {name: replace(each, dtype=dtype) if each.dtype == own else each for name, each in call.tensors.items()}
    return replace(call, tensors=tensors)


def _list_chains(cases: Sequence[SymbolicProgram]) -> Iterator[tuple[SymbolicProgram, ...]]:
    """The orders of cases, by which is last, where each excludes the calls of those that come after it."""
    for last in reversed(cases):
        made = (*(each for each in cases if each is not last), last)
        if all(_excludes(one, other) for i, one in enumerate(made) for other in made[i + 1 :]):
            yield made


def _choose_anew(
    joined: Sequence[SymbolicProgram], cases: Sequence[SymbolicProgram]
) -> tuple[SymbolicProgram, ...] | None:
    """Joined cases by conditions of their own: what separated the cases they come from need not be common to these."""
    questions = dict.fromkeys(each.question for case in cases for each in case.when if each != UNKNOWN)
    known = [replace(each, when=tuple(_list_answers(questions, each.calls))) for each in joined]
    known.sort(key=lambda each: not any(condition.holds for condition in each.when))
    chain = next(_list_chains(known), ())
    made = [
        replace(each, when=_choose_fewest(each.when, [call for later in chain[i + 1 :] for call in later.calls]))
        for i, each in enumerate(chain)
    ]
    return tuple(made) or None


def _list_answers(questions: Iterable[Question], calls: Sequence[Arguments]) -> Iterator[Answered]:
    """The conditions that hold for all calls, those first that say what is, not what is not."""
    both = [Answered(question, holds) for holds in (True, False) for question in questions]
    yield from (each for each in both if all(each.is_met(call.others) for call in calls))


def _choose_fewest(conditions: tuple[Answered, ...], others: Sequence[Arguments]) -> tuple[Answered, ...]:
    """The first and fewest of conditions of which every other call fails one."""
    few = (each for count in range(_FEW) for each in combinations(conditions, count))
    return next(
        (each for each in few if all(any(one.opposite.is_met(call.others) for one in each) for call in others)),
        conditions,
    )


def _excludes(one: SymbolicProgram, other: SymbolicProgram) -> bool:
    """Whether no call of another program meets the conditions of one."""
    return all(any(each.opposite.is_met(call.others) for each in one.when) for call in other.calls)


def _join_alike(
    cases: Sequence[SymbolicProgram], style: KernelStyle, may_join: Callable[[SymbolicProgram, SymbolicProgram], bool]
) -> tuple[SymbolicProgram, ...]:
    made: list[SymbolicProgram] = []
    for case in cases:
        found = ((i, _join_one(each, case, style)) for i, each in enumerate(made) if may_join(each, case))
        at, joined = next((each for each in found if each[1]), (len(made), case))
        made[at : at + 1] = [joined or case]
    return tuple(made)


def _join(one: SymbolicProgram, other: SymbolicProgram) -> SymbolicProgram:
    """The first program for the calls of both, which have the conditions in common that both need."""
    types = tuple(dict.fromkeys((*one.dtypes, *other.dtypes)))
    when = tuple(each for each in one.when if each in other.when and each != UNKNOWN)
    return replace(one, when=when, dtypes=types, calls=(*one.calls, *other.calls))


def _join_one(one: SymbolicProgram, other: SymbolicProgram, style: KernelStyle) -> SymbolicProgram | None:
    """The program that writes the kernels of two for all of their types; None if there is none, or launches differ."""
    if one.key != other.key or len(one.nests) != len(other.nests):
        return None
    calls = (*one.calls, *other.calls)
    rows = [(a.rows, b.rows) for a, b in zip(one.nests, other.nests, strict=True)]
    if any(evaluate(a, call) != evaluate(b, call) for a, b in rows if a != b for call in calls):
        return None
    both = _join(one, other), _join(other, one)
    try:
        if _write(both[0], style) == _write(both[1], style):
            return both[0]
        real = replace(style, complex_numbers=Complex.REFUSES)  # which the case of some types may lack
        alone = [_write(each, real, templates=True) for each in (one, other)]
        if found := next((each for each in both if alone == [_write(each, real, templates=True)] * 2), None):
            return found
        return both[0] if computes_alike(one, other) else both[1] if computes_alike(other, one) else None
    except PorterError:  # the types of one do not follow from those of the other
        return None


def _write(program: SymbolicProgram, style: KernelStyle, templates: bool = False) -> list[tuple[str, list[object]]]:
    """The text of each kernel, or the template alone, and the numbers that it takes.

    Conversions have one spelling: they differ for complex elements alone, and both joined programs are of those where
    one is.
    """
    names = {i: f"result{i}" for i, _ in enumerate(program.roles)}
    plain = replace(style, complex_cast=STATIC_CAST)
    kernels = [write_kernel(program, nest, "kernel", names, plain) for nest in program.nests]
    return [
        (kernel.template if templates else kernel.source, [(number.name, number.value) for number in kernel.numbers])
        for kernel in kernels
    ]


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
