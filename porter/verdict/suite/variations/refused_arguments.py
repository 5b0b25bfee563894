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
from porter.verdict.suite.leaves import Place, compute, list_passed, replace_argument
from porter.verdict.suite.made_opinfos import is_made
from porter.verdict.suite.omitted import list_omitted
from porter.verdict.suite.opinfos import OpInfos, take_spread
from porter.verdict.suite.overloads import call_overload, name_row, record_calls
from porter.verdict.suite.samples import copy_sample
from porter.verdict.suite.variations.made_of_numbers import choose_numbered
from porter.verdict.suite.variations.outs import find_outs
from porter.verdict.suite.variations.variation import Expectation, Operators, Variation

_SAMPLES = 2
_MOST = 96  # calls tried for each sample
_FLAG = "flag"
_NO_WORD = "no such value"
_REALS = (-1.0, 0.0, 2.0)  # a probability is neither below 0 nor above 1, and a width is positive
_PLACE = re.compile(r"""\bat "[^"]*":\d+""")  # of an internal assertion, in a file of aten/src/ATen/native/cpu too
_CPU_ALONE = re.compile(
    r"not implemented for|not supported on cpu|no kernel|CPU|\bMKL\b", re.I
)  # another device may have it


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
    chosen = opinfos.pick_samples(op, dtype) or choose_numbered(opinfos.reaching_samples(op, dtype))
    for sample in chosen[:_SAMPLES]:
        yield from _keep_unlike(op, [*_vary(sample, tensors), *_vary_omitted(op, sample)][:_MOST], seen)


def list_refused_calls(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """The same of a call of each row that samples end in, forward and backward: a Python function checks some of the
    arguments itself, as what makes an OpInfo of a schema does, and no sample gives a backward any.
    """
    slopes = op.supports_autograd and dtype.is_floating_point
    bases, rows = opinfos.context.bases, opinfos.context.rows
    called: dict[str, SampleInput] = {}
    for call in record_calls(op, take_spread(opinfos.reaching_samples(op, dtype, requires_grad=slopes)), bases):
        is_own = call.base in aten_names(op) and not inspect.isfunction(op.op) and not is_made(op)
        if call.args and isinstance(call.args[0], torch.Tensor) and call.args[0].numel() and not is_own:
            called.setdefault(call.name, call.make_sample(**call.defaults))
            # Of reflection_pad2d a port may serve the row that writes results alone, and F.pad calls another.
            for writing in find_outs(call.overload, rows) if rows and call.name not in rows else ():
                outs = {each.name: call.args[0].new_empty(0) for each in writing._schema.arguments if each.is_out}
                called.setdefault(name_row(writing), call.make_sample(writing, **call.defaults, **outs))
    for sample in called.values():
        kept = {"overload", *(name for name, value in sample.kwargs.items() if _is_empty(value))}
        changes = [each for each in _vary(sample, tensors=True) if each.place not in kept]
        yield from _keep_unlike(call_overload, changes[:_MOST], set(), opinfos.context.has_before)


def _is_empty(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and not value.numel()


def _keep_unlike(
    call: Callable[..., Any], changes: Sequence[_Change], seen: set[tuple[str, ...]], has_before: bool = False
) -> Iterator[Varied]:
    """One of those that the CPU refuses for each place, kind and message that is not among those `seen`.

    A flag that only the CPU may refuse is among them where the fork `has_before` its port a function that is asked too.
    """
    for at, sample in keep_refused(call, [(str(at), change.sample) for at, change in enumerate(changes)]):
        change, why = changes[int(at)], _ask(call, sample)
        key = change.place, change.kind, re.sub(r"-?\d+", "N", why)
        is_asked = has_before and change.kind == _FLAG
        if why and key not in seen and (is_asked or not _CPU_ALONE.search(_PLACE.sub("", why))):
            seen.add(key)
            yield f"{change.label}: {why.splitlines()[0]}", sample


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
        kind = _name_side(other, len(sizes)) if _is_whole(other) else _FLAG if isinstance(other, bool) else ""
        yield _Change(f"{place}{at}", told, replace_argument(sample, place, other), kind)


def _vary_omitted(op: OpInfo, sample: SampleInput) -> Iterator[_Change]:
    """Real numbers and words that the sample omits: whole ones are mostly dimensions, which another test varies."""
    for argument in list_omitted(op, sample):
        if argument.values and isinstance(argument.values[0], (float, str)):
            yield from _replace(sample, argument.name, argument.values[0], ())


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
    yield "", "of another kind", plain.to(torch.int64 if plain.is_floating_point() else torch.float32)


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
