"""Faults in what operators compute, written with torch: which samples of a variation show them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import islice
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

from porter.verdict.suite.arguments import Varied
from porter.verdict.suite.context import Context
from porter.verdict.suite.gradients import run_forward
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.samples import copy_sample
from porter.verdict.suite.variations.variation import Variation

Call = Callable[..., Any]


def find_op(name: str, variant: str = "") -> OpInfo:
    """An OpInfo as if MPS took all types that the CPU takes."""
    op = copy.deepcopy(next(each for each in op_db if (each.name, each.variant_test_name) == (name, variant)))
    op.dtypesIf["mps"] = op.dtypesIf.get("cpu", op.dtypes)
    return op


def list_samples(variation: Variation, op: OpInfo, dtype: torch.dtype = torch.float32) -> list[Varied]:
    return list(variation.list_samples(OpInfos(Context(bases=(op.name,))), op, dtype))


def find_shown(variation: Variation, op: OpInfo, wrong: Call, dtype: torch.dtype = torch.float32) -> list[str]:
    """The labels of the samples for which a wrong function gives other results than the CPU."""
    return [label for label, sample in list_samples(variation, op, dtype) if shows(op, wrong, sample)]


def is_shown(variation: Variation, op: OpInfo, wrong: Call, dtype: torch.dtype = torch.float32) -> bool:
    """Whether a sample of a variation shows a fault."""
    varied = variation.list_samples(OpInfos(Context(bases=(op.name,))), op, dtype)
    return any(shows(op, wrong, sample) for _, sample in varied)


def shows(op: OpInfo, wrong: Call, sample: SampleInput) -> bool:
    got, want = (
        pytree.tree_leaves(call(each.input, *each.args, **each.kwargs))
        for call, each in ((wrong, copy_sample(sample)), (op, copy_sample(sample)))
    )
    try:
        torch.testing.assert_close(got, want, equal_nan=True)
    except AssertionError:
        return True
    return False


def shows_slopes(op: OpInfo, wrong: Call, sample: SampleInput) -> bool:
    """Whether a wrong function has other gradients than the CPU, for gradients of its results of one."""
    slopes_of_both = []
    functions: tuple[Any, ...] = (wrong, op)
    for call in functions:
        outputs, inputs = run_forward(call, copy_sample(sample))
        slopes = torch.autograd.grad(outputs, inputs, list(map(torch.ones_like, outputs)), allow_unused=True)
        slopes_of_both.append([slope for slope in slopes if slope is not None])
    try:
        torch.testing.assert_close(*slopes_of_both, equal_nan=True)
    except AssertionError:
        return True
    return False


def is_shown_as_given(op: OpInfo, wrong: Call, dtype: torch.dtype = torch.float32) -> bool:
    """Whether one of the OpInfo's own samples, of the first dozens, shows a fault."""
    return any(shows(op, wrong, sample) for sample in islice(op.sample_inputs("cpu", dtype), 40))
