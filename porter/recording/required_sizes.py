"""Sizes that the CPU requires of a tensor, by those of others: of a gradient, those of the result that it belongs to.

A relation is learned from the calls of a case, all of which have it. It is required if the CPU refuses calls without
it: a row has no meta function, and the CPU's own code checks what neither the old code nor its graph does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations

import torch
from torch.utils import _pytree as pytree

from porter.core.errors import PorterError
from porter.loops.host_values import Arguments, Binary, Element, HostValue, Operator, Rank, Size, evaluate
from porter.loops.host_values import Constant as Number
from porter.loops.program import RequiredSize
from porter.recording.call_programs import read_call_arguments
from porter.recording.calls import OpCall, count_call
from porter.recording.runs import RecordedRun, run_call
from porter.verdict.suite.children import ask_child

_LEAST = 3  # calls that show a relation, of sizes that differ
_ASKED = 2  # of these, that are tried with other sizes
_CHANGES = 3  # of a call: the old code is asked with one
_TENSORS = ("Tensor", "Optional[Tensor]")
Run = Callable[[OpCall], object]


def find_required_sizes(cases: Iterable[Sequence[RecordedRun]], run: Run = run_call) -> tuple[RequiredSize, ...]:
    """What the CPU requires of the sizes in calls of some cases, and the old code, which `run` calls, does not refuse
    in the words of the CPU.
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
    add = partial(Binary, Operator.ADD)
    return [*sizes, *(add(add(size, one), other) for one, other in pairs for size in sizes)]


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
    for call, arguments in shown:
        shape, tensor = arguments.tensors[relation.tensor].shape, call.tensors()[relation.tensor]
        if relation.dim is None or (len(shape) >= -relation.dim and shape[relation.dim] > 2):
            held.setdefault(shape, (call, tensor))
    for call, tensor in sorted(held.values(), key=lambda each: each[1].numel())[:_ASKED]:
        others = _vary(tensor.detach().cpu(), relation.dim)
        yield call, True
        yield from ((call.with_arguments({relation.tensor: other.to(tensor.device)}), False) for other in others)


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
