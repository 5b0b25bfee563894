"""The kernels of a stub that writes several results: one for each, which computes that element of the tuple.

Source: aten/src/ATen/native/cpu/Loops.h, `cpu_kernel_multiple_outputs`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from functools import partial
from typing import Any

from porter.aten.branches import Facts
from porter.core.checkout import Checkout
from porter.core.dtypes import DType
from porter.core.errors import PorterError
from porter.cpu.kernels import CpuKernel, find_registered_kernel, read_cpu_kernel
from porter.cpu.loops import CPU_LOOPS, Loops, ScalarFunction
from porter.languages import cpp
from porter.languages.brackets import split_at_commas
from porter.languages.definitions import Definition

_LOOP = "cpu_kernel_multiple_outputs"
_TUPLES = frozenset(("", "tuple", "make_tuple"))
_NAMED = re.compile(r"\breturn\s*(?:std::(?:make_)?tuple(?:<[^;{}()]*>)?\s*)?[({]([\w\s,]+)[)}]\s*;")
_RETURNED = re.compile(r"(?:std::)?tuple<(.*)>", re.S)


def read_result_kernels(
    checkout: Checkout, stub: str, count: int, output: Callable[[DType], DType]
) -> tuple[tuple[str, CpuKernel], ...]:
    """Returns the kernel of each of a stub's results, with the name of the result in the CPU's code.

    Raises PTR077, or PTR018 for one whose kernel is not such a loop.
    """
    found, _ = find_registered_kernel(checkout, stub)
    if _LOOP not in found.text:
        what = f"{stub} has {count} results, but a functor has one"
        raise PorterError("PTR018", what, found.place, "Port it by hand.")
    kernels = (read_cpu_kernel(checkout, stub, output, loops=_make_loops(at)) for at in range(count))
    return tuple(zip(_read_names(found, count), kernels, strict=True))


def _make_loops(at: int) -> Loops:
    return replace(CPU_LOOPS, names=frozenset((_LOOP,)), read=partial(_read_result, at))


def _read_result(at: int, found: Definition, call: cpp.Call, facts: Facts) -> ScalarFunction | None:
    whole = CPU_LOOPS.read(found, call, facts)
    if whole is None:
        return None
    returned = _RETURNED.fullmatch(whole.body.returns.strip())
    returns = split_at_commas(returned[1])[at].strip() if returned else ""
    body = replace(whole.body, returns=returns, body=_select(whole.body.body, at))
    return replace(whole, body=body)


def _select(statement: Any, at: int) -> Any:
    """Returns a statement with one element of each tuple that it returns."""
    if isinstance(statement, cpp.Return):
        return replace(statement, value=_take(statement.value, at))
    if isinstance(statement, tuple):
        return tuple(_select(each, at) for each in statement)
    if not is_dataclass(statement) or isinstance(statement, type | cpp.LambdaExpr):
        return statement
    return replace(statement, **{each.name: _select(getattr(statement, each.name), at) for each in fields(statement)})


def _take(value: cpp.Expr | None, at: int) -> cpp.Expr | None:
    if isinstance(value, cpp.Call) and isinstance(value.function, cpp.Name) and value.function.last in _TUPLES:
        return value.arguments[at]
    return value


def _read_names(found: Definition, count: int) -> tuple[str, ...]:
    """Returns what the kernel calls the elements that it returns, or their numbers."""
    for match in _NAMED.finditer(found.text):
        names = tuple(each.strip() for each in match[1].split(","))
        if len(names) == count and all(each.isidentifier() for each in names):
            return names
    return tuple(map(str, range(count)))
