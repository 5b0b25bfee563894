"""Traces a stage of a script: every way through its code, each up to the launch of a kernel or an error."""

from __future__ import annotations

import builtins
import dis
import math
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import PurePath
from types import FunctionType, SimpleNamespace
from typing import Any

import torch

from porter.core.dtypes import name_torch
from porter.core.errors import Place, PorterError
from porter.kernels.call import intercepting
from porter.kernels.kernel import Kernel
from porter.kernels.tracing.symbols import (
    Number,
    Path,
    Shape,
    SymbolicTensor,
    compute,
    current,
    express,
    express_sizes,
    following,
    wrap,
)
from porter.loops.host_algebra import apply, type_of
from porter.loops.host_values import Constant, HostSizes, HostValue, Node, Scalar
from porter.plan.promotion.promotion import Branch, Check, Launch, OutputTensor, Raised, TemplateValue, Tree

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


MOST_PATHS = 512
_CHECKS = {ValueError: Check.VALUE, TypeError: Check.TYPE, IndexError: Check.INDEX}
# What these raise is what Python itself would: an index out of range, a division by zero.
_PORTER = f"{PurePath(__file__).parents[2]}/"
_OWN = ("kernels/script.py", "kernels/tracing/symbols.py")
_TORCH = f"{PurePath(torch.__file__).parent}/"


@dataclass(frozen=True)
class Traced:
    """Every path of a stage for inputs of certain element types, the kernel they launch, and what they leave out."""

    tree: Tree
    kernel: Kernel
    notes: tuple[tuple[Place, str], ...]


class _Output:
    """An output of the launch: it can be returned, in another shape."""

    def __init__(self, at: int, sizes: HostSizes, dtype: torch.dtype) -> None:
        self.at, self.sizes, self.dtype = at, sizes, dtype

    def reshape(self, *shape: Any) -> _Output:
        given = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list, Shape)) else shape
        if any(each == -1 for each in given if not isinstance(each, Number)):
            raise current().refuse("PTR244", "the script leaves a size of a result open (-1)", "Give every size.")
        return _Output(self.at, express_sizes(given), self.dtype)

    view = reshape

    def contiguous(self) -> _Output:
        return self

    def to(self, dtype: torch.dtype) -> _Output:
        if dtype != self.dtype:
            raise current().refuse(
                "PTR244",
                f"the script converts a result of the kernel from {name_torch(self.dtype)} to {name_torch(dtype)}",
                "Let the kernel write the type that the stage gives.",
            )
        return self

    def _compute(self, *_: object) -> Any:
        raise _after("arithmetic")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __getitem__ = __neg__ = _compute

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise _after(f"torch's `{getattr(func, '__name__', func)}`")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise _after(f"`{name}`")


def _after(what: str) -> PorterError:
    return current().refuse(
        "PTR244", f"the script uses {what} of a kernel's result, which host code is not written for",
        "Promote a stage that launches one kernel and returns what it writes.",
    )  # fmt: skip


def trace(function: Callable[..., Any], arguments: Mapping[str, torch.dtype | str], file: str) -> Traced:
    """Traces a function of tensors of these element types, and of numbers of these Python types.

    Raises PTR245 (too many ways through), PTR243 (needs a size's value) or PTR244 (more than one launch).
    """
    prefix: tuple[bool, ...] = ()
    found: list[tuple[list[tuple[HostValue, bool]], Launch | Raised]] = []
    kernels: dict[Kernel, Place] = {}
    notes: dict[tuple[Place, str], None] = {}
    while len(found) < MOST_PATHS:
        path = Path(file, prefix)
        leaf = _Run(path, kernels).run(function, arguments)
        found.append((path.taken, leaf))
        notes.update(dict.fromkeys(path.notes) if isinstance(leaf, Launch) else {})
        values = [value for _, value in path.taken]
        while values and not values[-1]:
            values.pop()
        if not values:
            break
        prefix = (*values[:-1], False)
    else:
        raise PorterError(
            "PTR245", f"there are more than {MOST_PATHS} ways through the script", Place(file), "Take fewer decisions."
        )
    if not kernels:
        leaf = found[0][1]
        assert isinstance(leaf, Raised)
        what = "".join(part if isinstance(part, str) else "..." for part in leaf.message)
        raise PorterError(
            "PTR245", f"no call reaches a kernel: {what}", leaf.place, "Promote a stage that launches a kernel."
        )
    if len(kernels) > 1:
        names = ", ".join(each.name for each in kernels)
        raise PorterError(
            "PTR244", f"the stage launches one of several kernels: {names}", list(kernels.values())[1],
            "Promote a stage that always launches the same.",
        )  # fmt: skip
    return Traced(_build(found), next(iter(kernels)), tuple(notes))


def _build(paths: Sequence[tuple[list[tuple[HostValue, bool]], Launch | Raised]], depth: int = 0) -> Tree:
    taken, leaf = paths[0]
    if len(taken) == depth:
        return leaf
    yes = [each for each in paths if each[0][depth][1]]
    no = [each for each in paths if not each[0][depth][1]]
    return Branch(taken[depth][0], _build(yes, depth + 1), _build(no, depth + 1))


@dataclass
class _Run:
    """One run of the function along a path."""

    path: Path
    kernels: dict[Kernel, Place]
    launch: Launch | None = None

    def run(self, function: Callable[..., Any], arguments: Mapping[str, torch.dtype | str]) -> Launch | Raised:
        values = [_symbol(name, kind) for name, kind in arguments.items()]
        inner = function if isinstance(function, FunctionType) else getattr(function, "__func__", function)
        with (
            following(self.path),
            intercepting(self.take),
            substituting(getattr(inner, "__globals__", {})),
        ):
            try:
                return self.finish(function(*values))
            except PorterError as error:
                if error.place is None:
                    raise PorterError(error.code, error.what, self.path.place(), error.hint) from error
                raise
            except Exception as error:
                if self.launch is not None or not _is_meant(error):
                    raise self.fail(error) from error
                place = _place(error, self.path.file)
                check = next((c for kind, c in _CHECKS.items() if isinstance(error, kind)), Check.OTHER)
                return Raised(self.path.read_message(str(error)), check, place)

    def fail(self, error: Exception) -> PorterError:
        what = f"the script cannot be traced: {type(error).__name__}: {error}"
        return PorterError(
            "PTR245", what, _place(error, self.path.file), "Write this part with sizes and plain checks."
        )

    def take(self, kernel: Kernel, call: Mapping[str, Any]) -> list[Any]:
        """Takes the call of a kernel. Raises PTR244 for a second one."""
        place = self.path.place()
        if self.launch is not None:
            raise PorterError(
                "PTR244", f"the stage launches more than one kernel: {kernel.name} is the second", place,
                "Promote a stage that launches one, or write the others into it.",
            )  # fmt: skip
        self.kernels.setdefault(kernel, place)
        inputs = call["inputs"]
        values = [inputs[name] for name in kernel.inputs] if isinstance(inputs, Mapping) else list(inputs)
        if call["output_dtypes"] is None:
            raise PorterError(
                "PTR244", f"kernel {kernel.name} has the element types of its torch definition", place,
                "Call it as a MetalKernel, with output_dtypes.",
            )  # fmt: skip
        outputs = tuple(
            OutputTensor(express_sizes(shape), name_torch(dtype))
            for shape, dtype in zip(call["output_shapes"], call["output_dtypes"], strict=True)
        )
        self.launch = Launch(
            arguments=tuple(v.expression if isinstance(v, SymbolicTensor) else express(v) for v in values),
            argument_dtypes=tuple(name_torch(v.dtype) if isinstance(v, SymbolicTensor) else "" for v in values),
            kernel_outputs=outputs,
            outputs=(),
            returned=(),
            grid=_three(call["grid"]),
            group=_three(call["threadgroup"]),
            template=tuple(_template(name, value) for name, value in call["template"].items()),
            init_value=call["init_value"],
            names=tuple(_names(self.path.file).items()),
            place=place,
        )
        return [_Output(at, o.sizes, d) for at, (o, d) in enumerate(zip(outputs, call["output_dtypes"], strict=True))]

    def finish(self, result: Any) -> Launch:
        """The launch with what the function returns. Raises PTR244 for something else than outputs in order."""
        results = result if isinstance(result, (tuple, list)) else (result,)
        if self.launch is None or not all(isinstance(each, _Output) for each in results):
            raise PorterError(
                "PTR244", "the stage returns something else than its kernel's outputs", Place(self.path.file),
                "Promote a stage that returns what a kernel writes.",
            )  # fmt: skip
        returned = tuple(each.at for each in results)
        if len(set(returned)) < len(returned):
            raise PorterError(
                "PTR244", "the stage returns an output of its kernel twice", self.launch.place, "Return it once."
            )
        outputs = tuple(OutputTensor(each.sizes, name_torch(each.dtype)) for each in results)
        return replace(self.launch, outputs=outputs, returned=returned)


def _symbol(name: str, kind: torch.dtype | str) -> Any:
    return SymbolicTensor(name, kind) if isinstance(kind, torch.dtype) else Number(Scalar(name, type=kind))


def _three(sizes: Sequence[Any]) -> tuple[HostValue, ...]:
    one: HostValue = Constant(1)
    return (*(express(each) for each in sizes), *[one] * (3 - len(sizes)))


def _template(name: str, value: Any) -> TemplateValue:
    if isinstance(value, torch.dtype):
        return TemplateValue("typename", name, name_torch(value))
    expression = express(value)
    return TemplateValue("bool" if type_of(expression) == "bool" else "int", name, expression)


def _names(file: str) -> dict[str, Node]:
    """The names of local variables on the way to a launch, outermost first."""
    frames = []
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == file:
            frames.append(frame.f_locals)
        frame = frame.f_back  # type: ignore[assignment]
    found: dict[str, Node] = {}
    for values in reversed(frames):
        for name, value in values.items():
            if name in found:
                continue
            if isinstance(value, (Number, SymbolicTensor)):
                found[name] = value.expression
            elif isinstance(value, (bool, int, float)):
                found[name] = Constant(value)
    return found


def _is_meant(error: Exception) -> bool:
    """Whether a script raises an error itself, to refuse an argument: else the operator would refuse it too."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None or not isinstance(
        error, (ValueError, TypeError, LookupError, ArithmeticError, AssertionError, RuntimeError)
    ):
        return False
    code = last.tb_frame.f_code
    raised = dis.opname[code.co_code[last.tb_lasti]] == "RAISE_VARARGS"
    if code.co_filename.startswith(_PORTER):
        return raised and code.co_filename.removeprefix(_PORTER) in _OWN
    return raised and not code.co_filename.startswith(_TORCH)


def _place(error: BaseException, file: str) -> Place:
    lines = [each.lineno or 0 for each in traceback.extract_tb(error.__traceback__) if each.filename == file]
    return Place(file, lines[-1] if lines else 0)
