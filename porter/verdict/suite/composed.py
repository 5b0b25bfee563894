"""What ATen computes of an operator on the CPU by calling other operators, such as `fill_` for a constant result.

A row that MPS shares with the CPU does the same on the device: there is no call of a kernel to demand.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch
from torch.autograd.profiler import profile
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.suite.context import aten_names, base_name
from porter.verdict.suite.leaves import compute, list_tensors


def computes_all(op: OpInfo, samples: Sequence[SampleInput], ran: Collection[str], slopes: bool = False) -> bool:
    """Whether ATen on the CPU calls all operators that `ran` on the device, and none is `op`.

    It does so for every sample; with `slopes`, also to compute gradients.
    """
    names = {base_name(name) for name in ran}
    return names.isdisjoint(aten_names(op)) and all(names <= _called(op, sample, slopes) for sample in samples)


def run_sample(op: OpInfo, sample: SampleInput, slopes: bool) -> None:
    """Computes a sample; with `slopes`, its gradients too."""
    with torch.set_grad_enabled(slopes):
        result = compute(op, sample)
        found = [t for t in list_tensors(result) if t.requires_grad]
        torch.autograd.backward(found, [torch.ones_like(t) for t in found])


def _called(op: OpInfo, sample: SampleInput, slopes: bool) -> set[str]:
    with profile() as seen:
        run_sample(op, sample, slopes)
    return {base_name(event.name) for event in seen.function_events}
