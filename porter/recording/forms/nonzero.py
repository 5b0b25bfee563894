"""Finds results that are the coordinates of elements that are not zero."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from porter.metal.forms.nonzero import Nonzero
from porter.recording.forms.agreement import read_dtypes, tell_form
from porter.recording.runs import RecordedRun


def find_nonzero(runs: Sequence[RecordedRun]) -> Nonzero | None:
    """The tensor whose coordinates all calls return; None if there is none, or for few calls."""
    if not tell_form(runs):
        return None
    sources = (name for name in runs[0].given if all(_agrees(name, run) for run in runs))
    source = next(sources, None)
    if source is None:
        return None
    return Nonzero(source, read_dtypes(run.given[source] for run in runs))


def _agrees(source: str, run: RecordedRun) -> bool:
    return source in run.given and torch.equal(run.given[source].nonzero(), run.results[0].detach().cpu())
