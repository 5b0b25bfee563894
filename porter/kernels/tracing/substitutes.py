"""What a script's functions find instead of Python's own while they are traced, so that unknown sizes pass through."""

from __future__ import annotations

import builtins
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import torch

from porter.kernels.tracing.path import current
from porter.kernels.tracing.symbols import Number, Shape, compute, express, wrap
from porter.plan.promotion.expressions import apply, type_of

_MATH = ("sqrt", "log", "log2", "exp", "floor", "ceil")
_MISSING = object()


def _fold(function: str) -> Any:
    plain = getattr(builtins, function)

    def folded(*values: Any, **options: Any) -> Any:
        listed = list(values[0]) if len(values) == 1 else list(values)
        if options or not any(isinstance(each, Number) for each in listed):
            return plain(*values, **options)
        found = listed[0]
        for each in listed[1:]:
            found = compute(function, found, each)
        return found

    return folded


class _OfNumbers(type):
    """`isinstance` of a substitute holds for what is one of Python's own, or is unknown and of that type."""

    def __instancecheck__(cls, value: object) -> bool:
        plain = cls.__mro__[1]
        return isinstance(value, plain) or (isinstance(value, Number) and type_of(value.expression) == plain.__name__)


class _Float(float, metaclass=_OfNumbers):
    def __new__(cls, value: Any = 0.0) -> Any:
        return wrap(_convert("float", value)) if isinstance(value, Number) else float(value)


class _Int(int, metaclass=_OfNumbers):
    def __new__(cls, value: Any = 0, *base: Any) -> Any:
        return wrap(_convert("int", value)) if isinstance(value, Number) else int(value, *base)


def _convert(name: str, value: Number) -> Any:
    expression = express(value)
    return expression if type_of(expression) == name else apply(name, expression)


class _Tuple(tuple, metaclass=_OfNumbers):  # type: ignore[type-arg]
    def __new__(cls, values: Any = ()) -> Any:
        return values if isinstance(values, Shape) else tuple(values)


def _functions() -> SimpleNamespace:
    found = {name: getattr(math, name) for name in dir(math) if not name.startswith("_")}
    for name in _MATH:
        found[name] = lambda v, n=name: compute(n, v) if isinstance(v, Number) else getattr(math, n)(v)
    found["prod"] = lambda values: values.numel() if isinstance(values, Shape) else _product(values)
    return SimpleNamespace(**found)


def _product(values: Any) -> Any:
    total: Any = 1
    for each in values:
        total = total * each
    return total


def _without_gradient(function: type[torch.autograd.Function]) -> Any:
    """A stand-in for a differentiable function that only computes."""

    def run(*arguments: Any) -> Any:
        what = f"the gradient of {function.__name__} is left out: give the operator a row in derivatives.yaml"
        current().notes.append((current().place(), what))
        context = SimpleNamespace(save_for_backward=lambda *_: None, mark_non_differentiable=lambda *_: None)
        return function.forward(context, *arguments)

    return SimpleNamespace(apply=run)


@contextmanager
def substituting(names: dict[str, Any]) -> Iterator[None]:
    """Puts the substitutes among a module's names for a block; names that the module gave itself stay."""
    changed: Mapping[str, Any] = {
        **{name: _fold(name) for name in ("min", "max") if name not in names},
        **{n: v for n, v in {"float": _Float, "int": _Int, "tuple": _Tuple}.items() if n not in names},
        **{name: _functions() for name, value in names.items() if value is math},
        **{n: _without_gradient(v) for n, v in names.items() if _is_differentiable(v)},
    }
    before = {name: names.get(name, _MISSING) for name in changed}
    names.update(changed)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is _MISSING:
                del names[name]
            else:
                names[name] = value


def _is_differentiable(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, torch.autograd.Function)
