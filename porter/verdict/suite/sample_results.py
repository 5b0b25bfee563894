"""Runs an implementation on every sample and compares it with the CPU, for the old code and the new."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

from porter.core import dtypes
from porter.core.progress import Progress, ignore
from porter.verdict.behavior import SampleResult, Status, status_of_error
from porter.verdict.errors import refusal_in
from porter.verdict.limits import SAMPLES_OF
from porter.verdict.suite import compare, lists, samples, transforms
from porter.verdict.suite.context import Context
from porter.verdict.suite.distributions import Case, find_cases
from porter.verdict.suite.leaves import compute, compute_unless_refused, list_tensors
from porter.verdict.suite.made_opinfos import list_opinfos
from porter.verdict.suite.opinfos import watching

SAMPLES = 12
DTYPES = tuple(getattr(torch, dtype.torch) for dtype in dtypes.TESTED)


def run_samples(context: Context, progress: Progress = ignore) -> list[SampleResult]:
    """The results of the samples of the operators under test and of edge values, in every dtype the CPU supports; of
    one sample in the others. Reports the next ones to `progress`.
    """
    precision = lists.low_precision(context.precision)
    found = [_run_fill(case, dtype) for base in context.bases for case in find_cases(base) for dtype in DTYPES]
    for op in list_opinfos(context.bases, context.through, context.through_backward):
        if any(find_cases(op.name)):
            continue
        for dtype in DTYPES:
            progress(f"{SAMPLES_OF} {op.formatted_name} {dtype}")
            if dtype in op.supported_dtypes("cpu"):
                made = make_samples(op, dtype, context.most)
                tolerance = compare.tolerances(precision, op.name, dtype)
                found += (_run_sample(op, dtype, name, sample, tolerance, context) for name, sample in made)
            else:
                found += _beyond_the_cpu(op, dtype, context)
    return found


def _run_fill(case: Case, dtype: torch.dtype) -> SampleResult:
    """Whether both fill a tensor with random numbers, which no value shows."""
    told = []
    for device in ("cpu", "mps"):
        try:
            case.fill(torch.zeros(8, dtype=dtype, device=device), torch.Generator(device).manual_seed(1)).cpu()
        except Exception as error:
            told.append(_first_line(error))
        else:
            told.append("")
    refused, message = told
    status = Status.COMPUTED_ALONE if refused else Status.AGREES
    kind = dtypes.name_torch(dtype)
    return SampleResult(kind, case.label, status_of_error(message, not refused) if message else status, message)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:160]


def _beyond_the_cpu(op: OpInfo, dtype: torch.dtype, context: Context) -> Iterator[SampleResult]:
    """The result of one sample of a dtype that the CPU does not support."""
    try:
        sample = next(iter(op.sample_inputs("cpu", dtype, set_seed=True)), None)
    except (RuntimeError, TypeError, ValueError):  # the OpInfo has no samples of this dtype
        return
    if sample is not None:
        yield _run_sample(op, dtype, f"{op.formatted_name} sample 0", sample, {}, context)


def make_samples(op: OpInfo, dtype: torch.dtype, most: float) -> Iterator[tuple[str, SampleInput]]:
    """Yields the first samples of an OpInfo and one of edge values, none of which is larger than `most`."""
    made = islice(op.sample_inputs("cpu", dtype, set_seed=True), SAMPLES)
    given = samples.keep_on_cpu(op, made)
    yield from ((f"{op.formatted_name} sample {i}", sample) for i, sample in enumerate(given))
    tensors = [s for s in given if isinstance(s.input, torch.Tensor) and s.input.ndim]
    if tensors:
        edges = samples.with_edge_values(tensors[0], dtype, most=most)
        yield f"{op.formatted_name} edge values", samples.bound_results(op, edges)


def _run_sample(
    op: OpInfo, dtype: torch.dtype, name: str, sample: SampleInput, tolerance: Mapping[str, Any], context: Context
) -> SampleResult:
    kind = dtypes.name_torch(dtype)
    want = None
    try:
        with watching(op, context) as draws:
            want = _leaves(compute(op, sample))
    except Exception as error:  # the CPU raises an error, so there is nothing to compare
        if refusal_in(str(error)) is not None:
            raise
    try:
        args = samples.mirror((sample.input, *sample.args), "mps")
        got = _leaves(op(*args, **samples.mirror(sample.kwargs, "mps")))
    except Exception as error:
        message = _first_line(error)
        return SampleResult(kind, name, status_of_error(message, alone=want is not None), message)
    if want is None:
        return SampleResult(kind, name, Status.COMPUTED_ALONE)
    if draws.drawn:  # no value shows whether a sample of dropout agrees
        return SampleResult(kind, name, Status.AGREES)
    exact = (
        _leaves(op(*_wide((sample.input, *sample.args)), **_wide(sample.kwargs)))
        if dtype.is_floating_point or dtype.is_complex
        else want
    )
    operands = list(_leaves((sample.input, sample.args)))
    for mine, theirs, precise in zip(got, want, exact, strict=True):
        message = compare.find_disagreement(mine, theirs, precise, operands, **tolerance)
        if message and not transforms.agrees(partial(compute_unless_refused, op), sample, mine, theirs):
            nan = compare.find_nan_disagreement(mine, theirs, operands)
            return SampleResult(kind, name, Status.DIFFERS, nan or message, bool(nan))
    found = [float(compare.ulp(m, e).max()) for m, e in zip(got, exact, strict=True) if _is_wide(m, e)]
    return SampleResult(kind, name, Status.AGREES, ulp=max(found, default=None))


def _is_wide(mine: torch.Tensor, exact: torch.Tensor) -> bool:
    return mine.dtype.is_floating_point and exact.dtype == torch.float64 and mine.numel() > 0


def _leaves(value: Any) -> list[torch.Tensor]:
    return [leaf.detach().cpu() for leaf in list_tensors(value)]


def _wide(value: Any) -> Any:
    return pytree.tree_map(compare.widen, value)
