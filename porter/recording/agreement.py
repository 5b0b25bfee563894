"""Checks that a candidate form reproduces every recorded call.

Where the old code failed, the CPU's result stands in for what was recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch.utils import _pytree as pytree

from porter.loops.fit import MIN_CALLS
from porter.recording.calls import OpCall
from porter.recording.record import RecordedRun

Results = tuple[torch.Tensor, ...]
Computes = Callable[[RecordedRun, Results], bool]


def agrees_with_all(runs: Sequence[RecordedRun], computes: Computes, more: Sequence[RecordedRun] = ()) -> bool:
    """Whether the results of every call are computed, and of `more` calls.

    The graph of some calls may compute other values than the CPU does of the same arguments, which count then.
    """
    others = [each for each in runs if not _computes_recorded(each, computes)]
    if len(runs) - len(others) < MIN_CALLS:
        return False
    others += [each for each in more if not _computes_recorded(each, computes)]
    return all(_computes_as_cpu(each, computes) for each in others)


def _computes_recorded(run: RecordedRun, computes: Computes) -> bool:
    return computes(run, tuple(result.detach().cpu() for result in run.results))


def _computes_as_cpu(run: RecordedRun, computes: Computes) -> bool:
    given = {name: run.given[name].clone() for name in run.given if name in run.call.arguments}
    try:
        made = OpCall(run.call.overload, {**run.call.arguments, **given}).run()
    except (RuntimeError, NotImplementedError):
        return False
    results = tuple(each for each in pytree.tree_leaves(made) if isinstance(each, torch.Tensor))
    return bool(results) and computes(run, results)
