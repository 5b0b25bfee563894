"""What else a port has to take than recorded calls show: other types of tensors, and NaN.

A floating tensor may have one that graphs cast to the type they compute in. A tensor of 64-bit integers may have those
for which the old code, or the CPU, computes the same: samples give places and classes as 64-bit integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, permutations
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from porter.core import dtypes
from porter.core.dtypes import BOOL, LONG, DType, Kind
from porter.core.errors import PorterError
from porter.loops.expressions import Expr, Op, call, intern, walk
from porter.loops.program import ArgumentBuffer, Programs, SymbolicProgram, list_loaded
from porter.recording.calls import OpCall, count_call, read_dtype
from porter.recording.evaluation import compute_results
from porter.recording.runs import RecordedRun, run_call
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
