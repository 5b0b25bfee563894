"""Finds results that are the distinct elements, or slices, of a tensor: what all recorded calls return."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations, product
from math import prod

import torch

from porter.metal.forms.unique import Unique
from porter.recording.forms.agreement import count_elements, read_dtypes, read_types, tell_form
from porter.recording.runs import RecordedRun

_RESULTS = 3  # values, where each element is among them, how many there are of each
_DIMS = ("int", "Optional[int]")


def find_unique(runs: Sequence[RecordedRun]) -> Unique | None:
    """The first of distinct values that foretell the results of every call; None if none do, or for few calls.

    Calls of elements that all differ, or that are sorted already, would not tell; nor would calls without a flag.
    """
    if not tell_form(runs, (_RESULTS,)) or any(run.call.out_names() for run in runs):
        return None
    ordered = sorted(runs, key=count_elements)
    fitting = [form for form in _list_candidates(ordered[0]) if all(_agrees(form, run) for run in ordered)]
    asked = [form for form in fitting if _is_asked(form, runs)]
    return replace(asked[0], dtypes=read_dtypes(run.results[0] for run in runs)) if len(asked) == 1 else None


def _list_candidates(run: RecordedRun) -> Iterator[Unique]:
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


def _agrees(candidate: Unique, run: RecordedRun) -> bool:
    """Whether a call has the results that a candidate foretells, of those that it asks for."""
    if candidate.source not in run.given:
        return False
    try:
        wanted = compute_unique(candidate, run.given[candidate.source], run.call.arguments)
    except (RuntimeError, IndexError):  # the arguments do not fit
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
