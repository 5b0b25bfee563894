"""Finds whether an operator inverts matrices: whether inverses are what all recorded calls return."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from porter.metal.forms.inverse import Inverse
from porter.recording.calls import OpCall
from porter.recording.forms.agreement import Results, find_only, is_near_in_scale, read_types, tell_form
from porter.recording.runs import RecordedRun


def find_inverse(runs: Sequence[RecordedRun]) -> Inverse | None:
    """The inverse that is the first result of every call; None if it is of none, or for few calls."""
    return find_only(_list_inverses(runs[0].call), runs, _computes) if tell_form(runs, (2,)) else None


def _list_inverses(call: OpCall) -> Iterator[Inverse]:
    """The only matrix, and the only flag, that a schema has."""
    types = read_types(call)
    named = {kind: [name for name, type_ in types.items() if type_ == kind] for kind in set(types.values())}
    matrices, flags = named.pop("Tensor", []), named.pop("bool", [])
    if len(matrices) == 1 and len(flags) <= 1 and not named:
        yield Inverse(matrices[0], "".join(flags))


def _computes(form: Inverse, run: RecordedRun, results: Results) -> bool:
    """Whether results are the inverses in the matrix's own type and the pivots that ATen reports.

    Errors of an inverse have no bound that is known before, so double precision would not do as a reference.
    """
    matrix = run.given[form.matrix]
    is_square = matrix.dim() > 1 and matrix.shape[-1] == matrix.shape[-2] and matrix.is_floating_point()
    if not is_square or results[0].shape != matrix.shape:
        return False
    inverse, info = torch.linalg.inv_ex(matrix)
    return is_near_in_scale(inverse, results[0]) and torch.equal(info, results[1])
