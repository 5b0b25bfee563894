"""Finds results that are the coordinates of elements that are not zero."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from porter.core import dtypes
from porter.loops.fit import MIN_CALLS
from porter.loops.places import NonzeroPlaces
from porter.recording.record import RecordedRun


def find_places(runs: Sequence[RecordedRun]) -> NonzeroPlaces | None:
    """The tensor whose coordinates all calls return; None if there is none, or for few calls."""
    if len(runs) < MIN_CALLS or any(len(each.results) != 1 for each in runs):
        return None
    sources = (name for name in runs[0].given if all(_agrees(name, each) for each in runs))
    source = next(sources, None)
    if source is None:
        return None
    types = dict.fromkeys(dtypes.BY_TORCH[str(each.given[source].dtype).removeprefix("torch.")] for each in runs)
    return NonzeroPlaces(source, tuple(types))


def _agrees(source: str, run: RecordedRun) -> bool:
    return source in run.given and torch.equal(run.given[source].nonzero(), run.results[0].detach().cpu())
