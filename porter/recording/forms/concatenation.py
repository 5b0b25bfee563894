"""Finds the list of tensors that an operator puts one after the other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import product

import torch

from porter.metal.forms.concatenation import Concatenation
from porter.recording.calls import OpCall
from porter.recording.forms.agreement import find_first, read_types, tell_form
from porter.recording.runs import RecordedRun


def find_concatenation(runs: Sequence[RecordedRun]) -> Concatenation | None:
    """The list whose tensors are the result of every call; None if none is, or for few calls."""
    return find_first(_list_candidates(runs[0].call), runs, _computes) if tell_form(runs) else None


def _list_candidates(call: OpCall) -> Iterator[Concatenation]:
    """The lists of tensors of a schema, and its dimensions."""
    types = read_types(call)
    lists = [name for name, type_ in types.items() if type_ == "List[Tensor]"]
    dims = [name for name, type_ in types.items() if type_ == "int"]
    yield from (Concatenation(*each) for each in product(lists, dims))


def _computes(candidate: Concatenation, run: RecordedRun) -> bool:
    """Whether each tensor is its part of the result, and the parts are all of it."""
    result, dim = run.results[0].detach().cpu(), run.call.arguments[candidate.dim]
    tensors = [each for name, each in run.given.items() if re.fullmatch(rf"{candidate.sources}\[\d+\]", name)]
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
