"""A graph as one call ran it: every shape and element type is known, and so are the elements of constants."""

from __future__ import annotations

import math
from dataclasses import dataclass

from porter.core.dtypes import DType
from porter.loops.host_values import Number


@dataclass(frozen=True)
class Tensor:
    """A tensor of a graph: one output of a node."""

    node: int
    output: int = 0


@dataclass(frozen=True)
class Descriptor:
    """An operation descriptor: the properties that are set."""

    name: str
    properties: tuple[tuple[str, Argument], ...]

    def get(self, name: str) -> Argument:
        """The value of a property; None if it is not set."""
        return dict(self.properties).get(name)


Argument = Tensor | Descriptor | Number | str | None | tuple["Argument", ...]


@dataclass(frozen=True)
class Result:
    """A result of a node; `elements` are those of a constant, in row-major order."""

    shape: tuple[int, ...]
    dtype: DType
    elements: tuple[Number, ...] | None = None

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class Node:
    """An operation: its selector without `name:`, its arguments, and its results.

    A node that the call's results do not depend on has no results.
    """

    selector: str
    arguments: tuple[Argument, ...]
    results: tuple[Result, ...]


@dataclass(frozen=True)
class ConcreteGraph:
    """The nodes of a graph, the placeholders that were fed, and the tensors that were asked for."""

    nodes: tuple[Node, ...]
    feeds: frozenset[Tensor]
    results: tuple[Tensor, ...]

    def result(self, tensor: Tensor) -> Result:
        return self.nodes[tensor.node].results[tensor.output]


def list_tensors(argument: Argument | tuple[Argument, ...]) -> list[Tensor]:
    """The tensors in an argument, or in a tuple of them."""
    if isinstance(argument, Tensor):
        return [argument]
    return [each for part in argument for each in list_tensors(part)] if isinstance(argument, tuple) else []
