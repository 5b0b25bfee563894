"""`TestDirectMPS.test_direct_<op>_mps_<dtype>`: elementwise operators that gradients alone call, with edge values.

The forward operators' tests give their arguments the values of OpInfo samples, and random gradients.
"""

from __future__ import annotations

import math
from contextlib import suppress
from functools import partial
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

from porter.verdict.suite import compare, samples
from porter.verdict.suite.arguments import keep_survived
from porter.verdict.suite.bounds import TIMES
from porter.verdict.suite.consistency import Refused, instantiate
from porter.verdict.suite.context import get_context
from porter.verdict.suite.direct import list_direct_opinfos, list_limits, vary_call
from porter.verdict.suite.elementwise import Elementwise
from porter.verdict.suite.opinfos import make_comparable, opinfos, parametrize_over

OPINFOS = opinfos(get_context())
DIRECT = [make_comparable(op) for op in list_direct_opinfos(OPINFOS.context)]


def is_tested(op: OpInfo, dtype: torch.dtype) -> bool:
    """Whether a kernel is planned for the type; where none is known of any, those of gradients are tested.

    Differences of unsigned numbers wrap, on the CPU in other places than in a kernel that computes in a wider type.
    """
    if dtype is torch.uint8:
        return False
    return OPINFOS.plans(dtype) if OPINFOS.context.dtypes else dtype in OPINFOS.grad_dtypes


def _call_both(op: OpInfo, *args: Any, **kwargs: Any) -> None:
    """Calls an operator with dense and with strided tensors, which other loops of the CPU compute."""
    op(*args, **kwargs)
    op(*pytree.tree_map(samples.make_strided, args), **pytree.tree_map(samples.make_strided, kwargs))


class TestDirect(Elementwise):
    """Each element matches the CPU or double precision, with other numbers, both values of flags, and every string.

    Values are those of edges and of the call's own numbers, where it may branch.
    """

    opinfos = OPINFOS

    @parametrize_over(DIRECT, applies=is_tested, allowed_dtypes=OPINFOS.dtypes)
    def test_direct(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        with self.count_calls(dtype, op):
            for sample in OPINFOS.samples(op, dtype):
                edged = ((label, self.put_edges(call, dtype)) for label, call in vary_call(op, sample))
                # A whole number divided by a number of 0, such as smooth_l1_loss_backward's beta, ends a process.
                whole = not dtype.is_floating_point and not dtype.is_complex
                if dtype in compare.HALVES:
                    with self.asking(), suppress(Refused):
                        self.rounded_once(op, sample, device)
                for label, edge in keep_survived(partial(_call_both, op), edged) if whole else edged:
                    with self.asking(), suppress(Refused):
                        self.edges(op, dtype, edge, device, f"{label}: ", TIMES)

    def put_edges(self, call: SampleInput, dtype: torch.dtype) -> SampleInput:
        """A call with the values of edges, of its own numbers and of the kernel's.

        Complex ones are so small that a product of four is finite: which part of a product that overflows is NaN, the
        order of its factors decides, as in the CPU's silu_backward. Of whole ones a difference and a product fit.
        """
        context = OPINFOS.context
        literals = dict.fromkeys((*list_limits(call), *context.literals))
        most = context.most
        if dtype.is_complex:
            most = min(most, torch.finfo(dtype).max ** 0.25)
        elif not dtype.is_floating_point:
            most = min(most, math.isqrt(torch.iinfo(dtype).max) // 2)
        return samples.with_edge_values(call, dtype, literals, most)


instantiate(TestDirect, globals())
