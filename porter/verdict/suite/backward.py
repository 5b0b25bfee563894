"""A backward pass node by node, which also runs in a forked process.

Autograd's engine raises an error in a process that was forked from one where it has run with threads for a device.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import torch

_LEAF = "AccumulateGrad"
_DIFFERENT = 61  # gradients of results, a number that is no size
_Node = Any  # of an autograd graph
_Given = dict[_Node, dict[int, torch.Tensor]]  # the gradients that nodes get, by their places


def run_backward(results: Sequence[torch.Tensor]) -> None:
    """Computes the gradients of results by all that they were computed from, and keeps none of them.

    Raises what a node does. The gradients of results differ from one element to the next: of equal ones it would make
    no difference which is read.
    """
    given: _Given = defaultdict(dict)
    roots = [each for each in results if each.grad_fn is not None]
    for each in roots:
        _add(given, each.grad_fn, each.output_nr, _make_seed(each))
    for node in _sort(each.grad_fn for each in roots):
        if node not in given or node.name().endswith(_LEAF):
            continue
        held = given.pop(node)
        made = (node if callable(node) else node.apply)(*map(held.get, range(len(node._input_metadata))))
        slopes = made if isinstance(made, tuple) else (made,)
        for (other, place), slope in zip(node.next_functions, slopes, strict=False):
            if other is not None and slope is not None:
                _add(given, other, place, slope)


def _make_seed(result: torch.Tensor) -> torch.Tensor:
    """Eighths, the first one eight: numbers that 16 bits hold."""
    if result.layout is not torch.strided:
        return torch.ones_like(result)
    eighths = torch.arange(result.numel()) % _DIFFERENT + 8
    return (eighths / 8).view(result.shape).to(result)


def _add(given: _Given, node: _Node, place: int, slope: torch.Tensor) -> None:
    """Adds a gradient to what a node gets, in the type and of the shape that it expects."""
    expected = node._input_metadata[place]
    slope = slope.to(expected.dtype)
    slope = slope if slope.shape == expected.shape else slope.sum_to_size(expected.shape)
    held = given[node].get(place)
    given[node][place] = slope if held is None else held + slope


def _sort(roots: Iterator[_Node]) -> list[_Node]:
    """All nodes of a graph, each before those that it gives gradients to."""
    found: list[_Node] = []
    seen: set[_Node] = set()
    left = [(root, False) for root in roots]
    while left:
        node, is_done = left.pop()
        if is_done:
            found.append(node)
        elif node is not None and node not in seen:
            seen.add(node)
            left += [(node, True), *((other, False) for other, _ in node.next_functions)]
    return found[::-1]
