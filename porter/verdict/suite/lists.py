"""Runs the fork's MPS test lists: `common_mps.py` (since 2.8) or the functions of `test/test_mps.py`.

They only decorate OpInfos, so they run on the wheel's OpInfos, before and after the edit.
"""

from __future__ import annotations

import ast
import re
import types
import unittest.mock
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import lru_cache
from typing import Any

from porter.core.dtypes import ALL, Kind
from porter.core.errors import Place, PorterError
from porter.core.layout import COMMON_MPS
from porter.languages.identifiers import find_words

NEWEST_MACOS = 26.0
FORWARD, GRADIENTS = "mps_ops_modifier", "mps_ops_grad_modifier"
MODIFIERS = (FORWARD, GRADIENTS, "mps_ops_error_inputs_modifier")
_GRAD_DTYPES = tuple(dtype.torch for dtype in ALL if dtype.kind is Kind.FLOATING)
_PRELUDE = """\
import unittest
from collections import defaultdict
import torch
from torch.testing._internal.common_dtype import *
from torch.testing._internal.common_utils import *
from torch.testing._internal.common_utils import MACOS_VERSION
from torch.testing._internal.common_device_type import *
from torch.testing._internal.opinfo.core import DecorateInfo, OpInfo
product_version = MACOS_VERSION
"""

Modifier = Callable[[Sequence[Any]], Sequence[Any]]


@lru_cache(maxsize=4)
def modifiers(file: str, text: str) -> Mapping[str, Modifier]:
    """The modifier functions of a list file, by name; a fork without one of them leaves the OpInfos as they are.

    Gradients are of OpInfos that the forward list has decorated already, as upstream's second test copies the first's.
    Raises PTR163 when the fork's code does not run on this wheel.
    """
    found: dict[str, Modifier] = dict.fromkeys(MODIFIERS, _leave_unchanged)
    if text:
        namespace = _execute(file, text) if file == COMMON_MPS else run(file, _functions(text))
        found.update({name: _collect(namespace[name]) for name in MODIFIERS if name in namespace})
    forward, backward = found[FORWARD], found[GRADIENTS]
    return {**found, GRADIENTS: lambda ops: backward(forward(ops))}


def low_precision(text: str) -> dict[str, frozenset[str]]:
    """The `FP16_LOW_PRECISION_LIST`-like sets of a fork's `test/test_mps.py`, by their prefix."""
    pattern = re.compile(r"^ +(?P<kind>\w+)_LOW_PRECISION_LIST = (?P<set>\{.*?^ +\})", re.M | re.S)
    return {m["kind"]: frozenset(ast.literal_eval(m["set"])) for m in pattern.finditer(text)}


def grad_dtypes(text: str) -> tuple[str, ...]:
    """The types whose gradients a fork's `test/test_mps.py` compares, as torch names."""
    match = re.search(r"^MPS_GRAD_DTYPES = \[(?P<types>[^\]]*)\]", text, re.M)
    return tuple(word for word in find_words(match["types"]) if word != "torch") if match else _GRAD_DTYPES


def run(file: str, text: str) -> dict[str, Any]:
    """The names that a piece of a fork's test file defines, with those that such files import. Raises PTR163."""
    return _execute(file, _PRELUDE + text)


def _execute(file: str, text: str) -> dict[str, Any]:
    from torch.testing._internal import common_utils

    common_utils.MACOS_VERSION = NEWEST_MACOS  # off a Mac it is 0, and entries for macOS 13 would apply
    module = types.ModuleType("torch.testing._internal.common_mps")
    module.__package__ = "torch.testing._internal"
    try:
        _run_as_mac(exec)(compile(text, file, "exec"), module.__dict__)
    except Exception as error:
        line = getattr(error, "lineno", None) or _line(error, file)
        what = f"the test lists fail on this torch: {type(error).__name__}: {error}"
        raise PorterError("PTR163", what, Place(file, line), "Check the edited list.") from error
    return module.__dict__


def _collect(modifier: Modifier) -> Modifier:
    """Collects the modifier's result. In old forks it is a generator, which would check the platform too late."""
    return _run_as_mac(lambda ops: list(modifier(ops)))


def _run_as_mac(function: Callable[..., Any]) -> Callable[..., Any]:
    """Runs the function as on the newest macOS, because the lists check."""

    def call(*args: Any) -> Any:
        with ExitStack() as stack:
            for name in ("is_available", "is_macos_or_newer", "is_macos13_or_newer"):
                stack.enter_context(unittest.mock.patch(f"torch.backends.mps.{name}", _yes))
            return function(*args)

    return call


@lru_cache
def _yes(*_: object) -> bool:
    """Cached as torch's own are: what is imported meanwhile may look for what the cache wraps."""
    return True


def _line(error: BaseException, file: str) -> int:
    trace, line = error.__traceback__, 0
    while trace:
        line = trace.tb_lineno if trace.tb_frame.f_code.co_filename == file else line
        trace = trace.tb_next
    return line


def _functions(text: str) -> str:
    """The modifier functions alone, cut out by indentation: the file around them is 12,000 lines of other tests."""
    pattern = re.compile(rf"^def (?:{'|'.join(MODIFIERS)})\(.*?(?=^[^\s#)])", re.M | re.S)
    return "\n".join(m[0] for m in pattern.finditer(text))


def _leave_unchanged(ops: Sequence[Any]) -> Sequence[Any]:
    return ops
