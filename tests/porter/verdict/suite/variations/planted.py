"""What tells a right operator from one with a planted fault, on the samples of a variation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from porter.verdict.suite.arguments import Varied
from porter.verdict.suite.context import Context
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.samples import copy_sample

Operator = Callable[..., Any]


def list_different(wrong: Operator, right: Operator, varied: Iterable[Varied]) -> list[str]:
    """The labels of the samples for which a wrong operator gives other elements, or an error."""
    return [label for label, sample in varied if not _is_same(wrong, right, sample)]


def _is_same(wrong: Operator, right: Operator, sample: Any) -> bool:
    given, sample = copy_sample(sample), copy_sample(sample)
    want = right(given.input, *given.args, **given.kwargs)
    try:
        got = wrong(sample.input, *sample.args, **sample.kwargs)
    except KeyError:  # no kernel of this name
        return False
    pairs = zip(pytree.tree_leaves(got), pytree.tree_leaves(want), strict=True)
    return all(one.shape == other.shape and torch.allclose(one, other, equal_nan=True) for one, other in pairs)


def find_op(base: str) -> tuple[OpInfos, Any]:
    """The OpInfos of a run with one operator under test, and its own one."""
    opinfos = OpInfos(Context(bases=(base,)))
    return opinfos, opinfos.select("mps_ops_modifier")[0]
