"""Samples with one argument of a call varied: flags turned over, every result type, other numbers, far integers.

OpInfo samples give some of these, each with few of the others. Which arguments a call may omit, the schemas of an ATen
operator tell, or the signature of a Python function.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import hashlib
import inspect
import os
import unittest
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

from porter.verdict.suite import cpu_memory, samples
from porter.verdict.suite.children import run_forked
from porter.verdict.suite.context import aten_names
from porter.verdict.suite.kept_outcomes import Batch
from porter.verdict.suite.leaves import Place, compute, list_passed, list_tensors, replace_argument
from porter.verdict.suite.shared_child import try_calls

_FAR = 1 << 32  # what nothing is left of in 32 bits
_INEXACT = (1 << 53) + 1  # what no double is
_LARGER = 1000  # more than samples have elements
RESULT_TYPE = "dtype"
_REFUSED, _COMPUTED, _UNWRITTEN = 0, 1, 2
_FILLINGS = (0x00, 0xA5)  # bytes of memory that nothing has written to
_ORDER = "sorted"  # a flag without which results may be in any order
Varied = tuple[str, SampleInput]


def vary_arguments(op: OpInfo, sample: SampleInput, dtypes: Iterable[torch.dtype]) -> Iterator[Varied]:
    """Yields the sample with one argument changed, with a name for messages; the CPU may refuse some of them.

    `dtypes` are the result types where the operator takes one.
    """
    for place, value in list_arguments(op, sample):
        for other in _list_others(op, sample, place, value):
            yield f"with {place}={other}", replace_argument(sample, place, other)
    if takes_result_type(op):
        for dtype in dtypes:
            yield f"with {RESULT_TYPE}={dtype}", replace_argument(sample, RESULT_TYPE, dtype)


def takes_result_type(op: OpInfo) -> bool:
    """Whether a call may name the type of its result."""
    return RESULT_TYPE in dict(_list_defaults(op))


def turn_flags(op: OpInfo, sample: SampleInput) -> Iterator[Varied]:
    """Yields the sample with one flag turned over, with a name for messages, where the CPU computes it: not training,
    batch normalization reads running statistics, also where there are none.
    """
    flags = ((place, value) for place, value in list_arguments(op, sample) if isinstance(value, bool))
    turned = ((place, not value) for place, value in flags if place != _ORDER)
    yield from keep_computed(
        op, ((f"with {place}={value}", replace_argument(sample, place, value)) for place, value in turned)
    )


def list_arguments(op: OpInfo, sample: SampleInput) -> Iterator[tuple[Place, Any]]:
    """The arguments after the input by position or name, and those that the sample omits with their defaults."""
    yield from list_passed(sample)
    omitted = dict(_list_defaults(op)).items()
    yield from ((name, value) for name, value in omitted if value is not None and name not in sample.kwargs)


def turn_to_last(op: OpInfo, sample: SampleInput) -> SampleInput:
    """The sample with its first number that may be a dimension of its input counted from the end; else as it is."""
    rank = sample.input.ndim
    for place, value in list_passed(sample):
        if type(value) is int and -rank <= value < rank:
            turned = replace_argument(sample, place, -1)
            return sample if value == -1 or _shapes(op, turned) is None else turned
    return sample


def vary_result_sizes(op: OpInfo, sample: SampleInput, size: int, most: int) -> Iterator[Varied]:
    """Yields the sample with one whole number so large that a result has a dimension of it, and `most` elements."""
    before = {length for shape in _shapes(op, sample) or () for length in shape}
    inputs = [("input", sample.input)] if not isinstance(sample.input, torch.Tensor) else []
    for place, value in (*inputs, *list_arguments(op, sample)):
        for label, other in _enlarge_numbers(value, size):
            varied = replace_argument(sample, place, other)
            shapes = _shapes(op, varied) or []
            longest = max((length for shape in shapes for length in shape), default=0)
            if longest >= size > max(before, default=0) and sum(shape.numel() for shape in shapes) <= most:
                yield f"with {place}{label}={size}", varied


def _enlarge_numbers(value: Any, size: int) -> Iterator[tuple[str, Any]]:
    """A whole number as large as that, or a list with one of its own so large."""
    if type(value) is int:
        yield "", size
    elif isinstance(value, (list, tuple)) and all(type(number) is int for number in value):
        for at in range(len(value)):
            yield f"[{at}]", type(value)((*value[:at], size, *value[at + 1 :]))


def vary_far_numbers(op: OpInfo, sample: SampleInput, numbers: Iterable[int]) -> Iterator[Varied]:
    """Yields the sample with one whole number of its arguments far from these, by what nothing is left of in 32 bits.

    Only of which no size of a result follows, as ATen tells of meta tensors.
    """
    expected = _shapes(op, sample)
    far = [number + by for number in numbers for by in (_FAR, -_FAR)]
    for place, value in list_arguments(op, sample):
        for number in far if type(value) is int and expected is not None else ():
            if _shapes(op, varied := replace_argument(sample, place, number)) == expected:
                yield f"with {place}={number}", varied


def shift_integers(op: OpInfo, sample: SampleInput, by: int) -> Iterator[Varied]:
    """Yields the sample with all tensors of its input's type and all whole numbers larger by that, then each alone.

    Only of which no size of a result follows.
    """
    yield from _change_integers(op, sample, lambda value: value + by, f"larger by {by}")


def spread_integers(op: OpInfo, sample: SampleInput) -> Iterator[Varied]:
    """Yields the sample with all tensors of its input's type times 2^32, in which order they keep, then each alone.

    In 32 bits all are zero. Only of which no size of a result follows.
    """
    yield from _change_integers(op, sample, lambda value: value * _FAR, f"times {_FAR}")


def _change_integers(op: OpInfo, sample: SampleInput, change: Callable[[Any], Any], label: str) -> Iterator[Varied]:
    if not isinstance(sample.input, torch.Tensor):
        return
    expected = _shapes(op, sample)
    leaves, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    places = [at for at, leaf in enumerate(leaves) if _is_integer(leaf, sample.input.dtype)]

    def replace(chosen: Collection[int], other: Callable[[Any], Any]) -> SampleInput:
        changed = [other(leaf) if at in chosen else leaf for at, leaf in enumerate(leaves)]
        source, args, kwargs = pytree.tree_unflatten(changed, spec)
        return SampleInput(source, args=args, kwargs=kwargs)

    for chosen in (places, *([at] for at in places if len(places) > 1)):
        varied = replace(chosen, change)
        larger = replace(chosen, lambda value: value + _LARGER)
        if (expected is None and has_few_results(op, larger)) or expected == _shapes(op, varied) is not None:
            yield f"{'all integers' if chosen is places else f'argument {chosen[0]}'} {label}", varied


def has_few_results(op: OpInfo, sample: SampleInput) -> bool:
    """Whether the CPU makes no more rows of results than the input has elements: of those whose number follows from
    elements, as the counts of bincount do, ones that are larger would take all memory.
    """
    for _, computed in keep_computed(op, [("", sample)]):
        copied = samples.copy_sample(computed)
        sizes = [len(each) for each in list_tensors(compute(op, copied)) if each.ndim]
        return max(sizes, default=0) <= sample.input.numel()
    return False


def shift_numbers(op: OpInfo, sample: SampleInput, by: int) -> Iterator[Varied]:
    """Yields a call of whole numbers alone with some of them larger by that, if its results are larger by just that.

    None where the CPU itself computes in floats, as `linspace` does: then results do not follow numbers that no double
    has.
    """
    expected, numbers = _shapes(op, sample), (sample.input, *sample.args)
    subsets = (chosen for count in range(len(numbers)) for chosen in combinations(range(len(numbers)), count + 1))
    for chosen in subsets if expected is not None else ():
        far, exact = (_add_to_numbers(sample, chosen, amount) for amount in (by, _INEXACT))
        is_shifted = _shapes(op, far) == expected == _shapes(op, exact)
        if is_shifted and _follows(op, sample, exact, lambda result: result + _INEXACT):
            yield f"numbers {', '.join(map(str, chosen))} larger by {by}", far


def scale_numbers(op: OpInfo, sample: SampleInput, by: int) -> Iterator[Varied]:
    """Yields a call of whole numbers alone with all times `by`, if its results are too: steps are far apart then."""
    first, *rest = (value * by for value in (sample.input, *sample.args))
    far = SampleInput(first, args=tuple(rest), kwargs=sample.kwargs)
    expected = _shapes(op, sample)
    if expected is not None and _shapes(op, far) == expected and _follows(op, sample, far, lambda result: result * by):
        yield f"all numbers times {by}", far


def _add_to_numbers(sample: SampleInput, chosen: Collection[int], amount: int) -> SampleInput:
    """A call of numbers with those at some places, the input's first, larger by an amount."""
    first, *rest = [value + amount if at in chosen else value for at, value in enumerate((sample.input, *sample.args))]
    return SampleInput(first, args=tuple(rest), kwargs=sample.kwargs)


def _follows(
    op: OpInfo, sample: SampleInput, larger: SampleInput, change: Callable[[torch.Tensor], torch.Tensor]
) -> bool:
    """Whether all elements of the CPU's result are changed so for the second sample, and there are several.

    One may be a number of the call itself.
    """
    try:
        result, other = (compute(op, each) for each in (sample, larger))
    except Exception:  # of any kind: the operator need not take such numbers
        return False
    return isinstance(result, torch.Tensor) and result.numel() > 1 and torch.equal(change(result), other)


def _is_integer(value: Any, dtype: torch.dtype) -> bool:
    return value.dtype == dtype if isinstance(value, torch.Tensor) else type(value) is int


def keep_computed(op: Callable[..., Any], varied: Iterable[Varied]) -> Iterator[Varied]:
    """Those that the CPU computes: it raises an error for some and, not checking all that it is given, ends its process
    or writes beyond its memory for others. Those are left out of whose results it leaves a part unwritten.
    """
    yield from (each for each, outcome in _try_all(op, varied) if outcome == _COMPUTED)


def keep_refused(op: Callable[..., Any], varied: Iterable[Varied]) -> Iterator[Varied]:
    """Those that the CPU raises an error for."""
    yield from (each for each, outcome in _try_all(op, varied) if outcome == _REFUSED)


def keep_survived(op: Callable[..., Any], varied: Iterable[Varied]) -> Iterator[Varied]:
    """Those that end no process on the CPU, and damage none of its memory."""
    yield from (each for each, _ in _try_all(op, varied))


def _try_all(op: Callable[..., Any], varied: Iterable[Varied]) -> Iterator[tuple[Varied, int]]:
    """What comes of each call that ends no process and damages no memory."""
    left, has_ended = list(varied), False  # a process; others may do so too, and are tried in one of their own
    while left:
        batch = Batch(op, [sample for _, sample in left])
        outcomes = batch.recall()
        if outcomes is None:
            outcomes = _run_in_child(op, [sample for _, sample in left], is_shared=not has_ended)
            batch.keep(outcomes)
        has_ended = len(outcomes) < len(left)
        yield from zip(left, outcomes, strict=False)
        left = left[len(outcomes) + 1 :]


def _run_in_child(op: Callable[..., Any], varied: Sequence[SampleInput], *, is_shared: bool) -> bytes:
    """What comes of each call in a child process; of fewer calls if one ends it or damages its memory."""
    if is_shared and (outcomes := try_calls(op, varied, _run)) is not None:
        return outcomes

    def tell(writing: int) -> None:
        for sample in varied:
            outcome = _run(op, sample)
            if cpu_memory.is_damaged():
                break
            os.write(writing, bytes([outcome]))

    return run_forked(tell)[0]


def _run(op: Callable[..., Any], sample: SampleInput) -> int:
    """What comes of a call in a process that ends soon. It runs twice, and memory that it allocates has other bytes."""
    results = []
    for filling in _FILLINGS:
        cpu_memory.start_watching(filling)
        copied = samples.copy_sample(sample)
        torch.manual_seed(0)
        try:
            results.append(_digest_elements(compute(op, copied)))
        except Exception:  # of any kind: the value may be none that the function is written for
            return _REFUSED
    return _COMPUTED if results[0] == results[1] else _UNWRITTEN


def _digest_elements(results: Any) -> list[bytes]:
    """A digest of the elements of each result that is a strided tensor of the CPU."""
    tensors = (leaf.detach() for leaf in list_tensors(results))
    plain = (each for each in tensors if each.layout is torch.strided and each.device.type == "cpu")
    whole = (each.resolve_conj().resolve_neg().contiguous().reshape(-1) for each in plain)
    return [hashlib.blake2b(each.view(torch.uint8).numpy().data).digest() for each in whole if each.numel()]


def list_result_types(op: OpInfo, dtypes: Iterable[torch.dtype]) -> list[torch.dtype]:
    """Those of some types that a result may have: not what the fork's lists expect the operator to fail for."""
    expected = [each for each in op.decorators if unittest.expectedFailure in getattr(each, "decorators", ())]
    return [dtype for dtype in dtypes if not any(each.is_active("", "", "mps", dtype, {}) for each in expected)]


def _list_others(op: OpInfo, sample: SampleInput, place: Place, value: Any) -> Iterator[Any]:
    if isinstance(value, bool):
        if place != _ORDER:
            yield not value
        return
    yield from samples.list_other_scalars(value)
    expected = _shapes(op, sample) if isinstance(value, int) else None
    if expected is not None:
        yield from (
            far for far in (value + _FAR, value - _FAR) if _shapes(op, replace_argument(sample, place, far)) == expected
        )


def _list_defaults(op: OpInfo) -> list[tuple[str, Any]]:
    """Arguments of every overload that a call may leave out, and their defaults."""
    if inspect.isfunction(op.op):
        parameters = inspect.signature(op.op).parameters.values()
        named = [(each.name, each.default) for each in parameters if each.default is not each.empty]
        passes_others = any(each.kind is each.VAR_KEYWORD for each in parameters)
        return [*(_list_schema_defaults(op) if passes_others else ()), *named]
    return _list_schema_defaults(op)


def _list_schema_defaults(op: OpInfo) -> list[tuple[str, Any]]:
    found = (torch._C._jit_get_schemas_for_operator(f"aten::{name}") for name in sorted(aten_names(op)))
    arguments = (each for schemas in found for schema in schemas for each in schema.arguments)
    return [(each.name, each.default_value) for each in arguments if each.has_default_value()]


def _shapes(op: OpInfo, sample: SampleInput) -> list[torch.Size] | None:
    """The shapes of the results, which ATen tells of meta tensors; None if it does not."""
    try:
        results = samples.call_on_meta(op, sample)
    except Exception:  # of any kind: the operator, or what it calls, has no meta function or refuses the value
        return None
    return [each.shape for each in list_tensors(results)]
