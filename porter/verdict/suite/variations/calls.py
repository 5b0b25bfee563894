"""Calls of the rows under test with other numbers, other flags, infinite operands, and without tensors that may be left
out.

`F.interpolate` gives height and width one scale, and no OpInfo differentiates a batch norm without a weight and outside
of training: of the overload itself each argument is varied alone, and beside each flag.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo

from porter.verdict.suite.arguments import Varied, keep_computed
from porter.verdict.suite.cuts import stay_inside
from porter.verdict.suite.leaves import compute_unless_refused, list_tensors
from porter.verdict.suite.opinfos import OpInfos, take_spread
from porter.verdict.suite.overloads import AS_RECORDED, Call, call_overload, record_calls
from porter.verdict.suite.samples import copy_sample, count_results
from porter.verdict.suite.variations.variation import Variation

MORE, LESS = 1.25, 0.5  # times a number
_SMALL, _MORE_THAN_SMALL = 0.01, 0.5  # a number that is added to others, as to a variance, and one in its place
MOST_CALLS, MOST = 6, 16  # that differ in flags or in which tensors they have, and what is tried of each
MOST_ELEMENTS = 1 << 12
RANK = 4  # of an index
_OPTIONAL = "Optional[Tensor]"
_ORDER = "sorted"  # a flag without which results may be in any order


def list_calls(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """The calls that samples end in, forward and backward, with arguments varied, where the CPU computes that."""
    slopes = op.supports_autograd and dtype.is_floating_point
    samples = take_spread(opinfos.reaching_samples(op, dtype, requires_grad=slopes))
    unlike: dict[str, Call] = {}
    for call in sorted(record_calls(op, samples, opinfos.context.bases), key=_weigh, reverse=True):
        if 0 < _count_elements(call) <= MOST_ELEMENTS:
            unlike.setdefault(_describe(call), call)
    for call in islice(unlike.values(), MOST_CALLS):
        varied = ((f"{call.name}{AS_RECORDED}", call.make_sample()), *islice(vary_call(call), MOST))
        yield from keep_computed(stay_inside(call_overload), varied)
        yield from put_infinite(call)


def _weigh(call: Call) -> tuple[int, bool]:
    """How much a call asks for: what is scaled or repeated by ones alone may be copied without a kernel."""
    numbers = [value for value in _list_arguments(call).values() if type(value) is int]
    return _count_elements(call), any(value != 1 for value in numbers)


def _count_elements(call: Call) -> int:
    first = call.args[0] if call.args else None
    return first.numel() if isinstance(first, torch.Tensor) else 0


def _count_results(call: Call) -> int:
    return count_results(call_overload, call.make_sample())


def vary_call(call: Call) -> Iterator[Varied]:
    """Yields a call with each real number larger, a small one so much that results differ beyond rounding, and smaller:
    of scales one reaches past the end; and each whole one the greatest index, if no size is made of it.

    Then with each flag turned over, without each tensor that may be left out, with each index in 32 bits, and of more
    dimensions: alone, and beside each flag.
    """
    passed = _list_arguments(call)
    kinds = {argument.name: str(argument.real_type) for argument in call.overload._schema.arguments}
    indices = {name: value for name, value in passed.items() if _is_index(value)}
    greatest = max((int(index.max()) for index in indices.values()), default=None)
    numbers: list[dict[str, Any]] = [
        {name: other}
        for name, value in passed.items()
        if type(value) is float and value
        for other in ((value * MORE, value * LESS) if abs(value) >= _SMALL else (_MORE_THAN_SMALL,))
    ]
    if greatest is not None:
        whole = [{name: greatest} for name, value in passed.items() if type(value) is int and value != greatest]
        size = _count_results(call)
        numbers += [others for others in whole if 0 < size == _count_results(_replace(call, others))]
    turned = [{name: not value} for name, value in passed.items() if isinstance(value, bool) and name != _ORDER]
    tensors: list[dict[str, Any]] = [
        {name: None} for name, value in passed.items() if value is not None and kinds[name] == _OPTIONAL
    ]
    tensors += [{name: index.to(torch.int32)} for name, index in indices.items()]
    tensors += [_add_dimensions(passed, index) for index in indices.values() if 0 < index.ndim < RANK]
    pairs = [flag | tensor for flag in turned for tensor in tensors]
    for others in (*numbers, *tensors, *turned, *pairs):
        changes = ", ".join(f"{name}={_tell(value)}" for name, value in others.items())
        yield f"{call.name} with {changes}", _replace(call, others).make_sample()


def _add_dimensions(passed: Mapping[str, Any], index: torch.Tensor) -> dict[str, Any]:
    """An index with dimensions of one element before its own, and what has a row for each of it likewise."""
    added = (1,) * (RANK - index.ndim)
    alike = {
        name: value
        for name, value in passed.items()
        if isinstance(value, torch.Tensor) and value.shape[: index.ndim] == index.shape
    }
    return {name: value.reshape(*added, *value.shape) for name, value in alike.items()}


def put_infinite(call: Call) -> Iterator[Varied]:
    """Yields a call with the last element of each floating tensor infinite, where each result is that tensor's elements
    times numbers, some of them infinite and none NaN: zero times an element that a kernel is to leave out would be.
    """
    for name, value in _list_arguments(call).items():
        if not isinstance(value, torch.Tensor) or not value.is_floating_point() or value.numel() < 2:
            continue
        operand = value.detach().clone(memory_format=torch.contiguous_format)
        ones, last = torch.ones_like(operand), operand.clone()
        last.view(-1)[-1] = math.inf
        tried = [_compute(_replace(call, {name: each})) for each in (0 * ones, ones, 2 * ones, last)]
        pairs = zip(*tried, strict=True) if tried[0] and all(map(len, tried)) else ()
        kept = [_tells_infinite(*several) for several in pairs]
        if kept and all(kept):
            yield f"{call.name} with {name} infinite at its end", _replace(call, {name: last}).make_sample()


def _tells_infinite(none: torch.Tensor, one: torch.Tensor, two: torch.Tensor, infinite: torch.Tensor) -> bool:
    """Whether a result of ones is twice as much of twos and nothing of none, and some of its elements are infinite."""
    is_linear = not none.any() and torch.allclose(one * 2, two)
    return is_linear and not infinite.isnan().any() and bool(infinite.isinf().any() and infinite.isfinite().any())


def _compute(call: Call) -> list[torch.Tensor]:
    """The CPU's floating results; none where it refuses the call, or has others."""
    tensors = list_tensors(compute_unless_refused(call_overload, copy_sample(call.make_sample())))
    return tensors if all(each.is_floating_point() for each in tensors) else []


def _is_index(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype == torch.int64 and value.numel() > 0


def _tell(value: Any) -> str:
    return f"{value.dtype} of {value.ndim} dimensions" if isinstance(value, torch.Tensor) else str(value)


def _list_arguments(call: Call) -> Mapping[str, Any]:
    names = [argument.name for argument in call.overload._schema.arguments]
    return dict(zip(names, call.args, strict=False)) | call.kwargs


def _replace(call: Call, others: Mapping[str, Any]) -> Call:
    names = [argument.name for argument in call.overload._schema.arguments]
    args = tuple(others.get(name, value) for name, value in zip(names, call.args, strict=False))
    return replace(call, args=args, kwargs={name: others.get(name, value) for name, value in call.kwargs.items()})


def _describe(call: Call) -> str:
    """Flags, and which tensors and numbers there are."""
    kept = {name: value if isinstance(value, bool) else type(value) for name, value in _list_arguments(call).items()}
    return f"{call.name} {kept}"


CALLS = Variation("calls", list_calls, calls_overloads=True)
