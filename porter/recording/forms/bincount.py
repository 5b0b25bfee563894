"""Finds sums of elements by an index of one dimension: what all recorded calls return."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import product

import torch

from porter.core import dtypes
from porter.core.dtypes import Kind
from porter.metal.forms.bincount import Bincount
from porter.recording.calls import OpCall
from porter.recording.forms.agreement import (
    agrees_or_as_cpu,
    find_first,
    has_metal_type,
    is_near,
    read_dtypes,
    read_types,
    tell_form,
    widen,
)
from porter.recording.runs import RecordedRun, run_call


def find_bincount(runs: Sequence[RecordedRun], run: Callable[[OpCall], RecordedRun] = run_call) -> Bincount | None:
    """The index and the source whose sums are the result of every call; None if there are none, or for few calls.

    A call is `run` again with operands of other types: the source decides the type of the result.
    """
    if not tell_form(runs):
        return None
    form = find_first(_list_candidates(runs), runs, _agrees)
    if form is None:
        return None
    runs = [*runs, *_convert(runs, form, run)]
    of_index = read_dtypes(run.given[form.index] for run in runs)
    return replace(form, dtypes=read_dtypes(run.results[0] for run in runs), index_dtypes=of_index)


def _list_candidates(runs: Sequence[RecordedRun]) -> Iterator[Bincount]:
    """Whole tensors that all calls have, and those that calls may leave out."""
    types = read_types(runs[0].call)
    tensors = [name for name in types if all(name in run.given for run in runs)]
    whole = [name for name in tensors if all(not run.given[name].is_floating_point() for run in runs)]
    optional = [name for name, type_ in types.items() if type_ == "Optional[Tensor]"]
    yield from (Bincount(*pair) for pair in product(whole, optional))


def _convert(
    runs: Sequence[RecordedRun], form: Bincount, run: Callable[[OpCall], RecordedRun]
) -> Iterator[RecordedRun]:
    """Calls with an index, or with a source, of other types, whose results are such sums too."""
    weighted = next((each for each in runs if form.source in each.given), runs[0])
    real = [dtype for dtype in dtypes.ALL if dtype.kind is not Kind.COMPLEX]
    whole = [dtype for dtype in real if dtype.kind is Kind.INTEGRAL]
    sources = product((form.source,), real) if form.source in weighted.given else ()
    for name, dtype in (*product((form.index,), whole), *sources):
        converted = None
        with suppress(Exception):  # whatever the fork's checks raise
            operand = weighted.call.arguments[name].to(getattr(torch, dtype.torch))
            converted = run(weighted.call.with_argument(name, operand))
        if converted is not None and has_metal_type(converted.results[0]) and _agrees(form, converted):
            yield converted


def _agrees(candidate: Bincount, run: RecordedRun) -> bool:
    return agrees_or_as_cpu(run, lambda result: _computes(candidate, run, result))


def _computes(candidate: Bincount, run: RecordedRun, result: torch.Tensor) -> bool:
    source, index = run.given.get(candidate.source), run.given[candidate.index]
    if index.ndim != 1 or result.ndim != 1:
        return False
    type_ = widen(result[:0]).dtype
    elements = torch.ones(index.shape, dtype=type_) if source is None else widen(source).to(type_)
    try:
        sums = torch.zeros(result.shape, dtype=type_).index_add_(0, index.long(), elements)
    except (RuntimeError, IndexError):  # the shapes do not fit, or an index is outside
        return False
    return is_near(sums, result, is_exact=False)
