"""Calls that the CPU refuses: a number or one of a list out of bounds, lists and ranks of other lengths, other types,
words that mean nothing.

OpInfo has error inputs of some operators. A check that is lost, such as the one of reflection_pad2d that the padding is
less than the input, may let a kernel read outside of its tensor.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.suite.arguments import Varied, keep_refused
from porter.verdict.suite.context import aten_names
from porter.verdict.suite.leaves import Place, compute, list_passed, list_tensors, replace_argument
from porter.verdict.suite.made_opinfos import is_made
from porter.verdict.suite.omitted import list_omitted
from porter.verdict.suite.opinfos import OpInfos, take_spread
from porter.verdict.suite.overloads import Call, Overload, call_overload, name_row, record_calls
from porter.verdict.suite.samples import copy_sample
from porter.verdict.suite.variations.made_of_numbers import pick_samples
from porter.verdict.suite.variations.outs import find_outs, share_memory
from porter.verdict.suite.variations.variation import Expectation, Operators, Variation

_SAMPLES = 2
_MOST = 96  # calls tried for each sample
_FLAG, _TYPE, _SHARED = "flag", "type", "memory"
_NO_WORD = "no such value"
_REALS = (-1.0, 0.0, 2.0)  # a probability is neither below 0 nor above 1, and a width is positive
_PLACE = re.compile(r"""\bat "[^"]*":\d+""")  # of an internal assertion, in a file of aten/src/ATen/native/cpu too
_LACKS = "not implemented for|not supported on cpu|no kernel"
_CPU_LACKS = re.compile(_LACKS, re.I)
_CPU_ALONE = re.compile(rf"{_LACKS}|CPU|\bMKL\b", re.I)  # another device may have it


@dataclass(frozen=True)
class _Change:
    """A call with a value in the place of another: `told` is the value, for messages. Of several values of a `kind` in
    a place that the CPU refuses with one message one is enough.
    """

    place: str
    told: str
    sample: SampleInput
    kind: str = ""

    @property
    def label(self) -> str:
        """What a message says of the change."""
        return f"with {self.place}={self.told}"


def list_refused(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype, tensors: bool = True) -> Iterator[Varied]:
    """One call for each argument and each message of the CPU, but for what only the CPU cannot do.

    Labels have what was changed and the message. Without `tensors` these stay as they are: TensorIterator checks those
    of elementwise operators.
    """
    seen: set[tuple[str, ...]] = set()
    for sample in pick_samples(opinfos, op, dtype)[:_SAMPLES]:
        yield from _keep_unlike(op, [*_vary(sample, tensors), *_vary_omitted(op, sample)][:_MOST], seen)


def list_refused_calls(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """The same of a call of each row that samples end in, forward and backward: a Python function checks some of the
    arguments itself, as what makes an OpInfo of a schema does, and no sample gives a backward any.
    """
    slopes = op.supports_autograd and dtype.is_floating_point
    bases, rows = opinfos.context.bases, opinfos.context.rows
    calls: dict[str, Call] = {}
    for call in record_calls(op, take_spread(opinfos.reaching_samples(op, dtype, requires_grad=slopes)), bases):
        if call.args and isinstance(call.args[0], torch.Tensor) and call.args[0].numel():
            calls[call.name] = max(calls.get(call.name, call), call, key=_count_tensors)
    is_asked_whole = inspect.isfunction(op.op) or is_made(op)
    changes: dict[str, list[_Change]] = {}
    for name, call in calls.items():
        is_whole = is_asked_whole or call.base not in aten_names(op)
        if is_whole:
            changes[name] = _vary_call(call)
        # Of reflection_pad2d a port may serve the row that writes results alone, and F.pad calls another.
        for writing in find_outs(call.overload, rows) if rows else ():
            changes.setdefault(name_row(writing), _vary_writing(call, writing, is_whole and name not in rows))
    for varied in changes.values():
        yield from _keep_unlike(call_overload, varied, set(), opinfos.context.has_before)


def _count_tensors(call: Call) -> int:
    """A call without its optional weight says nothing of what a weight may be."""
    return len(list_tensors((call.args, call.kwargs)))


def _vary_call(call: Call, overload: Overload | None = None, **others: torch.Tensor) -> list[_Change]:
    sample = call.make_sample(overload, **call.defaults, **others)
    # Of a tensor without elements, as a statistic that was not saved, nothing is read.
    kept = {"overload", *(str(place) for place, value in list_passed(sample) if _is_empty(value))}
    return [each for each in _vary(sample, tensors=True) if each.place not in kept][:_MOST]


def _vary_writing(call: Call, writing: Overload, is_served_alone: bool) -> list[_Change]:
    """Changes of a call that writes results: of each result to a tensor of another kind, and of its arguments too,
    where no row under test returns what this one writes.
    """
    results = list_tensors(call.overload(*call.args, **call.kwargs))
    names = [each.name for each in writing._schema.arguments if each.is_out]
    if len(names) != len(results):  # a gradient that a mask leaves out
        return []
    outs = {name: result.new_empty(0) for name, result in zip(names, results, strict=True)}
    sample = call.make_sample(writing, **call.defaults, **outs)
    of_results = [
        _Change(name, label, replace_argument(sample, name, other), _TYPE)
        for name, out in outs.items()
        for label, other in _change_kind(out)
    ]
    shared = [_Change("results", label, varied, _SHARED) for label, varied in share_memory(call, writing, results)]
    return [*(_vary_call(call, writing, **outs) if is_served_alone else ()), *of_results, *shared]


def _is_empty(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and not value.numel()


def _keep_unlike(
    call: Callable[..., Any], changes: Sequence[_Change], seen: set[tuple[str, ...]], has_before: bool = False
) -> Iterator[Varied]:
    """One of those that the CPU refuses for each place, kind and message that is not among those `seen`.

    What only the CPU may refuse is among them where the fork `has_before` its port a function that is asked too.
    """
    for at, sample in keep_refused(call, [(str(at), change.sample) for at, change in enumerate(changes)]):
        change, why = changes[int(at)], _ask(call, sample)
        key = change.place, change.kind, re.sub(r"-?\d+", "N", why)
        plain = _PLACE.sub("", why)
        is_asked = has_before and _may_be_asked(change.kind, plain)
        if why and key not in seen and (is_asked or (change.kind != _SHARED and not _CPU_ALONE.search(plain))):
            seen.add(key)
            yield f"{change.label}: {why.splitlines()[0]}", sample


def _may_be_asked(kind: str, why: str) -> bool:
    """Whether another device may refuse a call as the CPU does: a flag, a result in the memory of an argument, or a
    type of one tensor that does not go with the others, which batch_norm refuses as "mixed dtype (CPU)".
    """
    return kind in (_FLAG, _SHARED) or (kind == _TYPE and not _CPU_LACKS.search(why))


def _ask(op: Callable[..., Any], sample: SampleInput) -> str:
    """What the CPU refuses a call with; "" if Python's parser of arguments does, on every device."""
    copied = copy_sample(sample)
    try:
        compute(op, copied)
    except TypeError:
        return ""
    except Exception as error:  # of any kind
        return str(error).strip()
    return ""


def _vary(sample: SampleInput, tensors: bool) -> Iterator[_Change]:
    sizes = tuple(reversed(sample.input.shape)) if isinstance(sample.input, torch.Tensor) else ()
    for place, value in list_passed(sample):
        if tensors or not isinstance(value, torch.Tensor):
            yield from _replace(sample, place, value, sizes)
    if tensors and isinstance(sample.input, (torch.Tensor, int, float)):
        yield from _replace(sample, "input", sample.input, sizes)


def _replace(sample: SampleInput, place: Place, value: Any, sizes: Sequence[int]) -> Iterator[_Change]:
    for at, told, other in _list_others(value, sizes):
        kind = _name_kind(value, other, len(sizes))
        yield _Change(f"{place}{at}", told, replace_argument(sample, place, other), kind)


def _vary_omitted(op: OpInfo, sample: SampleInput) -> Iterator[_Change]:
    """Real numbers and words that the sample omits: whole ones are mostly dimensions, which another test varies."""
    for argument in list_omitted(op, sample):
        if argument.values and isinstance(argument.values[0], (float, str)):
            yield from _replace(sample, argument.name, argument.values[0], ())


def _name_kind(value: Any, other: Any, rank: int) -> str:
    if isinstance(other, torch.Tensor):
        return _TYPE if other.dtype != value.dtype else ""
    return _FLAG if isinstance(other, bool) else _name_side(other, rank) if _is_whole(other) else ""


def _name_side(number: int, rank: int) -> str:
    """Where a number is that may be a dimension: each side has a check of its own."""
    return "below" if number < 0 else "within" if number < rank else "above"


def _list_others(value: Any, sizes: Sequence[int]) -> Iterator[tuple[str, str, Any]]:
    """Other values in the place of one, each after the place in a list and a text for messages."""
    if isinstance(value, torch.Tensor):
        yield from _vary_tensor(value)
    elif isinstance(value, bool):
        yield "", str(not value), not value
    elif _is_whole(value):
        rank = len(sizes)
        dims = (-1, 0, rank, -rank - 1, *range(1, rank), *range(-rank, -1))
        for other in dict.fromkeys((*dims, *sizes, *(size + 1 for size in sizes))):
            if other != value:
                yield "", str(other), other
    elif isinstance(value, float):
        yield from (("", str(other), other) for other in _REALS if other != value)
    elif isinstance(value, str):
        yield "", repr(_NO_WORD), _NO_WORD
    elif isinstance(value, (list, tuple)) and value and all(map(_is_whole, value)):
        kind = type(value) if type(value) in (list, tuple) else tuple
        yield from ((at, str(kind(other)), kind(other)) for at, other in _list_lists(value, sizes))


def _list_lists(value: Sequence[int], sizes: Sequence[int]) -> Iterator[tuple[str, Sequence[int]]]:
    """Lists that are shorter and longer by one, then with one number replaced, after its place."""
    yield "", value[:-1]
    yield "", (*value, value[-1])
    for at in range(len(value)):
        for other in dict.fromkeys((-1, 0, *sizes, *(size + 1 for size in sizes))):
            if other != value[at]:
                yield f"[{at}]", (*value[:at], other, *value[at + 1 :])


def _vary_tensor(tensor: torch.Tensor) -> Iterator[tuple[str, str, torch.Tensor]]:
    """A tensor of another rank, of other sizes, of another kind of numbers."""
    plain = tensor.detach()
    yield "", "a rank more", plain.unsqueeze(0)
    if plain.ndim:
        yield "", "a rank less", plain.select(0, 0) if len(plain) else plain.sum(0)
        yield "", "an element less", plain.narrow(-1, 0, max(plain.shape[-1] - 1, 0))
        yield "", "a row less", plain.narrow(0, 0, max(len(plain) - 1, 0))
    yield from (("", told, other) for told, other in _change_kind(plain))


def _change_kind(tensor: torch.Tensor) -> Iterator[tuple[str, torch.Tensor]]:
    yield "of another kind", tensor.to(torch.int64 if tensor.is_floating_point() else torch.float32)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


REFUSED = Variation("refused_arguments", list_refused, operators=Operators.STRUCTURED, expectation=Expectation.REFUSAL)
REFUSED_NUMBERS = Variation(
    "refused_numbers",
    partial(list_refused, tensors=False),
    operators=Operators.POINTWISE,
    expectation=Expectation.REFUSAL,
)
REFUSED_CALLS = Variation("refused_calls", list_refused_calls, expectation=Expectation.REFUSAL, calls_overloads=True)
