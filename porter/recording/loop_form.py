"""The loop form of one recorded call, as text: what its graphs would be as fused kernels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from porter.core.errors import PorterError
from porter.loops.coalesce import coalesce
from porter.loops.expressions import Buffer
from porter.loops.fusion import fuse
from porter.loops.printing import name_buffers, nest_lines
from porter.mpsgraph.recording import LoopForm
from porter.recording.concrete import read_concrete_graph
from porter.verdict.errors import raising_porter_errors

if TYPE_CHECKING:
    import torch

    from aten_overlay.apple.mpsgraph.recorder import GraphRun


def describe_loop_form(runs: Sequence[GraphRun], inputs: Mapping[str, torch.Tensor]) -> LoopForm:
    """The kernels of a call's graphs, with its tensors by name; a graph without loop form is a line with its code."""
    shapes = ", ".join(f"{name} {tuple(tensor.shape)}" for name, tensor in inputs.items())
    names = {tensor.data_ptr(): name for name, tensor in inputs.items()}
    return LoopForm(shapes, tuple(line for run in runs for line in _describe_graph(run, names)))


def _describe_graph(run: GraphRun, names: Mapping[int, str]) -> Iterator[str]:
    try:
        with raising_porter_errors():
            nests = [coalesce(nest) for nest in fuse(read_concrete_graph(run))]
    except PorterError as error:
        yield f"{error.code} {error.what}"
        return
    feeds = enumerate(run.feeds.items())
    given = {Buffer(ref.node, ref.output): names.get(address, f"in{i}") for i, (ref, address) in feeds}
    buffers = name_buffers(nests, given)
    for nest in nests:
        yield from nest_lines(nest, buffers)
