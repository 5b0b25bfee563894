"""Finds whether an operator is attention: whether that computes what all recorded calls return."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations, product
from typing import Any

import torch

from porter.metal.forms.attention import Attention
from porter.recording.calls import OpCall
from porter.recording.forms.agreement import Results, find_only, is_near_in_scale, read_types, tell_form, widen
from porter.recording.runs import RecordedRun

_ROLES, _FLAGS = 3, 2


def find_attention(runs: Sequence[RecordedRun]) -> Attention | None:
    """The attention that computes both results of every call; None if none does, or several do, or for few calls."""
    return find_only(_list_attentions(runs[0].call), runs, _computes) if tell_form(runs, (2,)) else None


def _list_attentions(call: OpCall) -> Iterator[Attention]:
    """The roles that the arguments of a schema allow for."""
    types = read_types(call)

    def list_named(type_: str) -> list[str]:
        return [name for name, other in types.items() if other == type_]

    tensors, scales, flags = list_named("Tensor"), list_named("Optional[float]"), list_named("bool")
    if len(tensors) == _ROLES and 0 < len(flags) <= _FLAGS:
        for query, key, value in permutations(tensors):
            for mask, scale, (causal, *grouped) in product(list_named("Optional[Tensor]"), scales, permutations(flags)):
                yield Attention(query, key, value, mask, causal, scale, "".join(grouped))


def _computes(form: Attention, run: RecordedRun, results: Results) -> bool:
    try:
        computed = attend(form, run.given, run.call.arguments)
    except (RuntimeError, IndexError):  # sizes that do not go with each other
        return False
    return all(map(is_near_in_scale, computed, results))


def attend(
    form: Attention, tensors: Mapping[str, torch.Tensor], arguments: Mapping[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Both results, in double precision. Raises RuntimeError for sizes that do not go with each other."""
    query, key, value = (widen(tensors[name]) for name in (form.query, form.key, form.value))
    if form.grouped and arguments[form.grouped]:
        key, value = (each.repeat_interleave(query.shape[-3] // each.shape[-3], -3) for each in (key, value))
    scale = arguments[form.scale]
    scores = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
    mask = tensors.get(form.mask)
    if mask is not None:
        is_bool = mask.dtype == torch.bool
        scores = scores.masked_fill(~mask, -torch.inf) if is_bool else scores + widen(mask)
    if arguments[form.causal]:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), -torch.inf)
    hidden = (scores == -torch.inf).all(-1, keepdim=True)
    weights = scores.softmax(-1).masked_fill(hidden, 0)
    return weights @ value, weights
