"""Numbers that host code makes of sizes and scalars, and feeds its graphs from memory that another kernel fills.

What such a kernel computes of elements is no number of the call: it differs where the tensors have other elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from porter.recording.calls import OpCall
    from porter.recording.record import RecordedRun

Run = Callable[["OpCall"], "RecordedRun"]


def find_made(ran: RecordedRun, run: Run) -> frozenset[int]:
    """The addresses that graphs are fed one number from, which is the same if the call runs with other elements."""
    try:
        other = run(with_other_elements(ran.call))
    except Exception:  # the fork's code may refuse the elements
        return frozenset()
    return frozenset(_list_same(ran, other)) if len(other.runs) == len(ran.runs) else frozenset()


def _list_same(ran: RecordedRun, other: RecordedRun) -> Iterator[int]:
    given = {tensor.data_ptr() for tensor in ran.call.tensors().values()}
    for one, again in zip(ran.runs, other.runs, strict=True):
        for ref, address in one.feeds.items():
            value, second = one.values[ref], again.values.get(ref)
            if address not in given and value.numel() == 1 and second is not None and value.equal(second):
                yield address


def with_other_elements(call: OpCall) -> OpCall:
    """The call with elements drawn from those of each tensor, floating-point ones smaller."""
    changed = call
    for name, tensor in call.tensors().items():
        if name in call.arguments:  # elements of lists stay
            changed = changed.with_argument(name, _draw(tensor))
    return changed


def _draw(tensor: torch.Tensor) -> torch.Tensor:
    known = tensor.detach().cpu()
    if not known.numel():
        return tensor
    generator = torch.Generator().manual_seed(0)
    drawn = known.flatten()[torch.randint(known.numel(), known.shape, generator=generator)]
    made = drawn * 0.75 if drawn.is_floating_point() else drawn
    return made.to(tensor.device)
