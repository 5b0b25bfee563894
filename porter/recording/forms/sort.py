"""Finds the order of an operator's rows: the one that all recorded calls are taken from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

import torch

from porter.metal.forms.sort import Kept, Sort
from porter.recording.forms.agreement import count_elements, find_first, read_types, tell_form
from porter.recording.runs import RecordedRun


def find_sort(runs: Sequence[RecordedRun]) -> Sort | None:
    """The first order that foretells the results of every call; None if none does, or for few calls."""
    if not tell_form(runs, (1, 2)) or len({len(run.results) for run in runs}) != 1:
        return None
    return find_first(_list_candidates(min(runs, key=count_elements)), runs, _agrees)


def _list_candidates(run: RecordedRun) -> Iterator[Sort]:
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


def _agrees(candidate: Sort, run: RecordedRun) -> bool:
    """Whether a call has the results that a candidate foretells: values, and where they were."""
    try:
        wanted = compute_sort(candidate, run.given[candidate.source], run.call.arguments)
    except (RuntimeError, IndexError):  # the arguments do not fit
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
