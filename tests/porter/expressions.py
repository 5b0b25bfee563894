"""Random expressions of two elements: how C++ and MPSGraph write them, and what they are in float64.

Each operation is well conditioned, and its value comes with a bound of what rounding may change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from porter.core.dtypes import BOOL, FLOAT
from porter.mpsgraph.graph import Call, Constant, Expr, Input

Array = NDArray[Any]
LEAVES = ("a", "b", 0.5, 2, -0.75, 1)
WHOLE_LEAVES = ("a", "b", 2, 3, 1)
# An operation: C++ of its operands, and the operation of MPSGraph.
CPP = {
    "add": ("({} + {})", "addition"),
    "subtract": ("({} - {})", "subtraction"),
    "multiply": ("({} * {})", "multiplication"),
    "negate": ("(-{})", "negative"),
    "absolute": ("std::abs({})", "absolute"),
    "larger": ("std::max({}, {})", "maximumWithNaNPropagation"),
    "smaller": ("std::min({}, {})", "minimumWithNaNPropagation"),
    "choose": ("({} > {} ? {} : {})", "select"),
    "sine": ("std::sin({})", "sin"),
    "cosine": ("std::cos({})", "cos"),
    "tangent": ("std::tanh({})", "tanh"),
    "inverse": ("std::atan({})", "atan"),
    "floor": ("std::floor({})", "floor"),
}
ARITY = {"choose": 4, **dict.fromkeys(("add", "subtract", "multiply", "larger", "smaller"), 2)}
WHOLE = ("add", "subtract", "multiply", "negate", "larger", "smaller", "choose")


@dataclass(frozen=True)
class Node:
    """An operation, or a leaf: the name of an element, or a number."""

    op: str
    args: tuple[Node, ...] = ()
    leaf: str | float = ""


@dataclass(frozen=True)
class Steps:
    """A body of several statements: a local, a branch that adds to it, and a result."""

    first: Node
    test: tuple[Node, Node]
    more: Node
    last: Node


def trees(ops: tuple[str, ...] = tuple(CPP), leaves: tuple[str | float, ...] = LEAVES) -> st.SearchStrategy[Node]:
    """Draws expressions with at least one operation, and at most four on a path."""
    drawn: st.SearchStrategy[Node] = st.sampled_from([Node("leaf", (), leaf) for leaf in leaves])
    for _ in range(3):
        below = drawn
        drawn = st.one_of(
            *[st.builds(Node, st.just(op), st.tuples(*[below] * ARITY.get(op, 1))) for op in ops], *[below]
        )
    return drawn.filter(lambda node: bool(node.args))


def steps(ops: tuple[str, ...] = tuple(CPP), leaves: tuple[str | float, ...] = LEAVES) -> st.SearchStrategy[Steps]:
    small = trees(ops, leaves)
    return st.builds(Steps, small, st.tuples(small, small), small, small)


def write(node: Node, element: str) -> str:
    """Returns the C++ of an expression over elements of a type."""
    if node.op == "leaf":
        return node.leaf if isinstance(node.leaf, str) else f"{element}({node.leaf})"
    return CPP[node.op][0].format(*(write(arg, element) for arg in node.args))


def write_steps(body: Steps, element: str) -> str:
    """Returns the C++ statements of a body."""
    left, right = (write(node, element) for node in body.test)
    return (
        f"{element} part = {write(body.first, element)};\n"
        f"if ({left} > {right}) {{ part += {write(body.more, element)}; }}\n"
        f"return part - {write(body.last, element)};"
    )


def build_graph(node: Node) -> Expr:
    """Returns the expression as a graph of MPSGraph's operations."""
    if node.op == "leaf":
        return Input(node.leaf, FLOAT) if isinstance(node.leaf, str) else Constant(node.leaf, FLOAT)
    args = tuple(map(build_graph, node.args))
    if node.op == "choose":
        args = (Call("greaterThan", args[:2], BOOL), *args[2:])
    return Call(CPP[node.op][1], args, FLOAT)


def evaluate(node: Node, elements: dict[str, Array], eps: float) -> tuple[Array, Array]:
    """Returns the value in the elements' own type, and how far one that rounds by `eps` may be from it."""
    if node.op == "leaf":
        known = elements[node.leaf] if isinstance(node.leaf, str) else np.full_like(elements["a"], node.leaf)
        return known, np.zeros(known.shape)
    found = [evaluate(arg, elements, eps) for arg in node.args]
    values, errors = [value for value, _ in found], [error for _, error in found]
    if node.op == "choose":
        return _choose(values[0] > values[1], abs(values[0] - values[1]) <= errors[0] + errors[1], found[2], found[3])
    if node.op == "multiply":
        moved = abs(values[0]) * errors[1] + abs(values[1]) * errors[0] + errors[0] * errors[1]
    elif node.op == "floor":
        moved = np.where(errors[0] > 0, errors[0] + 1, 0)
    else:
        moved = np.sum(errors, axis=0)
    value = _COMPUTE[node.op](*values)
    rounds = node.op not in ("negate", "absolute", "larger", "smaller", "floor")
    return value, moved + (eps * (abs(value) + moved + 2.0**-14) if rounds else 0)


def evaluate_steps(body: Steps, elements: dict[str, Array], eps: float) -> tuple[Array, Array]:
    part, left, right, more, last = (
        evaluate(node, elements, eps) for node in (body.first, *body.test, body.more, body.last)
    )
    added = part[0] + more[0], part[1] + more[1] + eps * abs(part[0] + more[0])
    part = _choose(left[0] > right[0], abs(left[0] - right[0]) <= left[1] + right[1], added, part)
    value = part[0] - last[0]
    return value, part[1] + last[1] + eps * (abs(value) + part[1] + last[1])


def _choose(test: Array, unsure: Array, then: tuple[Array, Array], other: tuple[Array, Array]) -> tuple[Array, Array]:
    unsure = unsure & ((then[1] > 0) | (other[1] > 0) | (then[0] != other[0]))
    error = np.where(test, then[1], other[1]) + np.where(unsure, abs(then[0] - other[0]) + then[1] + other[1], 0)
    return np.where(test, then[0], other[0]), error


_COMPUTE: dict[str, Any] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "negate": np.negative,
    "absolute": np.abs,
    "larger": np.maximum,
    "smaller": np.minimum,
    "sine": np.sin,
    "cosine": np.cos,
    "tangent": np.tanh,
    "inverse": np.arctan,
    "floor": np.floor,
}
