"""Runs a call and records its graphs; checks that it computes its results only with these.

Host code may clear or copy memory with other kernels. The recorded graphs are still complete if no graph reads, and no
result holds, what another kernel wrote; comparing elements shows that.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch.utils import _pytree as pytree

from porter.core.errors import PorterError, explained
from porter.recording.calls import OpCall, counting_graphs
from porter.verdict.backends import host

if TYPE_CHECKING:
    from aten_overlay.apple.mpsgraph.recorder import GraphRun


def check_flow(
    runs: Sequence[GraphRun],
    given: Mapping[int, torch.Tensor],
    results: Sequence[torch.Tensor],
    made: Collection[int] = (),
) -> None:
    """Follows every value from the tensor arguments (`given`, copied before the call, by address) through the graphs to
    the results. Raises PTR135 if another kernel wrote one in between; what it `made` of numbers alone is no such value.
    """
    from aten_overlay.apple.mpsgraph.recorder import evaluate

    if not runs:
        raise _unsupported("other kernels but no graph")
    held = dict(given)
    written: set[int] = set()
    for run in runs:
        for ref, address in run.feeds.items():
            if address in held and not same_elements(run.values[ref], held[address]):
                raise _unsupported("other kernels besides its graphs: one changes the input of a graph")
            if (
                address not in held
                and address not in made
                and not any(same_elements(run.values[ref], each) for each in given.values())
            ):
                raise _unsupported("other kernels besides its graphs: one computes the input of a graph")
        held |= {address: evaluate(run.graph, ref, dict(run.values)) for ref, address in run.results.items()}
        written |= set(run.results.values())
    for result in results:
        if result.data_ptr() in written and not same_elements(result.cpu(), held[result.data_ptr()]):
            raise _unsupported("other kernels besides its graphs: one changes a result")


def same_elements(value: torch.Tensor, tensor: torch.Tensor) -> bool:
    """Whether a value holds the elements of a tensor in order, perhaps converted, but with no part of a complex number
    lost. False if both are empty.
    """
    loses_a_part = tensor.is_complex() and not value.is_complex() and value.dtype is not torch.bool
    if value.numel() != tensor.numel() or value.numel() == 0 or loses_a_part:
        return False
    given = tensor.detach().cpu().to(value.dtype).flatten()
    mine = value.flatten()
    return bool(((mine == given) | ((mine != mine) & (given != given))).all())


def _unsupported(what: str) -> PorterError:
    return explained("PTR135", f"the call runs {what}")


@dataclass(frozen=True)
class RecordedRun:
    """A call and the graphs it ran. Keeps its tensors alive, so that addresses stay unique.

    `given` are copies of its tensors from before the call. One that is seen with arguments expanded has the shapes that
    these have of their own, and the run as it was `before`.
    """

    call: OpCall
    given: Mapping[str, torch.Tensor]
    runs: tuple[GraphRun, ...]
    results: tuple[torch.Tensor, ...]
    others: bool
    places: tuple[int, ...] = ()  # of the results among all that the operator has; empty if all are there
    own_shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    before: RecordedRun | None = None

    @property
    def made(self) -> dict[int, torch.Tensor]:
        """The results by their places, without those that the call does not ask for."""
        return dict(zip(self.places or range(len(self.results)), self.results, strict=True))

    @property
    def tells_results(self) -> bool:
        """Whether the call has a result, or writes to an argument: its graph may run for a mask that asks for none."""
        return bool(self.results) or self.call.overload._schema.is_mutable


def run_call(call: OpCall) -> RecordedRun:
    """Runs one call and records its graphs. Raises what the call raises."""
    runs: list[GraphRun] = []
    given = {name: tensor.detach().cpu() for name, tensor in call.tensors().items()}
    before = _other_kernels()
    with counting_graphs(runs):
        result = call.run()
    leaves = [v for v in pytree.tree_leaves(result) if v is None or isinstance(v, torch.Tensor)]
    made = {i: each for i, each in enumerate(leaves) if each is not None}
    return RecordedRun(call, given, tuple(runs), tuple(made.values()), _other_kernels() > before, tuple(made))


def _other_kernels() -> int:
    return sum(host.kernel_calls().values()) + sum(host.fallbacks().values())
