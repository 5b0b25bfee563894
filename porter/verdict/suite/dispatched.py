"""Finds which ATen operators an OpInfo's samples dispatch, by counting CPU fallbacks.

This works only in a process that runs no code of a fork, where every operator falls back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.suite import counters, samples
from porter.verdict.suite.context import base_name
from porter.verdict.suite.leaves import list_tensors

SAMPLES = 16


@dataclass(frozen=True)
class Dispatched:
    """ATen base names: what a call dispatches, and what only its backward dispatches."""

    forward: frozenset[str]
    backward: frozenset[str]


def check_gradients() -> None:
    """Raises RuntimeError if autograd does not work: in a process forked from one that has used it."""
    torch.ones((), device="mps", requires_grad=True).clone().backward()


def record_dispatch(op: OpInfo) -> Dispatched:
    """What the first samples of an OpInfo dispatch, in float32 if supported; up to the error if one is raised."""
    supported = op.supported_dtypes("cpu")
    dtype = torch.float32 if torch.float32 in supported else min(supported, key=str, default=None)
    if dtype is None:
        return Dispatched(frozenset(), frozenset())
    slopes = op.supports_autograd and dtype.is_floating_point
    calls = [_run_sample(op, sample) for sample in islice(_make_samples(op, dtype, slopes), SAMPLES)]
    with torch.no_grad():  # for which ATen chooses other operators of attention
        calls += [_run_sample(op, sample) for sample in islice(_make_samples(op, dtype, False), int(slopes))]
    forward = frozenset(name for call in calls for name in call.forward)
    return Dispatched(forward, frozenset(name for call in calls for name in call.backward) - forward)


def _make_samples(op: OpInfo, dtype: torch.dtype, requires_grad: bool) -> Iterator[SampleInput]:
    try:
        yield from op.sample_inputs("cpu", dtype, requires_grad=requires_grad, set_seed=True)
    except Exception:  # samples that this machine cannot make
        return


def _run_sample(op: OpInfo, sample: SampleInput) -> Dispatched:
    before = counters.read()
    results: list[torch.Tensor] = []
    with suppress(Exception):
        given = [samples.mirror(each, "mps") for each in (sample.input, sample.args, sample.kwargs)]
        results = [t for t in list_tensors(op(given[0], *given[1], **given[2])) if t.requires_grad]
    forward = _bases(counters.since(before).fallbacks)
    before = counters.read()
    with suppress(Exception):
        torch.autograd.backward(results, [torch.ones_like(t) for t in results])
    return Dispatched(forward, _bases(counters.since(before).fallbacks))


def _bases(names: Iterable[str]) -> frozenset[str]:
    return frozenset(base_name(name) for name in names)
