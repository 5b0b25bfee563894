"""Reads the loop nests of recorded calls, but of as many alike as may tell something new."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Any

import torch

from porter.core.errors import PorterError
from porter.recording.calls import OpCall
from porter.recording.effort import count_reading
from porter.recording.joining import Observed, observe
from porter.recording.lost import Losses
from porter.recording.record import RecordedRun

_KNOWN = 8  # calls of a structure, which one more tells nothing new of
_ALIKE = 8  # calls in a row that tell nothing new, after which no more of their kind are read


def read_runs(runs: Iterable[RecordedRun], lost: Losses) -> tuple[list[Observed], list[PorterError]]:
    """The loop nests of calls, and why others have none.

    Calls of a kind differ in numbers alone: sizes, and what they are multiplied by.
    """
    observed: list[Observed] = []
    left: list[PorterError] = []
    structures: Counter[str] = Counter()
    in_row: Counter[Hashable] = Counter()
    for ran in runs:
        kind = _describe(ran.call)
        if not ran.runs or not ran.tells_results or in_row[kind] >= _ALIKE:  # host code answers a call without runs
            continue
        count_reading(ran.runs)
        try:
            observed.append(observe(ran))
        except PorterError as error:
            if _has_one_element(ran):
                lost.add_raised(ran.call, error)
            else:
                left.append(error)
            continue
        structure = observed[-1].program.structure
        structures[structure] += 1
        in_row[kind] = in_row[kind] + 1 if structures[structure] > _KNOWN else 0
    return observed, left


def _has_one_element(ran: RecordedRun) -> bool:
    return all(tensor.numel() == 1 for tensor in ran.call.tensors().values())


def _describe(call: OpCall) -> Hashable:
    """What calls that may have one graph have in common: all of their arguments, but for large numbers."""
    return tuple((name, _describe_value(value)) for name, value in sorted(call.arguments.items()))


def _describe_value(value: Any) -> Hashable:
    if isinstance(value, torch.Tensor):
        return value.dtype, tuple(min(size, 2) for size in value.shape), value.is_contiguous()
    if isinstance(value, (list, tuple)):
        return tuple(map(_describe_value, value))
    if isinstance(value, int) and not isinstance(value, bool):
        return "int", max(-3, min(value, 3))
    if isinstance(value, float):
        return "float", repr(value) if value in (0.0, 1.0, 2.0) or value - value else value > 0
    return repr(value)
