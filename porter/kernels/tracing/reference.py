"""A reference as C++: calls of ATen, where it is no more than that."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any

import torch

from porter.core.errors import PorterError
from porter.kernels.call import describe
from porter.kernels.tracing.symbols import Number, Path, Shape, SymbolicTensor, following
from porter.kernels.tracing.tracer import substituting
from porter.loops.host_values import Constant, Scalar
from porter.metal.codegen.host_values import Printer

_OPTIONS = ("dtype", "layout", "device", "pin_memory")
_OPERATORS = {"add": "+", "sub": "-", "mul": "*", "truediv": "/"}


class NotCalls(Exception):
    """The reference is more than calls of ATen. Holds what it is."""


@dataclass(frozen=True)
class WrittenReference:
    """An expression for each result, and the ATen functions that they call."""

    results: tuple[str, ...]
    functions: tuple[str, ...]


@dataclass(frozen=True)
class _Type:
    """An element type that depends on the call's, as C++."""

    text: str


@dataclass(frozen=True)
class _Device:
    """Where a tensor is, as C++."""

    text: str


@dataclass
class _Used:
    """The ATen functions that were called."""

    names: dict[str, None] = field(default_factory=dict)


class _Tensor(SymbolicTensor):
    """A tensor as the C++ that makes it."""

    def __init__(self, text: str, used: _Used, argument: str = "") -> None:
        self.text, self.used, self.argument = text, used, argument
        self.expression = argument

    @property
    def dtype(self) -> Any:  # type: ignore[override]
        return _Type(f"{self.text}.scalar_type()")

    @property
    def device(self) -> Any:
        return _Device(f"{self.text}.device()")

    @property
    def shape(self) -> Shape:
        if not self.argument:
            raise NotCalls("the sizes of a result")
        return super().shape

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: self.call(name, args, kwargs)

    def call(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> _Tensor:
        if name == "to" and len(args) == 1 and not kwargs and isinstance(args[0], (_Type, torch.dtype)):
            return _Tensor(f"{self.text}.to({_spell(args[0], 'ScalarType')})", self.used)
        return _call(self.used, name, (self, *args), kwargs)

    contiguous = detach = reshape = view = None  # type: ignore[assignment]


def _binary(symbol: str) -> Callable[[Any, Any], Any]:
    def run(left: Any, right: Any) -> Any:
        return _Tensor(f"({_spell(left, 'Tensor')} {symbol} {_spell(right, 'Scalar')})", left.used)

    return run


for _name, _symbol in _OPERATORS.items():
    setattr(_Tensor, f"__{_name}__", _binary(_symbol))
for _name in ("contiguous", "detach", "reshape", "view"):
    delattr(_Tensor, _name)
    setattr(_Tensor, _name, lambda self, *a, _n=_name, **k: self.call(_n, a, k))


class _Module:
    """torch, or a module of it, whose functions are written down instead of run."""

    def __init__(self, module: ModuleType, used: _Used) -> None:
        self.module, self.used = module, used

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.module, name)
        if isinstance(found, ModuleType):
            return _Module(found, self.used)
        if name == "promote_types":
            return _promote
        if callable(found) and not isinstance(found, type):
            return lambda *args, **kwargs: _call(self.used, name, args, kwargs)
        return found


def _promote(left: Any, right: Any) -> _Type:
    if isinstance(left, _Type) and right == torch.float32:
        return _Type(f"at::promote_types({left.text}, kFloat)")
    raise NotCalls("a promotion of types")


def write_aten_calls(function: Callable[..., Any], arguments: Mapping[str, str], file: str) -> WrittenReference:
    """A reference as C++. `arguments` are names with `Tensor`, `int`, `float` or `bool`. Raises NotCalls."""
    used = _Used()
    values = [
        _Tensor(name, used, name) if kind == "Tensor" else Number(Scalar(name, type=kind))
        for name, kind in arguments.items()
    ]
    path = Path(file)
    with following(path):
        try:
            found = _run(function, values, used)
        except (PorterError, TypeError, AttributeError, ValueError, RuntimeError, KeyError) as error:
            raise NotCalls(str(error).splitlines()[0]) from error
    if path.taken:
        raise NotCalls("it decides on sizes")
    results = found if isinstance(found, (tuple, list)) else (found,)
    if not all(isinstance(each, _Tensor) for each in results):
        raise NotCalls("it returns something else than tensors")
    return WrittenReference(tuple(each.text for each in results), tuple(used.names))


def _run(function: Callable[..., Any], values: Sequence[Any], used: _Used) -> Any:
    module = (getattr(function, "__module__", None) or "torch").partition(".")[0]
    if module == "torch" or not isinstance(function, FunctionType):
        return _call(used, function.__name__, values, {})
    names = function.__globals__
    modules = {name: value for name, value in names.items() if _is_torch(value)}
    names.update({name: _Module(value, used) for name, value in modules.items()})
    try:
        with substituting(names):
            return function(*values)
    finally:
        names.update(modules)


def _is_torch(value: object) -> bool:
    return isinstance(value, ModuleType) and value.__name__.partition(".")[0] == "torch"


def _call(used: _Used, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> _Tensor:
    for schema in _schemas(name):
        given = _bind(schema, args, kwargs)
        if given is not None:
            used.names[name] = None
            return _Tensor(f"at::{name}({', '.join(given)})", used)
    raise NotCalls(f"ATen's {name} does not take what it is given")


def _schemas(name: str) -> Iterator[Any]:
    """The schemas of an ATen function that give one tensor, without those that write to an argument."""
    for schema in torch._C._jit_get_schemas_for_operator(f"aten::{name}"):
        results = [str(each.type) for each in schema.returns]
        if results == ["Tensor"] and not schema.is_mutable and "Dimname" not in str(schema):
            yield schema


def _bind(schema: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[str] | None:
    """The arguments of a call in C++, in the order of the schema; None if they do not fit."""
    positional = [each for each in schema.arguments if not each.kwarg_only]
    names = {each.name for each in schema.arguments}
    if len(args) > len(positional) or not kwargs.keys() <= names:
        return None
    given = {each.name: value for each, value in zip(positional, args, strict=False)} | dict(kwargs)
    spelled: list[str] = []
    last = max((at for at, each in enumerate(schema.arguments) if each.name in given), default=-1)
    if last >= 0 and schema.arguments[last].name in _OPTIONS:  # C++ takes them all together
        last = max(at for at, each in enumerate(schema.arguments) if each.name in _OPTIONS)
    for at, each in enumerate(schema.arguments):
        if each.name not in given and not each.has_default_value():
            return None
        if at > last:
            break
        try:
            spelled.append(_spell(given.get(each.name, each.default_value), str(each.real_type)))
        except NotCalls:
            return None
    return spelled


def _spell(value: Any, kind: str) -> str:
    """A value as an argument of a type of schemas. Raises NotCalls."""
    inner = kind.removeprefix("Optional[").removesuffix("]")
    if value is None and kind.startswith("Optional["):
        return "std::nullopt"
    match value:
        case _Tensor() if inner == "Tensor":
            return value.text
        case _Type() | _Device():
            return value.text
        case torch.dtype():
            return f"k{describe(value).aten}"
        case Shape() if inner.startswith("List["):
            return Printer().listed(value.sizes)
        case list() | tuple() if inner.startswith("List["):
            return "{" + ", ".join(_spell(each, "int") for each in value) + "}"
        case Number() if inner in ("number", "float", "int", "bool", "Scalar"):
            return Printer().print(value.expression)
        case bool() | int() | float() if inner in ("number", "float", "int", "bool", "Scalar", "SymInt"):
            return Printer().print(Constant(value))
    raise NotCalls(f"{type(value).__name__} for {kind}")
