"""From a concrete graph to loop form: every operation is a function from indices to the expression of one element.

Views are maps of indices, elementwise operations inline, reductions bind loops; composites are written in these, in
`meanings/`. What is stored on the way is decided afterwards, in `fusion.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from itertools import count
from math import prod

from porter.core.dtypes import DType, Kind
from porter.core.errors import PorterError, explained
from porter.loops.expressions import (
    Buffer,
    Expr,
    Loop,
    Op,
    Reduction,
    ReductionKind,
    call,
    cast,
    index_value,
    intern,
    load,
    number,
    select,
    substitute,
    walk,
)
from porter.loops.graph import Argument, ConcreteGraph, Node, Result, Tensor
from porter.loops.host_values import Number
from porter.loops.indices import ZERO, flatten, loop, rebuild_index
from porter.mpsgraph.operations import by_selector

Indices = tuple[Expr, ...]
_MEANINGS = ("arithmetic", "indexing", "reductions", "resizing", "views", "windows")
_TABLE: dict[str, Meaning] = {}
_SCALES = ("division", "multiplication")
_BY_PARTS = ("addition", "subtraction", "negative", "identity", "realPart", "imaginaryPart")
_MIN_PROGRESSION = 2  # elements


def means(*selectors: str) -> Callable[[Meaning], Meaning]:
    """Registers a function as the meaning of these selectors."""

    def register(function: Meaning) -> Meaning:
        for selector in selectors:
            assert selector not in _TABLE, selector
            _TABLE[selector] = function
        return function

    return register


class Lowering:
    """Lowers the tensors of one graph. Those of `stored` are read from memory; at first these are the feeds."""

    def __init__(self, graph: ConcreteGraph) -> None:
        self.graph = graph
        self.stored: set[Tensor] = set(graph.feeds)
        self._known: dict[tuple[Tensor, Indices], Expr] = {}
        self._turns = count()

    def store(self, tensor: Tensor) -> None:
        """From now on, reads this tensor from memory."""
        self.stored.add(tensor)
        self._known.clear()

    def define(self, tensor: Tensor, indices: Indices) -> Expr:
        """The element of a tensor at its indices, computed even if it is stored. Raises PTR345."""
        node = self.graph.nodes[tensor.node]
        element = Element(self, node, tensor, self.graph.result(tensor), indices)
        selector, result = node.selector, element.result
        constant = _constant(node, result)
        if constant is not None:
            return constant
        progression = _find_progression(result) if not _rounds(element.node, result) else None
        if progression is not None:
            return progression.at(element)
        if element.tensor in self.graph.feeds or (result.elements is not None and not _rounds(element.node, result)):
            self.stored.add(element.tensor)
            return self.read(element.tensor, element.indices)
        meaning = _meanings().get(selector)
        if meaning is not None:
            return cast(meaning(element, *element.node.arguments), result.dtype)
        operation = by_selector().get(selector)
        if operation is None:
            raise refuse(f"the operation `{selector}`")
        tensors = [element.read(each) for each in element.node.arguments if isinstance(each, Tensor)]
        return element.call(operation.op, *tensors)

    def read(self, tensor: Tensor, indices: Indices) -> Expr:
        """The element of a tensor at the indices of a tensor that it broadcasts to. Raises PTR345."""
        result = self.graph.result(tensor)
        indices = indices[len(indices) - len(result.shape) :]
        indices = tuple(ZERO if size == 1 else i for i, size in zip(indices, result.shape, strict=True))
        if tensor in self.stored:
            return load(Buffer(tensor.node, tensor.output), flatten(indices, result.shape), result.dtype)
        key = (tensor, indices)
        if key not in self._known:
            self._known[key] = self.define(tensor, indices)
        return self._known[key]

    def reduce(
        self, kind: ReductionKind, sizes: Sequence[int], body: Callable[[Indices], Sequence[Expr]], dtype: DType
    ) -> Expr:
        """A reduction over loops of these sizes; `body` gives its operands from the loops' indices."""
        if 0 in sizes:
            raise refuse("a reduction of no elements")
        turn = next(self._turns)
        fresh = tuple(loop(f"fresh{turn}.{i}", size) for i, size in enumerate(sizes))
        operands = body(fresh)
        height = 1 + max(each.height for each in operands)
        running = [each for each in fresh if each is not ZERO]
        if not running:
            return cast(_reduce_once(kind, operands), dtype)
        named = [Loop(f"r{height}.{i}", as_loop(each).size) for i, each in enumerate(running)]
        changes = {as_loop(each): loop(made.name, made.size) for each, made in zip(running, named, strict=True)}
        renamed = [substitute(each, changes, rebuild) for each in operands]
        reduction = Reduction(kind, tuple(named))
        return intern(Op.REDUCE, renamed, dtype.opmath, reduction)


@dataclass(frozen=True)
class Element:
    """The element that a meaning computes: the one of `tensor` at `indices`."""

    lowering: Lowering
    node: Node
    tensor: Tensor
    result: Result
    indices: Indices

    @property
    def shape(self) -> tuple[int, ...]:
        return self.result.shape

    @property
    def dtype(self) -> DType:
        return self.result.dtype

    def of(self, argument: Argument) -> Result:
        """The shape, type and constant elements of an operand."""
        return self.lowering.graph.result(as_tensor(argument))

    def read(self, argument: Argument, indices: Indices | None = None) -> Expr:
        """An operand's element; without indices, that at this element's own place."""
        return self.lowering.read(as_tensor(argument), self.indices if indices is None else indices)

    def numbers(self, argument: Argument) -> list[int]:
        """A list of integers, or a constant tensor's. Raises PTR345 for a tensor that is not constant."""
        if isinstance(argument, Tensor):
            elements = self.of(argument).elements
            if elements is None:
                raise refuse(f"`{self.node.selector}` of numbers that are computed")
            return [int(each) for each in elements]
        return [int(each) for each in argument] if isinstance(argument, tuple) else [as_int(argument)]  # type: ignore[arg-type]

    def call(self, operation: str, *args: Expr) -> Expr:
        """An operation whose result has this element's type."""
        return call(operation, args, self.dtype)

    def number(self, value: bool | int | float) -> Expr:
        return number(value, self.dtype)

    def reduce(
        self, kind: ReductionKind, sizes: Sequence[int], body: Callable[[Indices], Expr], dtype: DType | None = None
    ) -> Expr:
        """A reduction of one operand over loops of these sizes; in this element's type, if no other is given."""
        return self.lowering.reduce(kind, sizes, lambda turn: (body(turn),), dtype or self.dtype)


Meaning = Callable[..., Expr]


def as_tensor(argument: Argument) -> Tensor:
    assert isinstance(argument, Tensor), argument
    return argument


def as_int(argument: Argument) -> int:
    assert isinstance(argument, (bool, int, float)), argument
    return int(argument)


def refuse(what: str) -> PorterError:
    """The error for what has no loop form."""
    return explained("PTR345", f"{what} has no loop form")


def refuse_complex(value: Expr) -> None:
    """Raises PTR345 for complex numbers, unless a kernel computes each part of them as a real number or takes parts."""
    for inner in walk(value):
        is_complex = any(one.dtype is not None and one.dtype.kind is Kind.COMPLEX for one in (inner, *inner.args))
        if is_complex and not _is_by_parts(inner):
            raise refuse("complex elements")


def _is_by_parts(value: Expr) -> bool:
    match value.op:
        case Op.CALL if value.attribute in _SCALES:
            return value.args[1].op is Op.NUMBER and value.args[0].op is not Op.NUMBER
        case Op.CALL:
            return value.attribute in _BY_PARTS and all(each.op is not Op.NUMBER for each in value.args)
        case Op.REDUCE:
            return value.reduction.kind is ReductionKind.SUM
    return value.op in (Op.LOAD, Op.NUMBER, Op.SELECT)


def rebuild(expr: Expr, args: Sequence[Expr]) -> Expr:
    """An expression from new operands, simplified again."""
    if expr.op is Op.SELECT:
        return select(*args)
    if expr.op is Op.CAST and expr.dtype is not None:
        return cast(args[0], expr.dtype)
    if expr.op in (Op.LOAD, Op.CALL, Op.REDUCE, Op.INDEX_VALUE) or expr.op is Op.NUMBER:
        return intern(expr.op, args, expr.dtype, expr.attribute)
    return rebuild_index(expr, args)


def _reduce_once(kind: ReductionKind, operands: Sequence[Expr]) -> Expr:
    """A reduction of one element."""
    if kind is ReductionKind.LAST:
        return select(*operands)
    return operands[1] if kind in (ReductionKind.ARG_MAX, ReductionKind.ARG_MIN) else operands[0]


def _constant(node: Node, result: Result) -> Expr | None:
    """The value that all elements of a constant have, as it was before a reduced type rounded it."""
    if node.selector.startswith("constantWithScalar") and isinstance(node.arguments[0], (bool, int, float)):
        return number(node.arguments[0], result.dtype)
    if not result.elements or _rounds(node, result):
        return None
    is_one = all(repr(each) == repr(result.elements[0]) for each in result.elements)
    return number(result.elements[0], result.dtype) if is_one else None


def needs_no_table(node: Node, result: Result) -> bool:
    """Whether the elements of a constant are one number, or rise evenly."""
    return _constant(node, result) is not None or _find_progression(result) is not None


@dataclass(frozen=True)
class _Progression:
    """Elements that rise evenly along one axis, and are the same along others."""

    axis: int
    first: Number
    step: Number

    def at(self, element: Element) -> Expr:
        made = index_value(element.indices[self.axis], element.dtype)
        if self.step != 1:
            made = element.call("multiplication", made, element.number(self.step))
        return element.call("addition", made, element.number(self.first)) if self.first else made


def _find_progression(result: Result) -> _Progression | None:
    """How the elements of a constant rise; None if they do not, or are none."""
    elements = result.elements
    if not elements or isinstance(elements[0], bool):
        return None
    for axis, size in enumerate(result.shape):
        stride = prod(result.shape[axis + 1 :])
        if size < _MIN_PROGRESSION:
            continue
        first, step = elements[0], elements[stride] - elements[0]
        if all(each == first + step * (i // stride % size) for i, each in enumerate(elements)):
            return _Progression(axis, first, step)
    return None


def _rounds(node: Node, result: Result) -> bool:
    """Whether a constant is computed from others, and rounded."""
    return result.dtype.is_reduced and any(isinstance(each, Tensor) for each in node.arguments)


def as_loop(expr: Expr) -> Loop:
    assert isinstance(expr.attribute, Loop), expr
    return expr.attribute


@lru_cache(maxsize=1)
def _meanings() -> dict[str, Meaning]:
    for name in _MEANINGS:
        import_module(f"porter.loops.meanings.{name}")
    return _TABLE
