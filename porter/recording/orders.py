"""Finds the order of an operator's rows: the one that all recorded calls are taken from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

import torch

from porter.core import dtypes
from porter.loops.fit import MIN_CALLS
from porter.loops.orders import Kept, RowOrder
from porter.recording.record import RecordedRun


def find_order(runs: Sequence[RecordedRun]) -> RowOrder | None:
    """The first order that foretells the results of every call; None if none does, or for few calls."""
    if len(runs) < MIN_CALLS or len({len(each.results) for each in runs}) != 1 or not 1 <= len(runs[0].results) <= 2:
        return None
    ordered = sorted(runs, key=lambda each: each.results[0].numel())
    found = next((each for each in _list_candidates(ordered[0]) if all(_agrees(each, ran) for ran in ordered)), None)
    if found is None:
        return None
    types = dict.fromkeys(dtypes.BY_TORCH[str(each.results[0].dtype).removeprefix("torch.")] for each in runs)
    return replace(found, dtypes=tuple(types))


def _list_candidates(run: RecordedRun) -> Iterator[RowOrder]:
    """The orders that the arguments of a schema allow for."""
    types = {each.name: str(each.type) for each in run.call.overload._schema.arguments if not each.is_out}
    tensors = [name for name in types if name in run.given]
    dims = [name for name, type_ in types.items() if type_ == "int" and name == "dim"]
    whole = [name for name, type_ in types.items() if type_ == "int" and isinstance(run.call.arguments.get(name), int)]
    counts = [name for name in whole if name not in dims]  # the type of a result is no number
    flags: list[str | bool] = [False, True, *(name for name, type_ in types.items() if type_ == "bool")]
    for source, dim, descending in product(tensors, dims or [""], flags):
        order = RowOrder(source, Kept.ALL, dim, descending, places=len(run.results) == 2)
        yield order
        yield from (replace(order, kept=Kept.FIRST, count=count) for count in counts)
        yield replace(order, kept=Kept.MEDIAN)


def _agrees(candidate: RowOrder, run: RecordedRun) -> bool:
    """Whether a call has the results that a candidate foretells: values, and where they were."""
    try:
        wanted = compute_order(candidate, run.given[candidate.source], run.call.arguments)
    except (RuntimeError, IndexError):  # the arguments do not fit
        return False
    return all(_is_same(each.detach().cpu(), want) for each, want in zip(run.results, wanted, strict=False))


def _is_same(found: torch.Tensor, wanted: torch.Tensor) -> bool:
    if found.dtype != wanted.dtype or found.numel() != wanted.numel():
        return False
    found, wanted = found.reshape(-1), wanted.reshape(-1)
    return bool(((found == wanted) | (found.isnan() & wanted.isnan())).all())


def compute_order(
    found: RowOrder, source: torch.Tensor, arguments: Mapping[str, object]
) -> tuple[torch.Tensor, torch.Tensor]:
    """The values, and where they were, of a call."""
    dim = int(str(arguments[found.dim])) if found.dim else 0
    rows = source.reshape(-1) if not found.dim or not source.ndim else source
    descending = arguments[found.descending] if isinstance(found.descending, str) else found.descending
    values, places = torch.sort(rows, stable=True, dim=dim, descending=bool(descending))
    if found.kept is Kept.FIRST:
        count = int(str(arguments[found.count]))
        return values.narrow(dim, 0, count), places.narrow(dim, 0, count)
    if found.kept is Kept.MEDIAN:
        middle = (rows.size(dim) - 1) // 2
        at = torch.where(values.isnan().any(dim), (~values.isnan()).sum(dim), middle).unsqueeze(dim)
        return values.gather(dim, at), places.gather(dim, at)
    return values, places
