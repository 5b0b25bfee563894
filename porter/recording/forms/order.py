"""Finds results that are elements in another order, or places: of what is not zero, or drawn at random."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations, product
from math import prod

import torch
from torch import Tag

from porter.loops.fit import MIN_CALLS
from porter.metal.forms.categorical import Categorical
from porter.metal.forms.concatenation import Concatenation
from porter.metal.forms.sort import Kept, Permutation, Sort
from porter.metal.forms.unique import Nonzero, Unique
from porter.recording.calls import OpCall, read_dtype
from porter.recording.forms.agreement import (
    TOLERANCES,
    count_elements,
    find_first,
    read_dtypes,
    read_types,
    tell_form,
)
from porter.recording.runs import RecordedRun

_RESULTS = 3  # values, where each element is among them, how many there are of each
_DIMS = ("int", "Optional[int]")


def find_sort(runs: Sequence[RecordedRun]) -> Sort | None:
    """The first order that foretells the results of every call; None if none does, or for few calls."""
    if not tell_form(runs, (1, 2)) or len({len(run.results) for run in runs}) != 1:
        return None
    return find_first(_list_sorts(min(runs, key=count_elements)), runs, _agrees_sorted)


def _list_sorts(run: RecordedRun) -> Iterator[Sort]:
    """The orders that the arguments of a schema allow for."""
    types = read_types(run.call)
    tensors = [name for name in types if name in run.given]
    dims = [name for name, type_ in types.items() if type_ == "int" and name == "dim"]
    whole = [name for name, type_ in types.items() if type_ == "int" and isinstance(run.call.arguments.get(name), int)]
    counts = [name for name in whole if name not in dims]  # the type of a result is no number
    flags: list[str | bool] = [False, True, *(name for name, type_ in types.items() if type_ == "bool")]
    for source, dim, descending in product(tensors, dims or [""], flags):
        order = Sort(source, Kept.ALL, dim, descending, places=len(run.results) == 2)
        yield order
        yield from (replace(order, kept=Kept.FIRST, count=count) for count in counts)
        yield replace(order, kept=Kept.MEDIAN)


def _agrees_sorted(candidate: Sort, run: RecordedRun) -> bool:
    """Whether a call has the results that a candidate foretells: values, and where they were."""
    try:
        wanted = compute_sort(candidate, run.given[candidate.source], run.call.arguments)
    except (RuntimeError, IndexError, TypeError):  # the arguments do not fit, or torch refuses the type
        return False
    return all(_is_same(each.detach().cpu(), want) for each, want in zip(run.results, wanted, strict=False))


def _is_same(form: torch.Tensor, wanted: torch.Tensor) -> bool:
    if form.dtype != wanted.dtype or form.numel() != wanted.numel():
        return False
    form, wanted = form.reshape(-1), wanted.reshape(-1)
    return bool(((form == wanted) | (form.isnan() & wanted.isnan())).all())


def compute_sort(
    form: Sort, source: torch.Tensor, arguments: Mapping[str, object]
) -> tuple[torch.Tensor, torch.Tensor]:
    """The values, and where they were, of a call."""
    dim = int(str(arguments[form.dim])) if form.dim else 0
    rows = source.reshape(-1) if not form.dim or not source.ndim else source
    descending = arguments[form.descending] if isinstance(form.descending, str) else form.descending
    values, places = torch.sort(rows, stable=True, dim=dim, descending=bool(descending))
    if form.kept is Kept.FIRST:
        count = int(str(arguments[form.count]))
        return values.narrow(dim, 0, count), places.narrow(dim, 0, count)
    if form.kept is Kept.MEDIAN:
        middle = (rows.size(dim) - 1) // 2
        at = torch.where(values.isnan().any(dim), (~values.isnan()).sum(dim), middle).unsqueeze(dim)
        return values.gather(dim, at), places.gather(dim, at)
    return values, places


def find_nonzero(runs: Sequence[RecordedRun]) -> Nonzero | None:
    """The tensor whose coordinates all calls return; None if there is none, or for few calls."""
    if not tell_form(runs):
        return None
    for name in (name for name in runs[0].given if all(name in run.given for run in runs)):
        if all(torch.equal(run.given[name].nonzero(), run.results[0].detach().cpu()) for run in runs):
            return Nonzero(name, read_dtypes(run.given[name] for run in runs))
    return None


def find_unique(runs: Sequence[RecordedRun]) -> Unique | None:
    """The first of distinct values that foretell the results of every call; None if none do, or for few calls.

    Calls of elements that all differ, or that are sorted already, would not tell; nor would calls without a flag.
    """
    if not tell_form(runs, (_RESULTS,)) or any(run.call.out_names() for run in runs):
        return None
    ordered = sorted(runs, key=count_elements)
    fitting = [form for form in _list_uniques(ordered[0]) if all(_agrees_distinct(form, run) for run in ordered)]
    asked = [form for form in fitting if _is_asked(form, runs)]
    return replace(asked[0], dtypes=read_dtypes(run.results[0] for run in runs)) if len(asked) == 1 else None


def _list_uniques(run: RecordedRun) -> Iterator[Unique]:
    """What the arguments of a schema allow for."""
    types = read_types(run.call)
    tensors = [name for name in types if name in run.given]
    dims = [name for name, type_ in types.items() if type_ in _DIMS and name == "dim"]
    flags = permutations([name for name, type_ in types.items() if type_ == "bool"], 2)
    for source, dim, (inverse, counts) in product(tensors, dims or [""], flags):
        yield Unique(source, False, inverse, counts, dim)
        if not dim:
            yield Unique(source, True, inverse, counts)


def _is_asked(candidate: Unique, runs: Sequence[RecordedRun]) -> bool:
    """Whether calls ask for all that a candidate says, and some have elements that are there more than once."""
    flags = candidate.inverse, candidate.counts
    values = ({bool(each.call.arguments[flag]) for each in runs} for flag in flags)
    repeated = any(each.results[0].numel() < each.given[candidate.source].numel() for each in runs)
    return repeated and all(each == {False, True} for each in values)


def _agrees_distinct(candidate: Unique, run: RecordedRun) -> bool:
    """Whether a call has the results that a candidate foretells, of those that it asks for."""
    if candidate.source not in run.given:
        return False
    try:
        wanted = compute_unique(candidate, run.given[candidate.source], run.call.arguments)
    except (RuntimeError, IndexError, TypeError):  # the arguments do not fit, or torch refuses the type
        return False
    asked = (True, bool(run.call.arguments[candidate.inverse]), bool(run.call.arguments[candidate.counts]))
    results = (each.detach().cpu() for each in run.results)
    return all(
        not is_asked or (form.dtype == want.dtype and torch.equal(form, want))
        for form, want, is_asked in zip(results, wanted, asked, strict=True)
    )


def compute_unique(
    form: Unique, source: torch.Tensor, arguments: Mapping[str, object]
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The values, where each element is among them, and how many there are of each, of a call."""
    dim = arguments[form.dim] if form.dim else None
    along = 0 if dim is None else int(str(dim))
    rows = source.reshape(-1) if dim is None else source.movedim(along, 0)
    places = torch.arange(len(rows))
    if form.is_sorted:
        rows, places = rows.sort(dim=0, stable=True)
    is_new = torch.ones(len(rows), dtype=torch.bool)
    is_new[1:] = (rows[1:] != rows[:-1]).reshape(len(rows[1:]), prod(rows.shape[1:])).any(1)
    ranks = is_new.cumsum(0) - 1
    inverse = torch.empty_like(ranks).index_put((places,), ranks)
    counts = torch.zeros(int(is_new.sum()), dtype=torch.int64).index_add(0, ranks, torch.ones_like(ranks))
    values = rows[is_new]
    if dim is None:
        return values, inverse.reshape(source.shape), counts
    return values.movedim(0, along), inverse, counts


def find_concatenation(runs: Sequence[RecordedRun]) -> Concatenation | None:
    """The list whose tensors are the result of every call; None if none is, or for few calls."""
    return find_first(_list_concatenations(runs[0].call), runs, _is_concatenated) if tell_form(runs) else None


def _list_concatenations(call: OpCall) -> Iterator[Concatenation]:
    """The lists of tensors of a schema, and its dimensions."""
    types = read_types(call)
    lists = [name for name, type_ in types.items() if type_ == "List[Tensor]"]
    dims = [name for name, type_ in types.items() if type_ == "int"]
    yield from (Concatenation(*each) for each in product(lists, dims))


def _is_concatenated(candidate: Concatenation, run: RecordedRun) -> bool:
    """Whether each tensor is its part of the result, and the parts are all of it."""
    result, dim = run.results[0].detach().cpu(), run.call.arguments[candidate.dim]
    names = (f"{candidate.sources}[{i}]" for i in range(len(run.call.arguments[candidate.sources])))
    tensors = [run.given[name] for name in names if name in run.given]
    start = 0
    for tensor in (each for each in tensors if each.shape != (0,)):
        fits = tensor.ndim == result.ndim and -result.ndim <= dim < result.ndim
        if not fits or start + tensor.shape[dim] > result.shape[dim]:
            return False
        part = result.narrow(dim, start, tensor.shape[dim])
        if not torch.equal(part.nan_to_num(), tensor.to(result.dtype).nan_to_num()):
            return False
        start += tensor.shape[dim]
    return bool(tensors) and start == (result.shape[dim] if result.ndim and result.shape != (0,) else 0)


_RANDOM = "randomTensor"  # with which the names of MPSGraph's operations begin that draw numbers
_NEAR_END = 1e-5  # of a category, of floats
_LEAST_SURE = 0.5  # of draws by floats


def find_categorical(runs: Sequence[RecordedRun]) -> Categorical | None:
    """The weights by which every call draws that runs one graph, with a uniform random number for each element.

    Other calls are left to operators that the function calls.
    """
    drawn, generator = _list_drawn(runs)
    weights = [name for name, type_ in read_types(runs[0].call).items() if type_ == "Tensor"] if drawn else []
    fitting = [name for name in weights if all(_is_drawn(run.given[name], run, uniform) for run, uniform in drawn)]
    if len(fitting) != 1:
        return None
    return Categorical(fitting[0], generator, read_dtypes(run.given[fitting[0]] for run, _ in drawn))


def find_permutation(runs: Sequence[RecordedRun]) -> Permutation | None:
    """A random order: where the random numbers that the graph of every call draws are, once these are sorted."""
    drawn, generator = _list_drawn(runs)
    is_told = sum(run.results[0].numel() > 2 for run, _ in drawn) >= MIN_CALLS
    if not is_told or len(drawn) < len(runs) or any(run.given for run in runs):
        return None
    is_sorted = all(_is_order(run.results[0].detach().cpu(), uniform) for run, uniform in drawn)
    return Permutation(generator, read_dtypes(run.results[0] for run, _ in drawn)) if is_sorted else None


def _is_order(result: torch.Tensor, numbers: torch.Tensor) -> bool:
    """Whether a result has each place of some numbers once, in the order of these."""
    places = result.long()
    if result.ndim != 1 or not torch.equal(places.sort().values, torch.arange(len(places))):
        return False
    ordered = numbers.flatten()[places]
    return bool((ordered[1:] >= ordered[:-1]).all())  # a difference of these may not fit


def _list_drawn(runs: Sequence[RecordedRun]) -> tuple[list[tuple[RecordedRun, torch.Tensor]], str]:
    """The calls that run one graph, each with the random numbers that it draws, and the argument that draws them.

    Nothing for few calls, or where that is not clear.
    """
    types = read_types(runs[0].call) if tell_form(runs) else {}
    generators = [name for name, type_ in types.items() if type_ == "Optional[Generator]"]
    if len(generators) != 1 or Tag.nondeterministic_seeded not in runs[0].call.overload.tags:
        return [], ""
    drawn = [(run, uniform) for run in runs if (uniform := _read_uniform(run)) is not None]
    return (drawn if len(drawn) >= MIN_CALLS else []), generators[0]


def _read_uniform(run: RecordedRun) -> torch.Tensor | None:
    """The random numbers that the graph of a call draws, one for each element of the result; else None."""
    from aten_overlay.apple.mpsgraph.objects import Ref
    from aten_overlay.apple.mpsgraph.recorder import evaluate

    if len(run.runs) != 1:
        return None
    [ran] = run.runs
    [*draws] = (i for i, node in enumerate(ran.graph.nodes) if node.selector.startswith(_RANDOM))
    if len(draws) != 1:
        return None
    uniform = evaluate(ran.graph, Ref(draws[0], 0), dict(ran.values))
    return uniform if uniform.numel() == run.results[0].numel() else None


def _is_drawn(weights: torch.Tensor, run: RecordedRun, uniform: torch.Tensor) -> bool:
    """Whether results are categories of random numbers, but for those so near to the end of one that it may be another,
    and of rows that have no share.
    """
    result = run.results[0].detach().cpu()
    if weights.ndim not in (1, 2) or result.shape[:-1] != weights.shape[:-1] or not weights.is_floating_point():
        return False
    ends = weights.double().cumsum(-1).reshape(-1, weights.shape[-1])
    shares = ends / ends[:, -1:]
    drawn, points = result.reshape(len(ends), -1), uniform.double().reshape(len(ends), -1)
    expected = torch.searchsorted(shares, points, right=True)
    near = max(_NEAR_END, TOLERANCES.get(read_dtype(weights), 0.0))
    is_sure = ((points[..., None] - shares[:, None]).abs() > near).all(-1) & shares[:, -1:].isfinite()
    is_told = near > _NEAR_END or bool(is_sure.double().mean() > _LEAST_SURE)
    return is_told and torch.equal(drawn[is_sure], expected[is_sure])
