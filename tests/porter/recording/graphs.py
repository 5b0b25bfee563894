"""Builds graphs as host code would, message by message, without host code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from aten_overlay.apple.mpsgraph.objects import Ref
from aten_overlay.apple.mpsgraph.recorder import PLACEHOLDER, GraphRun, Node, RecordedGraph, _infer


class GraphBuilder:
    """A graph under construction; `feeds` are the values of its placeholders."""

    def __init__(self) -> None:
        self.graph = RecordedGraph()
        self.feeds: dict[Ref, torch.Tensor] = {}

    def feed(self, value: torch.Tensor) -> Ref:
        """A placeholder with this value."""
        shape: list[Any] = list(value.shape)
        self.graph.nodes.append(Node(f"{PLACEHOLDER}:dataType", (shape,), (value.to("meta"),), (value.dtype,)))
        ref = Ref(len(self.graph.nodes) - 1, 0)
        self.feeds[ref] = value
        return ref

    def send(self, selector: str, *arguments: Any) -> Ref:
        """The first result of an operation."""
        made = _infer(selector, arguments, lambda ref: self._known(ref))
        results = tuple(made) if isinstance(made, (tuple, list)) else (made,)
        self.graph.nodes.append(Node(selector, arguments, results, tuple(each.dtype for each in results)))
        return Ref(len(self.graph.nodes) - 1, 0)

    def _known(self, ref: Ref) -> torch.Tensor:
        found = self.graph.nodes[ref.node].results[ref.output]
        assert found is not None
        return found

    def shape(self, ref: Ref) -> tuple[int, ...]:
        return tuple(self._known(ref).shape)

    def run(self, *results: Ref) -> GraphRun:
        addresses: Mapping[Ref, int] = {ref: 1 + i for i, ref in enumerate((*self.feeds, *results))}
        feeds = {ref: addresses[ref] for ref in self.feeds}
        return GraphRun(self.graph, feeds, dict(self.feeds), {ref: addresses[ref] for ref in results})
