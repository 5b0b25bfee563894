"""Checks that a call computes its results only with its graphs, even if other kernels ran too.

Host code may clear or copy memory with other kernels. The recorded graphs are still complete if no graph reads, and no
result holds, what another kernel wrote; comparing elements shows that.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from porter.core.errors import PorterError

if TYPE_CHECKING:
    import torch

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
    if value.numel() != tensor.numel() or value.numel() == 0 or _loses_a_part(value, tensor):
        return False
    given = tensor.detach().cpu().to(value.dtype).flatten()
    mine = value.flatten()
    return bool(((mine == given) | ((mine != mine) & (given != given))).all())


def _loses_a_part(value: torch.Tensor, tensor: torch.Tensor) -> bool:
    import torch

    return tensor.is_complex() and not value.is_complex() and value.dtype is not torch.bool


def _unsupported(what: str) -> PorterError:
    return PorterError("PTR135", f"the call runs {what}", hint="See docs/errors/PTR135.md.")
