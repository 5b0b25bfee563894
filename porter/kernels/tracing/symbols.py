"""Numbers, sizes and tensors that are not known yet, as a script meets them, and one way through its code."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field
from operator import index
from typing import Any

import torch

from porter.core.errors import Place, PorterError
from porter.core.setting import setting
from porter.kernels.call import describe
from porter.loops import host_values as host
from porter.loops.host_algebra import ZERO, apply, is_never_negative, negate, type_of
from porter.metal.codegen.host_values import Message

_MARK = "\0"
LONGEST = 64


@dataclass
class Path:
    """The decisions so far: those of `prefix` are given, later ones are first taken as true.

    `file` is the script, whose lines errors name. `notes` are what the operator leaves out.
    """

    file: str
    prefix: tuple[bool, ...] = ()
    taken: list[tuple[host.HostValue, bool]] = field(default_factory=list)
    printed: list[host.HostValue | host.HostSizes] = field(default_factory=list)
    notes: list[tuple[Place, str]] = field(default_factory=list)
    _known: dict[host.HostValue, bool] = field(default_factory=dict)

    def decide(self, condition: host.HostValue) -> bool:
        """Whether a condition holds on this path. Raises PTR245 for a path of too many decisions."""
        known = self.find(condition)
        if known is not None:
            return known
        if len(self.taken) == LONGEST:
            raise self.refuse("PTR245", f"the script takes more than {LONGEST} decisions on sizes here", "Take fewer.")
        value = self.prefix[len(self.taken)] if len(self.taken) < len(self.prefix) else True
        self.taken.append((condition, value))
        self._learn(condition, value)
        return value

    def know(self, condition: host.HostValue) -> None:
        """Takes note of what holds on every path."""
        self._learn(condition, True)

    def rank(self, tensor: host.Node) -> int | None:
        """The number of a tensor's dimensions, if the decisions tell it."""
        for condition, value in self._known.items():
            match condition:
                case host.Apply("==", (host.Rank(found), host.Constant(rank, type="int"))) if value and found == tensor:
                    return int(rank)
        return None

    def refuse(self, code: str, what: str, hint: str) -> PorterError:
        """An error at the line of the script that runs."""
        return PorterError(code, what, self.place(), hint)

    def place(self) -> Place:
        """The innermost line of the script that runs."""
        frame = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename == self.file:
                return Place(self.file, frame.f_lineno)
            frame = frame.f_back  # type: ignore[assignment]
        return Place(self.file)

    def print(self, node: host.HostValue | host.HostSizes) -> str:
        """A mark that stands for a value in a text."""
        self.printed.append(node)
        return f"{_MARK}{len(self.printed) - 1}{_MARK}"

    def read_message(self, text: str) -> Message:
        """A text with the values that its marks stand for."""
        pieces = text.split(_MARK)
        return tuple(self.printed[int(p)] if at % 2 else p for at, p in enumerate(pieces) if p)

    def _learn(self, condition: host.HostValue, value: bool) -> None:
        self._known[condition] = value
        self._known[negate(condition)] = not value
        match condition if value else negate(condition):
            case host.Apply((">" | ">="), (left, host.Constant(bound, type="int"))) as held:
                if bound > 0 or (bound == 0 and held.function == ">"):
                    self._known[host.Apply("==", (left, host.Constant(0)))] = False
                    self._known[host.Apply(">", (left, host.Constant(0)))] = True
                    self._known[host.Apply("<=", (left, host.Constant(0)))] = False
            case host.Apply("!=", (left, host.Constant(0, type="int"))) if is_never_negative(left):
                self._known[host.Apply(">", (left, host.Constant(0)))] = True
            case host.SameSizes(host.Sizes(tensor, 0, None), other) | host.SameSizes(
                other, host.Sizes(tensor, 0, None)
            ):
                length = self.length(other)
                if length is not None:
                    self._known[apply("==", host.Rank(tensor), host.Constant(length))] = True

    def length(self, sizes: host.Node) -> int | None:
        """How many sizes there are, if that is known."""
        if isinstance(sizes, host.Listed):
            return len(sizes.sizes)
        if not isinstance(sizes, host.Sizes):
            return None
        if sizes.start < 0 and sizes.stop is None:
            return -sizes.start
        rank = self.rank(sizes.tensor)
        return None if rank is None else len(range(*slice(sizes.start, sizes.stop).indices(rank)))

    def find(self, condition: host.HostValue) -> bool | None:
        """Whether a condition holds, if the decisions tell it."""
        if isinstance(condition, host.Constant):
            return bool(condition.value)
        if condition in self._known:
            return self._known[condition]
        match condition:
            case host.Apply(function, (host.Rank(tensor), host.Constant() as bound)):
                rank = self.rank(tensor)
                if rank is not None:
                    return bool(apply(function, host.Constant(rank), bound).value)  # type: ignore[union-attr]
            case host.Apply("<", (left, host.Constant(bound, type="int"))) if is_never_negative(left) and bound <= 0:
                return False
            case host.Apply(">=", (left, host.Constant(bound, type="int"))) if is_never_negative(left) and bound <= 0:
                return True
        return None


_path: ContextVar[Path] = ContextVar("path")


def current() -> Path:
    """The path that the script takes now."""
    return _path.get()


def following(path: Path) -> AbstractContextManager[None]:
    """Makes values of a block decide on `path`."""
    return setting(_path, path)


class Number:
    """A number that is not known. A decision on it splits the path."""

    def __init__(self, expression: host.HostValue) -> None:
        self.expression = expression

    def __bool__(self) -> bool:
        expression = self.expression
        return current().decide(expression if type_of(expression) == "bool" else apply("!=", expression, ZERO))

    def __index__(self) -> int:
        raise current().refuse(
            "PTR243", "the script needs the value of a size here, which only a call has",
            "Compute with sizes by + - * / // %, min, max and comparisons.",
        )  # fmt: skip

    __int__ = __float__ = __index__

    def __hash__(self) -> int:
        what = "the script looks up a size in a table of its own: the operator has none, as if it were not in it"
        current().notes.append((current().place(), what))
        return id(self)

    def __repr__(self) -> str:
        return current().print(self.expression)

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __eq__(self, other: object) -> Any:
        return _compare("==", self, other) if _is_number(other) else NotImplemented

    def __ne__(self, other: object) -> Any:
        return _compare("!=", self, other) if _is_number(other) else NotImplemented

    def __lt__(self, other: object) -> Any:
        return _compare("<", self, other)

    def __le__(self, other: object) -> Any:
        return _compare("<=", self, other)

    def __gt__(self, other: object) -> Any:
        return _compare(">", self, other)

    def __ge__(self, other: object) -> Any:
        return _compare(">=", self, other)

    def __neg__(self) -> Any:
        return wrap(apply("neg", self.expression))

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return wrap(apply("abs", self.expression))


def _compare(function: str, left: object, right: object) -> Any:
    return compute(function, left, right)


def _is_number(value: object) -> bool:
    return isinstance(value, (Number, bool, int, float))


def compute(function: str, *arguments: object) -> Any:
    """A function of numbers, some of which are not known."""
    expressions = [express(each) for each in arguments]
    if function in ("//", "%", "/") and current().decide(apply("==", expressions[1], host.Constant(0))):
        raise ZeroDivisionError("division by zero")
    return wrap(apply(function, *expressions))


def express(value: object) -> host.HostValue:
    """The expression of a number. Raises PTR243 for anything else."""
    if isinstance(value, Number):
        known = current().find(value.expression) if type_of(value.expression) == "bool" else None
        return value.expression if known is None else host.Constant(known)
    if isinstance(value, (bool, int, float)):
        return host.Constant(value)
    raise current().refuse(
        "PTR243", f"the script computes with a {type(value).__name__} here", "Compute with numbers and sizes."
    )


def wrap(expression: host.HostValue) -> Any:
    """What a script gets for an expression: a plain number if it is known."""
    return expression.value if isinstance(expression, host.Constant) else Number(expression)


def _add_operators() -> None:
    names = {
        "add": "+", "sub": "-", "mul": "*", "floordiv": "//", "mod": "%", "truediv": "/", "pow": "pow",
        "and": "and", "or": "or",
    }  # fmt: skip
    for name, function in names.items():
        setattr(Number, f"__{name}__", lambda a, b, f=function: compute(f, a, b))
        setattr(Number, f"__r{name}__", lambda a, b, f=function: compute(f, b, a))


_add_operators()


def _source(tensor: host.HostTensor) -> host.HostTensor:
    """The tensor whose sizes a tensor has: a dense copy has those of what it is a copy of."""
    return _source(tensor.tensor) if isinstance(tensor, host.Method) and tensor.name == "contiguous" else tensor


class Shape:
    """The sizes of a tensor, whose number may be unknown."""

    def __init__(self, sizes: host.Sizes) -> None:
        self.sizes = sizes

    def __getitem__(self, at: Any) -> Any:
        tensor, rank = self.sizes.tensor, current().rank(self.sizes.tensor)
        start, stop = self.sizes.start, self.sizes.stop
        if isinstance(at, slice):
            if (start, stop) != (0, None) or at.step is not None or isinstance(at.start, Number):
                return tuple(self)[at]
            return Shape(host.Sizes(tensor, at.start or 0, at.stop))
        if (start, stop) != (0, None):
            return tuple(self)[at]
        if rank is not None and not -rank <= at < rank:
            raise IndexError("tuple at out of range")
        return Number(host.Size(tensor, host.Constant(index(at))))

    def __iter__(self) -> Iterator[Any]:
        length, rank = len(self), current().rank(self.sizes.tensor)
        tensor, start = self.sizes.tensor, self.sizes.start
        if start < 0 and self.sizes.stop is None and rank is None:
            return iter([Number(host.Size(tensor, host.Constant(start + i))) for i in range(length)])
        assert rank is not None
        return iter([Number(host.Size(tensor, host.Constant(i))) for i in range(rank)[slice(start, self.sizes.stop)]])

    def __len__(self) -> int:
        length = current().length(self.sizes)
        if length is None:
            raise current().refuse(
                "PTR243", "the script needs to know here how many dimensions a tensor has, which it has not checked",
                "Check `x.dim()` before, or take single sizes such as `x.shape[-1]`.",
            )  # fmt: skip
        return length

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, (Shape, tuple, list)):
            return NotImplemented
        ours, theirs = self.sizes, express_sizes(other)
        return True if ours == theirs else Number(host.SameSizes(ours, theirs))

    def __ne__(self, other: object) -> Any:
        found = self.__eq__(other)
        return not found if isinstance(found, bool) else wrap(apply("not", express(found)))

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return current().print(self.sizes)

    def __format__(self, spec: str) -> str:
        return repr(self)

    def numel(self) -> Any:
        if (self.sizes.start, self.sizes.stop) == (0, None):
            return Number(host.SizeProduct(self.sizes.tensor))
        total: Any = 1
        for size in self:
            total = total * size
        return total

    def __add__(self, other: object) -> Any:
        return tuple(self) + tuple(other)  # type: ignore[arg-type]

    def __radd__(self, other: object) -> Any:
        return tuple(other) + tuple(self)  # type: ignore[arg-type]


def express_sizes(value: object) -> host.HostSizes:
    """The expression of sizes."""
    if isinstance(value, Shape):
        return value.sizes
    if isinstance(value, (tuple, list)):
        return host.Listed(tuple(express(each) for each in value))
    return host.Listed((express(value),))


class SymbolicTensor:
    """A tensor of which only the element type is known."""

    requires_grad = False
    is_floating_point = property(lambda self: lambda: self.dtype.is_floating_point)

    def __init__(self, expression: host.HostTensor, dtype: torch.dtype) -> None:
        self.expression, self.dtype = expression, dtype

    def _compute(self, *_: object) -> Any:
        raise _refuse("arithmetic of tensors")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __getitem__ = __neg__ = _compute

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise _refuse(f"torch's `{getattr(func, '__name__', func)}`")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise _refuse(f"a tensor's `{name}`")

    @property
    def shape(self) -> Shape:
        return Shape(host.Sizes(_source(self.expression)))

    @property
    def device(self) -> torch.device:
        return torch.device("mps")

    @property
    def ndim(self) -> Any:
        return self.dim()

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def stride(self, dim: int) -> Any:
        return Number(host.Property(self.expression, "stride", host.Constant(index(dim))))

    def dim(self) -> Any:
        rank = current().rank(_source(self.expression))
        return Number(host.Rank(_source(self.expression))) if rank is None else rank

    def numel(self) -> Any:
        return Number(host.SizeProduct(_source(self.expression)))

    def element_size(self) -> int:
        return self.dtype.itemsize

    def storage_offset(self) -> Any:
        return Number(host.Property(self.expression, "storage_offset"))

    def is_contiguous(self) -> Any:
        return Number(host.Property(self.expression, "is_contiguous"))

    def contiguous(self) -> SymbolicTensor:
        return self._made("contiguous")

    def detach(self) -> SymbolicTensor:
        return self

    def flatten(self) -> SymbolicTensor:
        return self.reshape(-1)

    def reshape(self, *shape: Any) -> SymbolicTensor:
        return self._made("reshape", _one_shape(shape))

    def view(self, *shape: Any) -> SymbolicTensor:
        if isinstance(shape[0], torch.dtype):
            return SymbolicTensor(
                host.Method(self.expression, "view", (host.CppName(f"k{describe(shape[0]).aten}"),)), shape[0]
            )
        return self._made("view", _one_shape(shape))

    def _made(self, method: str, *arguments: host.HostSizes) -> SymbolicTensor:
        made = SymbolicTensor(host.Method(self.expression, method, arguments), self.dtype)
        rank = current().length(arguments[0]) if arguments else None
        if rank is not None:
            current().know(host.Apply("==", (host.Rank(made.expression), host.Constant(rank))))
        return made


def _one_shape(shape: tuple[Any, ...]) -> host.HostSizes:
    return express_sizes(shape[0] if len(shape) == 1 and not isinstance(shape[0], (int, Number)) else shape)


def _refuse(what: str) -> Exception:
    return current().refuse(
        "PTR244", f"the script uses {what} beside its kernel, which host code is not written for",
        "Compute it in the kernel, or pass it as an argument of the stage.",
    )  # fmt: skip
