"""The sizes that a stage needs and its script does not check: found by calls of its reference and of its kernel.

A kernel reads as far as its grid goes. With a bias that is shorter than a row it reads past the end, and with one that
the reference broadcasts it computes something else. So an operator has to refuse what the reference refuses, and what
the kernel computes otherwise. A call that the script itself refuses tells nothing new.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from porter.core.errors import PorterError
from porter.kernels.intercept import intercepting
from porter.kernels.kernel import Kernel
from porter.kernels.launch import Mode, running
from porter.kernels.promotion.other_sizes import OtherCall, vary_alone, vary_together, without_values
from porter.kernels.promotion.size_rules import Numbers, Shapes, SizeRule, list_constants, list_rules
from porter.kernels.promotion.subject import Subject
from porter.kernels.script import Stage, find_difference, moved, on_cpu, widened
from porter.plan.new_operator.schema import Argument
from porter.plan.promotion.program import Requirement

_ERRORS = (PorterError, RuntimeError, ValueError, TypeError, IndexError, AssertionError, ArithmeticError)
_CHECKED = Mode(checked=True, poison=True)
Function = Callable[..., Any]


@dataclass(frozen=True)
class SizeChecks:
    """The checks that an operator needs besides its script's, and `left`: calls that none of them refuses."""

    requirements: tuple[Requirement, ...]
    left: tuple[str, ...]


@dataclass
class _Calls:
    """Shapes and whole numbers of calls: of right ones, and of those to refuse, with what these are."""

    right: list[tuple[Shapes, Numbers]] = field(default_factory=list)
    wrong: list[tuple[Shapes, Numbers, str]] = field(default_factory=list)


def find_size_checks(subject: Subject, parameters: Sequence[Argument]) -> SizeChecks:
    """The checks of sizes that refuse every wrong call that was tried, and no right one."""
    calls = _try_calls(subject, parameters)
    rules = [each for each in _list_all_rules(parameters, calls) if all(each.holds(*right) for right in calls.right)]
    chosen: list[SizeRule] = []
    left = []
    for shapes, numbers, what in calls.wrong:
        if all(each.holds(shapes, numbers) for each in chosen):
            rule = next((each for each in rules if not each.holds(shapes, numbers)), None)
            if rule is None:
                left.append(what)
            else:
                chosen.append(rule)
    ordered = [each.requirement for each in rules if each in chosen]
    return SizeChecks(tuple(ordered), tuple(left))


def _list_all_rules(parameters: Sequence[Argument], calls: _Calls) -> Iterator[SizeRule]:
    tensors = [each.name for each in parameters if each.is_tensor]
    seen = {name: [shapes[name] for shapes, _ in calls.right] for name in tensors}
    ranks = {name: {len(shape) for shape in shapes} for name, shapes in seen.items()}
    yield from list_rules(parameters, {name: min(found) if len(found) == 1 else None for name, found in ranks.items()})
    for name, shapes in seen.items():
        yield from list_constants(name, shapes)


def _try_calls(subject: Subject, parameters: Sequence[Argument]) -> _Calls:
    names = [argument.name for argument in parameters]
    calls = _Calls()
    for size in subject.script.sizes:
        given = subject.arguments(subject.case(size))
        calls.right.append(_describe(names, given))
        if size != subject.smallest:
            continue
        for other in (*vary_together(names, given), *vary_alone(names, given)):
            if not _is_taken(subject.function, other.arguments):
                continue
            if _is_right(subject, other):
                calls.right.append(_describe(names, other.arguments))
            else:
                calls.wrong.append((*_describe(names, other.arguments), other.what))
    return calls


def _describe(names: Sequence[str], arguments: Sequence[Any]) -> tuple[Shapes, Numbers]:
    """The shapes of tensors, and the whole numbers, by name."""
    pairs = list(zip(names, arguments, strict=True))
    shapes = {name: tuple(value.shape) for name, value in pairs if isinstance(value, Tensor)}
    return shapes, {name: value for name, value in pairs if isinstance(value, int) and not isinstance(value, bool)}


def _is_taken(function: Function, arguments: Sequence[Any]) -> bool:
    """Whether the script comes to the launch of its kernel, which is not run."""

    def take(_kernel: Kernel, call: Mapping[str, Any]) -> list[Any]:
        pairs = zip(call["output_shapes"], call["output_dtypes"], strict=True)
        return [torch.empty(tuple(shape), dtype=dtype) for shape, dtype in pairs]

    try:
        with intercepting(take):
            function(*arguments)
    except _ERRORS:
        return False
    return True


def _is_right(subject: Subject, call: OtherCall) -> bool:
    """Whether the reference takes a call, and the kernel computes the same, within its operands."""
    stage = subject.stage
    settled, expected = settle(stage, call)
    is_alone = sum(isinstance(each, Tensor) for each in call.arguments) == 1
    if expected is None or is_alone:  # one tensor alone has the sizes that its grid is made of
        return expected is not None
    values = dict(zip(stage.takes, settled.arguments, strict=True))
    try:
        with running(_CHECKED):
            got = stage.results(subject.function, moved(values, "mps"))
            precise = stage.results(stage.reference, widened(values))
            return find_difference(stage, got, expected, precise, subject.script.tolerance) is None
    except _ERRORS:
        return False


def settle(stage: Stage, call: OtherCall) -> tuple[OtherCall, Mapping[str, Any] | None]:
    """The call, and what the reference computes of it on the CPU; None if it refuses the sizes.

    Where it refuses the integers in a tensor alone, the call has zeros for them.
    """
    expected = _compute(stage, call)
    if expected is None and (zeros := without_values(call)) and (found := _compute(stage, zeros)) is not None:
        return zeros, found
    return call, expected


def _compute(stage: Stage, call: OtherCall) -> Mapping[str, Any] | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return stage.results(stage.reference, on_cpu(dict(zip(stage.takes, call.arguments, strict=True))))
    except _ERRORS:
        return None
