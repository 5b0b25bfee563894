"""Samples with one argument of a call varied: flags turned over, every result type, other numbers, far integers.

OpInfo samples give some of these, each with few of the others. Which arguments a call may omit, the schemas of an ATen
operator tell, or the signature of a Python function.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import faulthandler
import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

from porter.verdict.suite import samples

_FAR = 1 << 32  # what nothing is left of in 32 bits
_RESULT_TYPE = "dtype"
_ORDER = "sorted"  # a flag without which results may be in any order


def vary_arguments(op: OpInfo, sample: SampleInput, dtypes: Iterable[torch.dtype]) -> Iterator[tuple[str, SampleInput]]:
    """Yields the sample with one argument changed, with a name for messages; the CPU may refuse some of them.

    `dtypes` are the result types where the operator takes one.
    """
    defaults = dict(_list_defaults(op))
    omitted = {name: value for name, value in defaults.items() if value is not None and name not in sample.kwargs}
    for place, value in (*enumerate(sample.args), *sample.kwargs.items(), *omitted.items()):
        for other in _list_others(op, sample, place, value):
            yield f"with {place}={other}", _replace(sample, place, other)
    if _RESULT_TYPE in defaults:
        for dtype in dtypes:
            yield f"with {_RESULT_TYPE}={dtype}", _replace(sample, _RESULT_TYPE, dtype)


def leave_out_crashes(
    op: Callable[..., Any], varied: Iterable[tuple[str, SampleInput]]
) -> Iterator[tuple[str, SampleInput]]:
    """Those that end no process on the CPU, whose kernels do not check all that they are given."""
    left = list(varied)
    while left:
        survived = _count_survived(op, [sample for _, sample in left])
        yield from left[:survived]
        left = left[survived + 1 :]


def _count_survived(op: Callable[..., Any], varied: Sequence[SampleInput]) -> int:
    """How many calls a child process makes before one ends it."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        try:
            for sample in map(samples.copy_sample, varied):
                with suppress(Exception):
                    op(sample.input, *sample.args, **sample.kwargs)
                os.write(writer, b".")
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        survived = len(pipe.read())
    os.waitpid(child, 0)
    return survived


def _list_others(op: OpInfo, sample: SampleInput, place: int | str, value: Any) -> Iterator[Any]:
    if isinstance(value, bool):
        if place != _ORDER:
            yield not value
        return
    yield from samples.list_other_scalars(value)
    if isinstance(value, int):
        for far in (value + _FAR, value - _FAR):
            if _shapes(op, _replace(sample, place, far)) == _shapes(op, sample) is not None:
                yield far


def _list_defaults(op: OpInfo) -> list[tuple[str, Any]]:
    """Arguments of every overload that a call may leave out, and their defaults."""
    if inspect.isfunction(op.op):
        parameters = inspect.signature(op.op).parameters.values()
        return [(each.name, each.default) for each in parameters if each.default is not each.empty]
    schemas = torch._C._jit_get_schemas_for_operator(f"aten::{op.aten_name}")
    arguments = (each for schema in schemas for each in schema.arguments)
    return [(each.name, each.default_value) for each in arguments if each.has_default_value()]


def _replace(sample: SampleInput, place: int | str, value: Any) -> SampleInput:
    """The sample with the argument at a position after the input, or of a name."""
    args = tuple(value if i == place else each for i, each in enumerate(sample.args))
    kwargs = sample.kwargs if isinstance(place, int) else {**sample.kwargs, place: value}
    return SampleInput(sample.input, args=args, kwargs=kwargs)


def _shapes(op: OpInfo, sample: SampleInput) -> list[torch.Size] | None:
    """The shapes of the results, which ATen tells of meta tensors; None if it does not."""
    meta = sample.transform(lambda value: value.detach().to("meta") if isinstance(value, torch.Tensor) else value)
    try:
        results = op(meta.input, *meta.args, **meta.kwargs)
    except Exception:  # of any kind: the operator, or what it calls, has no meta function or refuses the value
        return None
    return [each.shape for each in pytree.tree_leaves(results) if isinstance(each, torch.Tensor)]
