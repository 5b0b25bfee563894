"""Samples with arguments that they omit, one or two at a time, and strings and flags at each of their values.

OpInfo's samples of nan_to_num give `posinf` with `neginf`, or neither; the tests of single arguments give one number.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, islice
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.derivatives import list_derived_with
from porter.verdict.suite.arguments import Varied
from porter.verdict.suite.context import aten_names
from porter.verdict.suite.leaves import list_passed, replace_argument

MOST = 24  # calls of one sample
_ORDER = "sorted"  # a flag without which results may be in any order
_MEMORY = frozenset({"out", "inplace", "pin_memory", "requires_grad", "validate_args", "_stacklevel"})
_NUMBERS, _INTEGERS = ("float", "Scalar", "number", "double"), ("int", "SymInt")


@dataclass(frozen=True)
class Argument:
    """An argument that a call may omit: its name, and values that differ from its default and from each other."""

    name: str
    values: tuple[Any, ...]


def vary_omitted(op: OpInfo, sample: SampleInput) -> Iterator[Varied]:
    """Yields the sample with each omitted number, string or flag given, then with each two, at most `MOST` in all.

    The CPU may refuse some of them.
    """
    omitted = list_omitted(op, sample)
    singles = [((argument, value),) for argument in omitted for value in argument.values]
    pairs = [
        ((one, one.values[turn % len(one.values)]), (other, other.values[turn % len(other.values)]))
        for turn in range(2)
        for one, other in combinations(omitted, 2)
    ]
    for settings in islice((*singles, *pairs), MOST):
        varied = sample
        for argument, value in settings:
            varied = replace_argument(varied, argument.name, value)
        yield "with " + ", ".join(f"{argument.name}={value!r}" for argument, value in settings), varied


def vary_strings(op: OpInfo, sample: SampleInput) -> Iterator[Varied]:
    """Yields the sample with each of its strings at every other value that the operator may take."""
    for place, value in list_passed(sample):
        if isinstance(value, str):
            for other in list_strings(op):
                if other != value:
                    yield f"with {place}={other!r}", replace_argument(sample, place, other)


def vary_tensors(sample: SampleInput) -> Iterator[Varied]:
    """Yields the sample with numbers for all tensors of the input's type beside it, and for each alone, in turn.

    They are rows of their own, as clamp of two numbers is, whose first may be the larger one. Of whole ones some have
    more digits than a float. The CPU may refuse them.
    """
    if not isinstance(sample.input, torch.Tensor):
        return
    dtype = sample.input.dtype
    arguments = list_passed(sample)
    places = [place for place, value in arguments if isinstance(value, torch.Tensor) and value.dtype == dtype]
    for chosen in dict.fromkeys((tuple(places), *((place,) for place in places))) if places else ():
        values = _list_plain(dtype)
        for turn in range(len(values)):
            numbers = {place: values[(turn + at) % len(values)] for at, place in enumerate(chosen)}
            varied = sample
            for place, number in numbers.items():
                varied = replace_argument(varied, place, number)
            yield "with " + ", ".join(f"{place}={number}" for place, number in numbers.items()), varied


def _list_plain(dtype: torch.dtype) -> tuple[Any, ...]:
    """Numbers of a type that differ, in no order; of bools, none."""
    if dtype.is_complex:
        return (0.5 + 1.25j, -0.75j)
    if dtype.is_floating_point:
        return (-0.75, 2.5)
    most = 0 if dtype is torch.bool else torch.iinfo(dtype).max
    return tuple(number for number in (2, 100, 2**24 + 1, 2**53 + 1) if number <= most)


def list_omitted(op: OpInfo, sample: SampleInput) -> list[Argument]:
    """The numbers, strings and flags that a sample omits, of the signature that takes what it gives.

    Of a function in Python the signature is its own, else of the first overload of the schema with all names given.
    """
    found = []
    for index, (name, kind, default) in enumerate(_list_optional(op, sample)):
        values = tuple(value for value in _list_values(op, kind, default, index) if value != default)
        if values:
            found.append(Argument(name, values))
    return found


def _list_optional(op: OpInfo, sample: SampleInput) -> list[tuple[str, str, Any]]:
    """The name, the type as text and the default of each argument that a sample omits."""
    for listed in _list_signatures(op):
        names = [name for name, *_ in listed]
        rest = listed[1 + len(sample.args) :]
        if len(listed) > len(sample.args) and set(sample.kwargs) <= set(names):
            passed = {*sample.kwargs, _ORDER, *_MEMORY}
            return [each for each in rest if each[0] not in passed and each[2] is not inspect.Parameter.empty]
    return []


def _list_signatures(op: OpInfo) -> Iterator[list[tuple[str, str, Any]]]:
    """The arguments of each signature: names, types, and defaults or `inspect.Parameter.empty`."""
    empty = inspect.Parameter.empty
    if inspect.isfunction(op.op):
        parameters = inspect.signature(op.op).parameters.values()
        if not any(each.kind is each.VAR_KEYWORD or each.kind is each.VAR_POSITIONAL for each in parameters):
            yield [(each.name, str(each.annotation), each.default) for each in parameters]
            return
    for name in sorted(aten_names(op)):
        for schema in torch._C._jit_get_schemas_for_operator(f"aten::{name}"):
            if not any(argument.is_out for argument in schema.arguments):
                yield [
                    (a.name, str(a.type), a.default_value if a.has_default_value() else empty) for a in schema.arguments
                ]


def _list_values(op: OpInfo, kind: str, default: Any, index: int) -> Sequence[Any]:
    """Values of an argument, which tell it from the others of the call."""
    if isinstance(default, bool) or "bool" in kind:
        return (True, False)
    if isinstance(default, str) or (default is None and "str" in kind):
        return list_strings(op)
    if isinstance(default, float) or (default is None and any(each in kind for each in _NUMBERS)):
        return (1.25 + index, -2.5 - index)
    if isinstance(default, int) or (default is None and any(each in kind for each in _INTEGERS)):
        return (2 + index, 1, -1)
    return ()


# The strings that an operator may take: the defaults of its schema, and what its documentation quotes.
#
# No sample of an OpInfo has to give all of them; which of them the operator refuses, the CPU tells.


_QUOTED = re.compile(r"""[`'"]+(\w+)['"`]+""")
_MOST = 16
_PLACES = (torch, torch.nn.functional, torch.linalg, torch.special, torch.Tensor, torch._C._nn)


def list_strings(op: OpInfo) -> tuple[str, ...]:
    """Words that may be values of string arguments, the defaults of the schema first; none without such an argument."""
    names = tuple(sorted(aten_names(op)))
    return _list_quoted(names, getattr(op.op, "__doc__", None) or "")


@lru_cache(maxsize=64)
def _list_quoted(names: tuple[str, ...], text: str) -> tuple[str, ...]:
    schemas = [s for name in names for s in torch._C._jit_get_schemas_for_operator(f"aten::{name}")]
    strings = [a for schema in schemas for a in schema.arguments if str(a.type).startswith(("str", "Optional[str"))]
    if schemas and not strings:
        return ()
    defaults = [a.default_value for a in strings if isinstance(a.default_value, str)]
    forwards = (*names, *(forward for name in names for forward in list_derived_with(name)))
    documented = (getattr(place, name, None) for place in _PLACES for name in dict.fromkeys(forwards))
    texts = [text, *(getattr(function, "__doc__", None) or "" for function in documented)]
    quoted = [word for each in texts for word in _QUOTED.findall(each)]
    return tuple(dict.fromkeys([*defaults, *quoted]))[:_MOST]
