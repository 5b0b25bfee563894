"""Finds how an operator resamples: the way that computes what all recorded calls return."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import torch

from porter.metal.forms.resampling import Resampling, Sampling
from porter.recording.calls import OpCall
from porter.recording.forms.agreement import TOLERANCES, Results, find_only, read_dtype, read_types, tell_form
from porter.recording.runs import RecordedRun

_LEADING = 2  # dimensions that are not resampled: batches and channels


def find_resampling(runs: Sequence[RecordedRun]) -> Resampling | None:
    """The way that computes the result of every call; None if none does, or several do, or for few calls."""
    return find_only(_list_candidates(runs[0].call), runs, _computes) if tell_form(runs) else None


def _list_candidates(call: OpCall) -> Iterator[Resampling]:
    """The ways that the arguments of a schema allow for: one tensor, and an optional number for each dimension."""
    types = read_types(call)
    tensors = [name for name, type_ in types.items() if type_ == "Tensor"]
    scales = tuple(name for name, type_ in types.items() if type_ == "Optional[float]")
    flags = [name for name, type_ in types.items() if type_ == "bool"]
    lists = [name for name, type_ in types.items() if type_ == "List[int]"]
    if len(tensors) != 1 or not scales or not lists or len(flags) > 1:
        return
    for sampling, is_gradient in product(Sampling, (False, True)):
        is_linear = sampling is Sampling.LINEAR
        if is_gradient >= is_linear and is_linear >= bool(flags):  # loops compute a linear result as it is
            yield Resampling(sampling, tensors[0], scales, flags[0] if flags else "", is_gradient)


def _computes(candidate: Resampling, run: RecordedRun, results: Results) -> bool:
    source, result = run.given[candidate.source], results[0]
    rank = len(candidate.scales) + _LEADING
    if (
        len(results) != 1
        or source.ndim != rank
        or result.ndim != rank
        or source.shape[:_LEADING] != result.shape[:_LEADING]
    ):
        return False
    computed = resample(candidate, source.double(), result.shape, run.call.arguments)
    tolerance = 0.0 if not candidate.is_gradient else TOLERANCES.get(read_dtype(result), 1e-5)
    scale = max(1.0, result.double().abs().max().item()) if result.numel() else 1.0
    return torch.allclose(computed, result.double(), rtol=tolerance, atol=tolerance * scale, equal_nan=True)


def resample(
    form: Resampling, source: torch.Tensor, shape: Sequence[int], arguments: Mapping[str, object]
) -> torch.Tensor:
    """The result, of a shape, by the weights that every element has in each dimension."""
    computed = source
    for d, scale in enumerate(form.scales, _LEADING):
        small, large = (shape[d], source.shape[d]) if form.is_gradient else (source.shape[d], shape[d])
        weights = _weigh(form, small, large, arguments.get(scale), bool(arguments.get(form.corners)))
        weights = weights.T if form.is_gradient else weights
        computed = torch.movedim(torch.tensordot(weights.to(computed.dtype), computed, ([1], [d])), 0, d)
    return computed


def _weigh(form: Resampling, small: int, large: int, scale: object, aligned: bool) -> torch.Tensor:
    """How much of each of the `small` elements each of the `large` ones reads, in float as kernels compute it."""
    i = torch.arange(large, dtype=torch.float32)
    factor = scale if isinstance(scale, float) and scale > 0 else 0.0
    one = torch.tensor(1.0, dtype=torch.float32)
    ratio = one * (1.0 / factor) if factor else one * small / large
    if aligned:
        ratio = one * (small - 1) / (large - 1) if large > 1 else one * 0
    if form.sampling is Sampling.LINEAR:
        at = i * ratio if aligned else ((i + 0.5) * ratio - 0.5).clamp(min=0)
    else:
        at = (i + (0.5 if form.sampling is Sampling.NEAREST_EXACT else 0.0)) * ratio
    first = at.floor().long().clamp(max=small - 1)
    weights = torch.zeros(large, small, dtype=torch.float64)
    rows = torch.arange(large)
    if form.sampling is not Sampling.LINEAR:
        weights[rows, first] = 1
        return weights
    share = (at - first).clamp(0, 1).double()
    weights.index_put_((rows, first), 1 - share, accumulate=True)
    weights.index_put_((rows, (first + 1).clamp(max=small - 1)), share, accumulate=True)
    return weights
