"""`check`: runs a kernel over many inputs on the stand-in's strictest settings, and compares with its reference."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import torch

from aten_overlay.device import load
from aten_overlay.device.groups import SIZES, Groups, watching
from porter.core.dtypes import name_torch
from porter.core.errors import PorterError, code_in
from porter.kernels.call import DEVICE, Value
from porter.kernels.compare import BY_TYPE, Difference, Tolerance, compare, largest_of
from porter.kernels.launch import PLAIN, Mode, running
from porter.kernels.references import Reference

FLOATING = (torch.float32, torch.float16, torch.bfloat16)
# What an example is multiplied with to get large values; squares of half's have to fit too.
_LARGE = {torch.float32: 1e4, torch.bfloat16: 1e4, torch.float16: 64.0}
Change = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True, eq=False)
class Case:
    """Inputs on the CPU and what is special about them. `place` moves each to the device, in its own layout."""

    name: str
    inputs: tuple[Value, ...]
    place: Change


def to_device(tensor: torch.Tensor) -> torch.Tensor:
    """A dense copy on the device."""
    return tensor.contiguous().to(DEVICE)


def cases(inputs: Sequence[Value], dtypes: Collection[torch.dtype], fixed: Collection[int]) -> Iterator[Case]:
    """The example itself, in each of `dtypes`, in other layouts, with other lengths, and with large values.

    Dimensions of one length change together; lengths that are in `fixed` stay.
    """
    example = tuple(v.detach().cpu() if isinstance(v, torch.Tensor) else v for v in inputs)
    yield Case("as given", example, to_device)
    for dtype in dtypes:
        converted = _change_floating(example, lambda t, dtype=dtype: t.to(dtype))  # type: ignore[misc]
        yield Case(name_torch(dtype), converted, to_device)
    for name, place in _LAYOUTS:
        yield Case(name, example, place)
    if any(isinstance(v, torch.Tensor) and v.dim() > 2 for v in example):
        yield Case("channels last", example, lambda tensor: lay_channels_last(to_device(tensor)))
    repeated = tuple(lay_expanded(v) if isinstance(v, torch.Tensor) else v for v in example)
    yield Case("expanded", repeated, lambda tensor: lay_expanded(to_device(tensor)))
    found = dict.fromkeys(n for v in example if isinstance(v, torch.Tensor) for n in v.shape)
    for length in [n for n in found if n > 0 and n not in fixed]:
        # None, one, one more, and one that no power of two divides
        for other in tuple(dict.fromkeys(n for n in (0, 1, length + 1, 2 * length + 35 - length % 2) if n != length)):
            resized = tuple(_resize(v, length, other) if isinstance(v, torch.Tensor) else v for v in example)
            yield Case(f"{length} -> {other}", resized, to_device)
    for dtype in dtypes:
        large = _change_floating(example, lambda t, dtype=dtype: (t * _LARGE.get(dtype, 1)).to(dtype))  # type: ignore[misc]
        yield Case(f"large {str(dtype).removeprefix('torch.')}", large, to_device)


def _change_floating(inputs: Sequence[Value], change: Change) -> tuple[Value, ...]:
    return tuple(change(v) if isinstance(v, torch.Tensor) and v.is_floating_point() else v for v in inputs)


def _resize(tensor: torch.Tensor, length: int, other: int) -> torch.Tensor:
    """`tensor` with dimensions of `length` repeated or cut to `other`."""
    for dimension, size in enumerate(tensor.shape):
        if size == length:
            tensor = tensor.index_select(dimension, torch.arange(other) % max(size, 1))
    return tensor


def _transposed(tensor: torch.Tensor) -> torch.Tensor:
    """The last dimension varies slowest."""
    return to_device(tensor.movedim(-1, 0)).movedim(0, -1) if tensor.dim() > 1 else _stepped(tensor)


def _stepped(tensor: torch.Tensor) -> torch.Tensor:
    """Every second element of the last dimension, the first left out."""
    if tensor.dim() == 0:
        return to_device(tensor)
    wide = torch.zeros(*tensor.shape[:-1], 2 * tensor.shape[-1] + 1, dtype=tensor.dtype)
    wide[..., 1::2] = tensor
    return to_device(wide)[..., 1::2]


def _offset(tensor: torch.Tensor) -> torch.Tensor:
    """Dense, but not at the start of its memory."""
    whole = torch.cat((torch.zeros(3, dtype=tensor.dtype), tensor.reshape(-1)))
    return to_device(whole)[3:].view(tensor.shape)


def lay_channels_last(tensor: torch.Tensor) -> torch.Tensor:
    """A copy whose second dimension varies fastest, as in torch's channels_last; with two or fewer, the tensor."""
    return tensor.movedim(1, -1).contiguous().movedim(-1, 1) if tensor.dim() > 2 else tensor


def lay_sliced(tensor: torch.Tensor) -> torch.Tensor:
    """A copy as columns of wider rows, with others on both sides."""
    if tensor.dim() == 0:
        return tensor
    columns = tensor.shape[-1]
    wide = tensor.new_zeros(*tensor.shape[:-1], columns + 5)
    wide[..., 2 : 2 + columns] = tensor
    return wide[..., 2 : 2 + columns]


def lay_expanded(tensor: torch.Tensor) -> torch.Tensor:
    """The first of the first dimension in place of all, with a stride of 0. What are no numbers, but indices, stay."""
    expands = tensor.is_floating_point() and tensor.dim() and tensor.shape[0]
    return tensor[:1].contiguous().expand(tensor.shape) if expands else tensor


_LAYOUTS = (
    ("transposed", _transposed),
    ("every second element", _stepped),
    ("storage offset", _offset),
    ("column slice", lambda tensor: lay_sliced(to_device(tensor))),
)


_SEEDS = (1, 2)
# A kernel may decline types, layouts and large threadgroups, in so many words and before it is launched.
DECLINED = ("PTR212", "PTR216", "PTR218")
Run = Callable[..., Any]


class Outcome(Enum):
    """How a case ended. A case that the reference itself refuses says nothing about the kernel."""

    PASS = "pass"
    FAIL = "FAIL"
    REFUSED = "n/a"


@dataclass(frozen=True)
class CaseResult:
    """One case: `error` is the largest, in units of what is allowed, and `message` says what went wrong."""

    case: str
    outcome: Outcome
    error: float = 0.0
    message: str = ""
    difference: Difference | None = None

    def __str__(self) -> str:
        error = f"  {self.error:5.2f} of the tolerance" if self.outcome is Outcome.PASS else ""
        message = f"  {self.message}" if self.message else ""
        return f"{self.outcome.value:4}  {self.case}{error}{message}"


@dataclass(frozen=True)
class CheckReport:
    """What a check found. `checked` tells whether bounds were watched and lanes shuffled: only the stand-in can."""

    kernel: str
    results: tuple[CaseResult, ...]
    checked: bool

    @property
    def passed(self) -> bool:
        """Whether cases ran and none failed."""
        outcomes = {result.outcome for result in self.results}
        return Outcome.PASS in outcomes and Outcome.FAIL not in outcomes

    def __str__(self) -> str:
        passed = sum(r.outcome is Outcome.PASS for r in self.results)
        tried = sum(r.outcome is not Outcome.REFUSED for r in self.results)
        watched = "bounds checked, lanes shuffled" if self.checked else "bounds not checked"
        verdict = "PASS" if self.passed else "FAIL"
        lines = (str(result) for result in self.results)
        return "\n".join((f"{verdict} {self.kernel}: {passed} of {tried} cases ({watched})", *lines))


def check(
    name: str,
    run: Run,
    reference: Reference,
    inputs: Sequence[Value],
    *,
    dtypes: Collection[torch.dtype] = FLOATING,
    fixed: Collection[int] = (),
    tolerance: Tolerance = BY_TYPE,
    gradients: bool = False,
    outputs: Sequence[str] = (),
) -> CheckReport:
    """Runs `run(*inputs)` on the device over cases made of an example, against `reference` in double precision.

    `fixed` are lengths of dimensions that have to stay as they are. `gradients` compares derivatives too. `outputs` are
    names for messages.
    """
    checked = load.started() is not None
    modes = [Mode(True, seed, True, sanitize=True) for seed in _SEEDS] if checked else [PLAIN]

    def try_case(case: Case, modes: Sequence[Mode]) -> CaseResult:
        result = CaseResult(case.name, Outcome.REFUSED)
        for mode in modes:
            with running(mode):
                result = _try(run, reference, case, tolerance, outputs)
            if result.outcome is not Outcome.PASS:
                break
        return result

    results = []
    with watching(Groups()) as groups:
        for case in cases(inputs, dtypes, fixed):
            results.append(try_case(case, (PLAIN, *modes) if case.name == "as given" and checked else modes))
    for size in SIZES if groups.left_open else ():
        with watching(Groups(size)):
            first = next(cases(inputs, dtypes, fixed))
            results.append(try_case(replace(first, name=f"threadgroups of {size}"), modes[:1]))
    if gradients:
        results.append(_check_gradients(run, reference, inputs, tolerance))
    return CheckReport(name, tuple(results), checked)


def _try(run: Run, reference: Reference, case: Case, tolerance: Tolerance, outputs: Sequence[str]) -> CaseResult:
    try:
        expected = _listed(_in_double(reference, case.inputs))
    except Exception as error:
        return CaseResult(case.name, Outcome.REFUSED, message=f"the reference refuses it: {_first_line(error)}")
    try:
        given = [case.place(v) if isinstance(v, torch.Tensor) else v for v in case.inputs]
        got = [each.cpu() for each in _listed(run(*given))]
    except (PorterError, RuntimeError, ValueError, TypeError) as error:
        if code_in(str(error)) in DECLINED:
            return CaseResult(case.name, Outcome.REFUSED, message=_first_line(error))
        return CaseResult(case.name, Outcome.FAIL, float("inf"), _first_line(error))
    return _judge(case.name, got, expected, tolerance, outputs, _measure_sums(reference, case.inputs))


def _measure_sums(reference: Reference, inputs: Sequence[Value]) -> list[float]:
    """For each result, its size if nothing cancels: what the reference makes of the inputs' magnitudes."""
    sizes = [v.abs() if isinstance(v, torch.Tensor) and v.is_floating_point() else v for v in inputs]
    try:
        return [largest_of(each) for each in _listed(_in_double(reference, sizes))]
    except Exception:  # the reference is somebody else's, and need not take magnitudes
        return []


def _judge(
    name: str,
    got: Sequence[torch.Tensor],
    expected: Sequence[torch.Tensor],
    tolerance: Tolerance,
    outputs: Sequence[str] = (),
    sums: Sequence[float] = (),
) -> CaseResult:
    if len(got) != len(expected):
        return CaseResult(name, Outcome.FAIL, message=f"{len(got)} outputs, not {len(expected)}")
    worst = 0.0
    for number, (ours, theirs) in enumerate(zip(got, expected, strict=True)):
        label = outputs[number] if number < len(outputs) else f"result {number} "
        error, difference = compare(label, ours, theirs, tolerance, sums[number] if number < len(sums) else 0.0)
        worst = max(worst, error)
        if difference is not None:
            return CaseResult(name, Outcome.FAIL, worst, str(difference), difference)
    return CaseResult(name, Outcome.PASS, worst)


def _in_double(reference: Reference, inputs: Sequence[Value]) -> Any:
    """The reference with floating-point inputs in double precision, or in their own if it takes no other."""
    wide = [v.double() if isinstance(v, torch.Tensor) and v.is_floating_point() else v for v in inputs]
    try:
        return reference(*wide)
    except Exception:
        return reference(*inputs)


def _check_gradients(run: Run, reference: Reference, inputs: Sequence[Value], tolerance: Tolerance) -> CaseResult:
    """The derivatives of the sum of all outputs, each weighted with its place."""
    ours = [to_device(v.detach()) if isinstance(v, torch.Tensor) else v for v in inputs]
    theirs = [v.detach().cpu() if isinstance(v, torch.Tensor) else v for v in inputs]
    theirs = [v.double() if isinstance(v, torch.Tensor) and v.is_floating_point() else v for v in theirs]
    try:
        expected = _gradients(reference, theirs)
        got = [g.cpu() for g in _gradients(run, ours)]
    except (PorterError, RuntimeError, ValueError, TypeError) as error:
        return CaseResult("gradients", Outcome.FAIL, float("inf"), _first_line(error))
    return _judge("gradients", got, expected, tolerance)


def _gradients(function: Run, inputs: Sequence[Value]) -> list[torch.Tensor]:
    leaves = [v.requires_grad_() for v in inputs if isinstance(v, torch.Tensor) and v.is_floating_point()]
    outputs = [out for out in _listed(function(*inputs)) if out.is_floating_point()]
    total = sum((out * torch.linspace(1, 2, out.numel(), dtype=out.dtype).to(out.device).view(out.shape)).sum()
                for out in outputs)  # fmt: skip
    found = torch.autograd.grad(total, leaves, allow_unused=True)  # type: ignore[arg-type]
    return [torch.zeros_like(leaf) if g is None else g for g, leaf in zip(found, leaves, strict=True)]


def _listed(found: Any) -> list[torch.Tensor]:
    return [found] if isinstance(found, torch.Tensor) else list(found)


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0][:300]
