"""Arguments of the wrong kind: found, and named, before anything runs with them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torch

from porter.core.errors import PorterError
from porter.kernels.compare import Tolerance
from porter.kernels.kernel import Kernel
from porter.kernels.validation import checked_inputs, sizes

_VJP = ("inputs", "gradients", "outputs")


def check_functions(
    name: str, functions: Mapping[str, object], inputs: Sequence[str] | None, flags: Mapping[str, object] | None = None
) -> None:
    """Raises PTR284 for a function that is none or that cannot take what it will get, and a flag that is no bool.

    Without `inputs`, which a call may name, how many a function takes is not known.
    """
    for what, function in functions.items():
        if function is None:
            continue
        if not callable(function):
            raise PorterError(
                "PTR284", f"`{what}` of kernel `{name}` is a {type(function).__name__}, not a function",
                hint=f"Give a function: {what}=lambda x: ..., or leave `{what}` out.",
            )  # fmt: skip
        given = _VJP if what == "vjp" else inputs
        if given is not None and not _takes(function, len(given)):
            raise PorterError(
                "PTR284", f"`{what}` of kernel `{name}` does not take {len(given)} arguments",
                hint=f"It gets {', '.join(given) or 'no argument'}.",
            )  # fmt: skip
    for what, flag in (flags or {}).items():
        if not isinstance(flag, bool):
            raise PorterError("PTR284", f"`{what}` of kernel `{name}` is {flag!r}", hint="Give True or False.")


def _takes(function: Callable[..., object], count: int) -> bool:
    """Whether a function takes that many arguments by place, as far as it says."""
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:  # one that is written in C, and has no signature
        return True
    return True


def check_example(kernel: Kernel, inputs: object) -> None:
    """Raises PTR205 and PTR207 for an example that is not a list with one value for each input."""
    checked_inputs(kernel, inputs)


def check_choices(kernel: Kernel, dtypes: object, fixed: object, tolerance: object) -> None:
    """Raises PTR285 for what a check cannot be told to do."""
    if not _is_collection(dtypes, torch.dtype):
        raise _refuse(kernel, "check", "dtypes", dtypes, "Give a list of types: [torch.float32].")
    if not _is_collection(fixed, int):
        raise _refuse(kernel, "check", "fixed", fixed, "Give a list of lengths: [64].")
    if not isinstance(tolerance, Tolerance):
        hint = "Give porter.kernels.Tolerance(relative=1e-3, absolute=1e-5)."
        raise _refuse(kernel, "check", "tolerance", tolerance, hint)


def check_examples(kernel: Kernel, examples: object, groups: object) -> None:
    """Raises PTR285 for what cannot be timed, and PTR205, PTR207 and PTR211 for what is in it."""
    if not isinstance(examples, (list, tuple)) or not examples or not all(map(_is_list, examples)):
        raise _refuse(
            kernel, "benchmark", "examples", examples,
            f"Give a list with the inputs of each call, themselves a list: [[{', '.join(kernel.inputs)}]].",
        )  # fmt: skip
    for example in examples:
        checked_inputs(kernel, example)
    if groups is None:
        return
    if not isinstance(groups, (list, tuple)) or not all(map(_is_list, groups)):
        raise _refuse(kernel, "benchmark", "groups", groups, "Give a list of threadgroups: [(64, 1, 1), (8, 8, 1)].")
    for group in groups:
        sizes(kernel, "threadgroup", group)


def check_launch(name: str, given: object, arguments: Collection[str]) -> Mapping[str, Any]:
    """What a launch gives. Raises PTR258 for anything but arguments of a call."""
    if not isinstance(given, Mapping):
        raise PorterError(
            "PTR258", f"the launch of kernel `{name}` gives a {type(given).__name__}",
            hint=f'Return a dict of arguments of a call: {{"{next(iter(arguments))}": (8, 1, 1)}}.',
        )  # fmt: skip
    unknown = [each for each in given if each not in arguments]
    if unknown:
        raise PorterError(
            "PTR258", f"the launch of kernel `{name}` gives `{unknown[0]}`", hint=f"It can give {', '.join(arguments)}."
        )
    return given


def _is_collection(given: object, kind: type) -> bool:
    return isinstance(given, (list, tuple, set, frozenset)) and all(isinstance(each, kind) for each in given)


def _is_list(given: object) -> bool:
    return isinstance(given, (list, tuple))


def _refuse(kernel: Kernel, method: str, what: str, given: object, hint: str) -> PorterError:
    said = f"a {type(given).__name__}" if isinstance(given, torch.Tensor) else repr(given)[:80]
    return PorterError("PTR285", f"`{what}` of the {method} of kernel `{kernel.name}` is {said}", hint=hint)
