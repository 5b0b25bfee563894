"""Finds which Fourier transform an operator is: the one that all recorded calls return."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any

import torch

from porter.metal.forms.fourier import Fourier
from porter.recording.calls import OpCall
from porter.recording.forms.agreement import Results, find_only, is_near_in_scale, read_types, tell_form, widen
from porter.recording.runs import RecordedRun

_MODES = ("backward", "ortho", "forward")  # of torch.fft's forward transforms, by ATen's normalizations


def find_fourier(runs: Sequence[RecordedRun]) -> Fourier | None:
    """The transform that computes the result of every call; None if none does, or several do, or for few calls."""
    if not tell_form(runs):
        return None
    candidates = _list_transforms(runs[0].call)
    asked = ((form, [run for run in runs if _has_sizes(form, run)]) for form in candidates)
    fitting = [form for candidate, fit in asked if (form := find_only((candidate,), fit, _computes))]
    return fitting[0] if len(fitting) == 1 else None


def _has_sizes(form: Fourier, run: RecordedRun) -> bool:
    """Whether the source has half of a spectrum, if that is asked for: of others the CPU computes anything."""
    dims = run.call.arguments[form.dims]
    halves = run.call.arguments[form.size] // 2 + 1 if form.size else 0
    return not form.size or (bool(dims) and run.given[form.source].shape[dims[-1]] == halves)


def _list_transforms(call: OpCall) -> Iterator[Fourier]:
    """The transforms that the arguments of a schema allow for."""
    types = read_types(call)
    names = {kind: [name for name, type_ in types.items() if type_ == kind] for kind in set(types.values())}
    sources, lists = names.get("Tensor", []), names.get("List[int]", [])
    numbers, flags = names.get("int", []), names.get("bool", [])
    if (len(sources), len(lists)) != (1, 1) or len(types) != len(numbers) + len(flags) + 2:
        return
    if len(numbers) == len(flags) == 1:
        yield Fourier(sources[0], lists[0], numbers[0], forward=flags[0])
        yield Fourier(sources[0], lists[0], numbers[0], one_sided=flags[0])
    elif len(numbers) == 2 and not flags:
        yield from (Fourier(sources[0], lists[0], first, size=second) for first, second in permutations(numbers))


def _computes(form: Fourier, run: RecordedRun, results: Results) -> bool:
    [result] = results
    try:
        computed = transform(form, run.given[form.source], run.call.arguments)
    except (RuntimeError, IndexError):  # numbers that do not go with the sizes
        return False
    return is_near_in_scale(computed, result)


def transform(form: Fourier, source: torch.Tensor, arguments: Mapping[str, Any]) -> torch.Tensor:
    """The result in double precision. Raises RuntimeError or IndexError for numbers that do not go with the sizes."""
    dims, mode, wide = arguments[form.dims], _MODES[arguments[form.normalization]], widen(source)
    inverse = {"backward": "forward", "forward": "backward"}.get(mode, mode)  # scaled the other way around
    result: torch.Tensor
    if source.is_complex() is bool(form.one_sided):
        raise RuntimeError("numbers of another kind")
    if not dims:
        result = wide
    elif form.size:
        sizes = [*(source.shape[dim] for dim in dims[:-1]), arguments[form.size]]
        result = torch.fft.irfftn(wide, s=sizes, dim=dims, norm=inverse)
    elif form.one_sided and arguments[form.one_sided]:
        result = torch.fft.rfftn(wide, dim=dims, norm=mode)
    elif form.one_sided or arguments[form.forward]:
        result = torch.fft.fftn(wide, dim=dims, norm=mode)
    else:
        result = torch.fft.ifftn(wide, dim=dims, norm=inverse)
    return result
