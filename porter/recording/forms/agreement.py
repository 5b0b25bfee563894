"""What finds forms: the types of calls, and checks that a candidate reproduces every recorded call.

Where the old code failed, the CPU's result stands in for what was recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

import torch

from porter.core.dtypes import BFLOAT, HALF, DType, Kind
from porter.loops.fit import MIN_CALLS
from porter.metal.forms import AnyForm
from porter.recording.calls import OpCall, read_dtype
from porter.recording.runs import RecordedRun
from porter.verdict.suite.leaves import list_tensors
from porter.verdict.suite.made_opinfos import find_twin

Results = tuple[torch.Tensor, ...]
F = TypeVar("F", bound=AnyForm)
Computes = Callable[[RecordedRun, Results], bool]
TOLERANCES = {HALF: 4e-3, BFLOAT: 4e-2}  # of what old code may add up in the type of elements
_TOLERANCES = {HALF: 2e-3, BFLOAT: 2e-2}


def tell_form(runs: Sequence[RecordedRun], results: Collection[int] = (1,)) -> bool:
    """Whether there are enough calls to find a form from, each with one of these numbers of results."""
    return len(runs) >= MIN_CALLS and all(len(run.results) in results for run in runs)


def find_first(
    candidates: Iterable[F], runs: Sequence[RecordedRun], agrees: Callable[[F, RecordedRun], bool]
) -> F | None:
    """The first form that all calls agree with, with the element types of their first results."""
    ordered = sorted(runs, key=count_elements)
    form = next((form for form in candidates if all(agrees(form, run) for run in ordered)), None)
    return replace(form, dtypes=read_dtypes(run.results[0] for run in runs)) if form else None


def find_only(
    candidates: Iterable[F],
    runs: Sequence[RecordedRun],
    computes: Callable[[F, RecordedRun, Results], bool],
    more: Sequence[RecordedRun] = (),
) -> F | None:
    """The only form that computes all calls, or what the CPU makes of them, with the types of their first results."""
    ordered = sorted(runs, key=count_elements)
    fitting = [form for form in candidates if agrees_with_all(ordered, partial(computes, form), more)]
    return replace(fitting[0], dtypes=read_dtypes(run.results[0] for run in runs)) if len(fitting) == 1 else None


def count_elements(run: RecordedRun) -> int:
    """The elements of the results of a call: those of few cost least to compute."""
    return sum(result.numel() for result in run.results)


def read_types(call: OpCall) -> Mapping[str, str]:
    """The types of the arguments of a schema, but results."""
    return {item.name: str(item.type) for item in call.overload._schema.arguments if not item.is_out}


def read_dtypes(tensors: Iterable[torch.Tensor]) -> tuple[DType, ...]:
    """The element types of tensors, each once."""
    return tuple(dict.fromkeys(map(read_dtype, tensors)))


def widen(tensor: torch.Tensor) -> torch.Tensor:
    """The elements in the widest type of their kind."""
    is_whole = not tensor.is_floating_point() and not tensor.is_complex()
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.int64 if is_whole else torch.float64)


def is_near(computed: torch.Tensor, result: torch.Tensor, is_exact: bool) -> bool:
    """Whether elements in a wide type are those of a result: but for rounding, unless they are moved alone."""
    dtype = read_dtype(result)
    if computed.shape != result.shape:
        return False
    if dtype.kind is Kind.BOOL:
        return torch.equal(computed != 0, result)
    tolerance = 0.0 if is_exact or dtype.kind is Kind.INTEGRAL else _TOLERANCES.get(dtype, 1e-5)
    return torch.allclose(computed, result.to(computed.dtype), rtol=tolerance, atol=tolerance, equal_nan=True)


def is_near_in_scale(computed: torch.Tensor, result: torch.Tensor) -> bool:
    """Whether elements in a wide type are those of a result of sums, but for rounding of the largest."""
    wide = widen(result)
    if computed.shape != wide.shape:
        return False
    bound = TOLERANCES.get(read_dtype(result), 1e-5) if result.is_floating_point() or result.is_complex() else 0.0
    scale = max(1.0, wide.abs().nan_to_num().max().item()) if wide.numel() else 1.0
    return torch.allclose(computed.to(wide.dtype), wide, rtol=bound, atol=bound * scale, equal_nan=True)


def run_on_cpu(run: RecordedRun, otherwise: torch.Tensor) -> torch.Tensor:
    """What the CPU computes of the arguments of a call: MPSGraph has no booleans, and takes 0.5 for false."""
    results = _list_cpu_results(run)
    return results[0] if len(results) == 1 else otherwise


def agrees_or_as_cpu(run: RecordedRun, computes: Callable[[torch.Tensor], bool]) -> bool:
    """Whether the result of a call is computed; or, of booleans, what the CPU makes of them."""
    recorded = run.results[0].detach().cpu()
    return computes(recorded) or (recorded.dtype == torch.bool and computes(run_on_cpu(run, recorded)))


def agrees_with_all(runs: Sequence[RecordedRun], computes: Computes, more: Sequence[RecordedRun] = ()) -> bool:
    """Whether the results of every call are computed, and of `more` calls.

    The graph of some calls may compute other values than the CPU does of the same arguments, which count then.
    """
    others = [run for run in runs if not _computes_recorded(run, computes)]
    if len(runs) - len(others) < MIN_CALLS:
        return False
    others += [run for run in more if not _computes_recorded(run, computes)]
    return all((results := _list_cpu_results(run)) and computes(run, results) for run in others)


def _computes_recorded(run: RecordedRun, computes: Computes) -> bool:
    return computes(run, tuple(result.detach().cpu() for result in run.results))


def _list_cpu_results(run: RecordedRun) -> Results:
    """What the CPU makes of the arguments of a call; nothing where it refuses them."""
    tensors = {name: run.given[name].clone() for name in run.given if name in run.call.arguments}
    try:
        results = _find_twin(run.call.with_arguments(tensors)).run()
    except (RuntimeError, NotImplementedError, IndexError):
        return ()
    return tuple(list_tensors(results))


def _find_twin(call: OpCall) -> OpCall:
    """The same call of what an operator that only this device has is called for others, if there is such a one."""
    twin = find_twin(call.overload)
    if twin is None:
        return call
    pairs = zip(twin._schema.arguments, call.overload._schema.arguments, strict=True)
    return OpCall(twin, {theirs.name: call.arguments[own.name] for theirs, own in pairs})
