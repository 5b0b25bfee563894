"""What a port has to take or refuse besides recorded calls: other types of tensors, NaN, and sizes.

A floating tensor may have one that graphs cast to the type they compute in. A tensor of 64-bit integers may have those
for which the old code, or the CPU, computes the same: samples give places and classes as 64-bit integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations, islice, permutations
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from porter.core import dtypes
from porter.core.dtypes import BOOL, LONG, DType, Kind
from porter.core.errors import PorterError
from porter.loops.expressions import Expr, Op, call, intern, walk
from porter.loops.host_values import Apply, Arguments, Element, HostValue, Rank, Size, evaluate
from porter.loops.host_values import Constant as Number
from porter.loops.program import ArgumentBuffer, Programs, RequiredSize, SymbolicProgram, list_loaded
from porter.recording.call_programs import read_call_arguments
from porter.recording.calls import OpCall, count_call, read_dtype
from porter.recording.evaluation import compute_results
from porter.recording.runs import RecordedRun, run_call
from porter.verdict.suite.children import ask_child
from porter.verdict.suite.leaves import list_tensors

_COMPARISONS = ("notEqual", "equal", "lessThan", "lessThanOrEqualTo", "greaterThan", "greaterThanOrEqualTo")


def keep_nan(program: SymbolicProgram, runs: Sequence[RecordedRun]) -> SymbolicProgram:
    """The program of a case, of which these are some calls, or one that keeps NaN as the CPU does.

    Graphs that make a number of NaN where the CPU keeps it: one that counts what is not zero counts NaN, too. A program
    keeps NaN where the CPU does in calls with one NaN, and only if that makes the two agree in all of them.
    """
    kept = _rewrite(program)
    if kept.nests == program.nests or any(dtype.kind is not Kind.FLOATING for dtype in program.dtypes):
        return program
    loses = False
    for ran in sorted(runs, key=lambda ran: sum(each.numel() for each in ran.given.values()))[-_TRIED:]:
        for elements in _list_with_nan(ran):
            try:
                theirs = _compute_on_cpu(ran, elements)
                before, now = (_find_nan(each, ran, elements) for each in (program, kept))
            except (PorterError, RuntimeError):  # the CPU lacks the type, or elements are too many
                continue
            if any(at not in theirs or not now[at].equal(theirs[at].isnan()) for at in now):
                return program
            loses |= any(not before[at].equal(now[at]) for at in now)
    return kept if loses else program


def _list_with_nan(ran: RecordedRun) -> Iterator[dict[str, Tensor]]:
    """The tensors of a call with a NaN among the elements of one of them."""
    elements = {name: tensor for name, tensor in ran.given.items() if name in ran.call.arguments}
    for name, tensor in elements.items():
        if tensor.is_floating_point() and tensor.numel():
            changed = tensor.clone(memory_format=torch.contiguous_format)
            changed.view(-1)[tensor.numel() // 2] = torch.nan
            yield {**elements, name: changed}


def _compute_on_cpu(ran: RecordedRun, elements: Mapping[str, Tensor]) -> dict[int, Tensor]:
    """The results of a call with other tensors, by their places."""
    count_call(sum(tensor.numel() for tensor in elements.values()))
    with torch.no_grad():
        result = ran.call.with_arguments({name: tensor.clone() for name, tensor in elements.items()}).run()
    return {at: each for at, each in enumerate(pytree.tree_leaves(result)) if isinstance(each, Tensor)}


def _find_nan(program: SymbolicProgram, ran: RecordedRun, elements: Mapping[str, Tensor]) -> dict[int, Tensor]:
    """Where the results of a program are NaN."""
    results = compute_results(program, ran, elements)
    return {at: result.isnan().view(ran.made[at].shape) for at, result in results.items()}


def _rewrite(program: SymbolicProgram) -> SymbolicProgram:
    """The program with NaN for each number that only says how a NaN compares."""
    nests = []
    for symbolic in program.nests:
        stores = tuple(replace(store, value=_rewrite_value(store.value)) for store in symbolic.nest.stores)
        nests.append(replace(symbolic, nest=replace(symbolic.nest, stores=stores)))
    return replace(program, nests=tuple(nests))


def _rewrite_value(root: Expr) -> Expr:
    kept: dict[Expr, Expr] = {}
    for value in walk(root):
        kept[value] = intern(value.op, [kept[arg] for arg in value.args], value.dtype, value.attribute)
        compared = _find_compared(value)
        if compared is not None and value.dtype is not None:
            is_nan = call("isNaN", (kept[compared],), BOOL)
            kept[value] = call("select", (is_nan, kept[compared], kept[value]), value.dtype)
    return kept[root]


def _find_compared(value: Expr) -> Expr | None:
    """The floating value that only a comparison reads which a floating number is chosen by; None for other values."""
    if value.dtype is None or value.dtype.kind is not Kind.FLOATING:
        return None
    chosen = value.op is Op.CALL and value.attribute == "select" and all(arg.op is Op.NUMBER for arg in value.args[1:])
    if not chosen and value.op is not Op.CAST:
        return None
    tested = value.args[0]
    if tested.op is Op.CAST or (tested.op is Op.CALL and tested.attribute in _COMPARISONS):
        tested = tested.args[0]
    is_float = tested.dtype is not None and tested.dtype.kind is Kind.FLOATING
    return tested if is_float and tested.dtype == value.dtype else None


if TYPE_CHECKING:
    from aten_overlay.apple.mpsgraph.recorder import GraphRun

_TRIED = 3  # calls of each element type, and with another one
_CAST = "castTensor:toType"
_Run = Callable[[OpCall], RecordedRun]
_OTHERS = tuple(each for each in dtypes.ALL if each.kind is Kind.INTEGRAL and each != LONG)


def find_cast_types(
    programs: Programs, runs: Sequence[RecordedRun], run: _Run = run_call
) -> dict[str, tuple[DType, ...]]:
    """The floating types of tensors that may differ from the first one's, as they do in no recorded call.

    The operands of a node have one type: a tensor may have another where casts alone read it and the results are the
    same.
    """
    found = {}
    for name in _list_alike(programs):
        by_type = _group(name, runs)
        tried = ((ran, other) for type_, other in permutations(by_type, 2) for ran in by_type[type_][:_TRIED])
        if len(by_type) > 1 and all(_casts(ran, name, other, run) for ran, other in tried):
            found[name] = tuple(by_type)
    return found


def _list_alike(programs: Programs) -> Iterator[str]:
    """The tensors that kernels read, and that have the floating type of the first one in all calls."""
    keys = {name: case.key for case in programs.cases for name in sorted(list_loaded(case)) if name != case.key}
    for name, key in keys.items():
        given = [call.tensors for call in programs.calls if name in call.tensors]
        types = [(each[name].dtype, each[key].dtype) for each in given]
        if all(own == first and own.kind is Kind.FLOATING for own, first in types):
            yield name


def _group(name: str, runs: Sequence[RecordedRun]) -> dict[DType, list[RecordedRun]]:
    """The runs of which a graph reads a tensor, by its type."""
    found: dict[DType, list[RecordedRun]] = {}
    for ran in runs:
        if name in ran.call.arguments and name in ran.given and _list_readers(ran, name):
            found.setdefault(read_dtype(ran.given[name]), []).append(ran)
    return found


def _casts(ran: RecordedRun, name: str, dtype: DType, run: _Run) -> bool:
    """Whether the graphs of a call cast a tensor of another type, and compute what they do without."""
    rounded = ran.given[name].to(getattr(torch, dtype.torch))
    try:
        mixed = run(_make_call(ran, name, rounded))
        readers = _list_readers(mixed, name)
        if not readers or any(selector != _CAST for selector in readers):
            return False
        plain = run(_make_call(ran, name, rounded.to(ran.given[name].dtype)))
    except Exception:  # whatever checks raise
        return False
    return len(mixed.results) == len(plain.results) and all(map(_are_same, mixed.results, plain.results))


def _make_call(ran: RecordedRun, name: str, value: torch.Tensor) -> OpCall:
    """The call as it was made, with another tensor."""
    given = {**{each: tensor for each, tensor in ran.given.items() if each in ran.call.arguments}, name: value}
    made = {each: tensor.to(ran.call.arguments[each].device, copy=True) for each, tensor in given.items()}
    others = pytree.tree_map(lambda each: each.clone() if isinstance(each, torch.Tensor) else each, ran.call.arguments)
    return OpCall(ran.call.overload, {**others, **made})


def _list_readers(ran: RecordedRun, name: str) -> list[str]:
    """The selectors of the nodes that read a tensor, in all graphs of a call."""
    address = ran.call.arguments[name].data_ptr()
    return [selector for graph in ran.runs for selector in _list_readers_in(graph, address)]


def _list_readers_in(run: GraphRun, address: int) -> Iterator[str]:
    fed = [ref for ref, place in run.feeds.items() if place == address]
    for node in run.graph.nodes:
        if any(each in fed for each in pytree.tree_leaves(list(node.arguments))):
            yield node.selector


def with_conversions(programs: Programs, runs: Sequence[RecordedRun]) -> Programs:
    """The programs of an overload with the types that its tensors may have instead, as recorded calls do not show."""
    found = {name: types for name in _list_long(programs) if (types := find_other_types(name, runs))}
    found |= find_cast_types(programs, runs)
    return replace(programs, cases=tuple(replace(each, conversions=found) for each in programs.cases))


def _list_long(programs: Programs) -> Iterator[str]:
    """The tensors that programs read, but are not chosen by, and that are of 64-bit integers in all calls."""
    roles = ((role, case.key) for case in programs.cases for role in case.roles.values())
    for name in dict.fromkeys(
        role.name for role, key in roles if isinstance(role, ArgumentBuffer) and role.name != key
    ):
        given = [call.tensors[name].dtype for call in programs.calls if name in call.tensors]
        if given and all(dtype == LONG for dtype in given):
            yield name


def find_other_types(name: str, runs: Sequence[RecordedRun]) -> tuple[DType, ...]:
    """The types that a tensor of 64-bit integers may have instead in calls."""
    with_it = [ran for ran in runs if name in ran.given and name in ran.call.arguments]
    return tuple(dtype for dtype in _OTHERS if _may_have(name, dtype, with_it))


def _may_have(name: str, dtype: DType, runs: Sequence[RecordedRun]) -> bool:
    """Whether some calls compute the same with a tensor of another type, all where they were made or all on the CPU."""
    tried = list(islice((ran for ran in runs if _holds(ran.given[name], dtype)), _TRIED))
    places = ({ran.call.arguments[name].device for ran in tried}, {torch.device("cpu")})
    known = [place for place in places if len(place) == 1]
    return bool(tried) and any(all(_computes_same(ran, name, dtype, *place) for ran in tried) for place in known)


def _holds(value: torch.Tensor, dtype: DType) -> bool:
    """Whether a type has the elements of a tensor, if there are any."""
    return value.numel() > 0 and torch.equal(value.to(getattr(torch, dtype.torch)).long(), value)


def _computes_same(ran: RecordedRun, name: str, dtype: DType, device: torch.device) -> bool:
    try:
        with torch.no_grad():
            known, found = (_compute(ran, name, each, device) for each in (LONG, dtype))
    except Exception:  # whatever checks raise
        return False
    return all(map(_are_same, known, found))


def _compute(ran: RecordedRun, name: str, dtype: DType, device: torch.device) -> list[torch.Tensor]:
    """The results of a call whose tensor has another type."""
    out_names = ran.call.out_names()
    given = {**ran.call.arguments, **{each: value for each, value in ran.given.items() if each in ran.call.arguments}}

    def copy(each: Any) -> Any:
        return each.detach().to(device, copy=True) if isinstance(each, torch.Tensor) else each

    arguments = {each: torch.empty_like(value) if each in out_names else value for each, value in given.items()}
    arguments = pytree.tree_map(copy, {**arguments, name: given[name].to(getattr(torch, dtype.torch))})
    return [each.cpu() for each in list_tensors(OpCall(ran.call.overload, arguments).run())]


def _are_same(one: torch.Tensor, other: torch.Tensor) -> bool:
    if (one.shape, one.dtype) != (other.shape, other.dtype):
        return False
    return bool(((one == other) | (one != one) & (other != other)).all())


_LEAST = 3  # calls that show a relation, of sizes that differ
_ASKED = 2  # of these, that are tried with other sizes
_CHANGES = 3  # of a call: the old code is asked with one
_TENSORS = ("Tensor", "Optional[Tensor]")
Run = Callable[[OpCall], object]


def find_required_sizes(cases: Iterable[Sequence[RecordedRun]], run: Run = run_call) -> tuple[RequiredSize, ...]:
    """What the CPU requires of the sizes in calls of some cases, and the old code, which `run` calls, does not refuse
    in the words of the CPU.

    A relation is learned from the calls of a case, all of which have it. It is required if the CPU refuses calls
    without it: a row has no meta function, and the CPU's own code checks what neither the old code nor its graph does.
    """
    settled: dict[RequiredSize, RequiredSize | None] = {}  # a relation of an earlier case is not asked for again
    for runs in cases:
        calls = [(ran.before or ran).call for ran in runs]
        shown = [(call, read_call_arguments(call, {})) for call in calls]
        for tensor, others in _list_tensors(calls):
            relations = _list_relations(tensor, others, [arguments for _, arguments in shown])
            new = [each for each in relations if each not in settled]
            for relation, asked in _list_asked(new, shown):
                settled[relation] = _ask_old_code(relation, asked, run)
    return tuple(each for each in settled.values() if each)


def _list_tensors(calls: Sequence[OpCall]) -> Iterator[tuple[str, list[str]]]:
    """The tensors that all calls give, each with those that always must be given."""
    schema = calls[0].overload._schema.arguments if len(calls) >= _LEAST else ()
    plain = [each for each in schema if str(each.type) in _TENSORS and not each.is_out]
    always = [each.name for each in plain if all(each.name in call.tensors() for call in calls)]
    needed = [each.name for each in plain if str(each.type) == "Tensor" and each.name in always]
    yield from ((name, [other for other in needed if other != name]) for name in always)


def _list_relations(tensor: str, others: Sequence[str], calls: Sequence[Arguments]) -> Iterator[RequiredSize]:
    """The first value that all calls have for the rank of a tensor, and for each size of it, from the back."""
    shapes = [[call.tensors[name].shape for call in calls] for name in (tensor, *others)]
    ranks = list(map(len, shapes[0]))
    same = {name for name, of_calls in zip(others, shapes[1:], strict=True) if of_calls == shapes[0]}
    others = sorted(others, key=lambda other: other not in same)  # of its own shape first
    alike = (rank for rank in map(Rank, others) if [evaluate(rank, call) for call in calls] == ranks)
    yield from (RequiredSize(tensor, None, value) for value in [*alike][:1])
    for dim in range(-1, -max(ranks) - 1, -1):
        having = [call for call, rank in zip(calls, ranks, strict=True) if rank >= -dim]
        sizes = [call.tensors[tensor].shape[dim] for call in having]
        if len(having) >= _LEAST and len(set(sizes)) > 1:
            values = _list_values(dim, others, having[0])
            fitting = (each for each in values if [evaluate(each, call) for call in having] == sizes)
            yield from (RequiredSize(tensor, dim, value) for value in [*fitting][:1])


def _list_values(dim: int, others: Sequence[str], call: Arguments) -> list[HostValue]:
    """What a size may be: one of another tensor, the same dimension first, or that with two numbers of a list added."""
    ranks = [(other, len(call.tensors[other].shape)) for other in others]
    places = [(other, place) for other, rank in ranks for place in (*range(rank), *range(-1, -rank - 1, -1))]
    sizes = [Size(other, Number(place)) for other, place in sorted(places, key=lambda each: each[1] != dim)]
    lists = {name: len(value) for name, value in call.others.items() if isinstance(value, tuple)}
    pairs = [(Element(name, i), Element(name, j)) for name, n in lists.items() for i, j in combinations(range(n), 2)]
    pairs.sort(key=lambda pair: pair[1].index - pair[0].index)  # what belongs to a dimension is side by side
    return [*sizes, *(Apply("+", (Apply("+", (size, one)), other)) for one, other in pairs for size in sizes)]


def _list_asked(
    relations: Sequence[RequiredSize], shown: Sequence[tuple[OpCall, Arguments]]
) -> Iterator[tuple[RequiredSize, list[tuple[OpCall, str]]]]:
    """The relations of a tensor that the CPU requires, each with calls without it and the CPU's words.

    Calls with the relation it takes: it refuses all of an element type that it lacks.
    """
    tried = [list(_list_without(relation, shown)) for relation in relations]
    answers = ask_child(partial(_list_refusals, [_on_cpu(call) for calls in tried for call, _ in calls])) or []
    if len(answers) != sum(map(len, tried)):  # a call without the relation ends the process
        return
    for relation, calls in zip(relations, tried, strict=True):
        words, answers = answers[: len(calls)], answers[len(calls) :]
        asked = [(call, why) for (call, has_it), why in zip(calls, words, strict=True) if not has_it]
        has_it = [not why for (_, has_it), why in zip(calls, words, strict=True) if has_it]
        if asked and all(has_it) and all(why for _, why in asked):
            yield relation, asked


def _ask_old_code(relation: RequiredSize, asked: Sequence[tuple[OpCall, str]], run: Run) -> RequiredSize | None:
    """The relation with what the old code refuses calls with; None if that is what the CPU says."""
    refused = [(_refuse(call, run), why) for call, why in asked[:_CHANGES]]
    if all(mine == theirs for mine, theirs in refused):
        return None
    return replace(relation, why=refused[0][0] if all(mine for mine, _ in refused) else "")


def _list_without(relation: RequiredSize, shown: Sequence[tuple[OpCall, Arguments]]) -> Iterator[tuple[OpCall, bool]]:
    """A few calls, each as it is, with other sizes behind it: an element less, one more, and one alone, which many
    operators expand. With them comes whether a call has the relation.

    They are made on the CPU: the fork's own code may lack what makes them.
    """
    held: dict[tuple[int, ...], tuple[OpCall, torch.Tensor]] = {}
    for shown_call, passed in shown:
        shape, tensor = passed.tensors[relation.tensor].shape, shown_call.tensors()[relation.tensor]
        if relation.dim is None or (len(shape) >= -relation.dim and shape[relation.dim] > 2):
            held.setdefault(shape, (shown_call, tensor))
    for shown_call, tensor in sorted(held.values(), key=lambda each: each[1].numel())[:_ASKED]:
        others = _vary(tensor.detach().cpu(), relation.dim)
        yield shown_call, True
        yield from ((shown_call.with_arguments({relation.tensor: other.to(tensor.device)}), False) for other in others)


def _vary(tensor: torch.Tensor, dim: int | None) -> Iterator[torch.Tensor]:
    if dim is None:
        yield tensor.unsqueeze(0)
        if tensor.ndim:
            yield tensor.select(0, 0).clone()
        return
    size = tensor.shape[dim]
    yield tensor.narrow(dim, 0, size - 1).clone()
    yield torch.cat([tensor, tensor.narrow(dim, 0, 1)], dim)
    yield tensor.narrow(dim, 0, 1).clone()


def _on_cpu(call: OpCall) -> OpCall:
    count_call(sum(each.numel() for each in call.tensors().values()))
    move: Mapping[str, object] = pytree.tree_map_only(torch.Tensor, lambda each: each.detach().cpu(), call.arguments)
    return OpCall(call.overload, move)


def _list_refusals(calls: Sequence[OpCall]) -> list[str]:
    return [_refuse(call, OpCall.run) for call in calls]


def _refuse(call: OpCall, run: Run) -> str:
    """What a call is refused with; "" if it is not."""
    try:
        with torch.no_grad():
            run(call)
    except PorterError as error:
        return error.what
    except Exception as error:  # whatever checks raise
        return str(error).partition("\n")[0] or type(error).__name__
    return ""
