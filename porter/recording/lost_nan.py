"""Graphs that make a number of NaN where the CPU keeps it: one that counts what is not zero counts NaN, too.

A program keeps NaN where the CPU does in calls with one NaN, and only if that makes the two agree in all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from porter.core.dtypes import BOOL, Kind
from porter.core.errors import PorterError
from porter.loops.expressions import Expr, Op, call, intern, walk
from porter.loops.program import SymbolicProgram
from porter.recording.calls import count_call
from porter.recording.evaluation import compute_results
from porter.recording.runs import RecordedRun

_TRIED = 3  # calls of a case
_COMPARISONS = ("notEqual", "equal", "lessThan", "lessThanOrEqualTo", "greaterThan", "greaterThanOrEqualTo")


def keep_nan(program: SymbolicProgram, runs: Sequence[RecordedRun]) -> SymbolicProgram:
    """The program of a case, of which these are some calls, or one that keeps NaN as the CPU does."""
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
