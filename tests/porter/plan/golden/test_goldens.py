"""Whole diffs, one of each family, each read as a reviewer of PyTorch would and kept.

Those of ports that come from runs of old code, and keep the row's function, are beside their tests in `plan/native`.

After an intended change, EXPECTTEST_ACCEPT=1 writes them anew: read every line of what changed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from porter.core.change_set import ChangeSet
from porter.core.checkout import Checkout
from porter.metal.functor import Source
from porter.plan.addition import plan_addition
from porter.plan.planner import plan_operator
from tests.porter.plan.golden import forks
from tests.porter.plan.recorded import left_out

Make = Callable[[Path], Checkout]


def port(op: str, source: Source = Source.ANY) -> Callable[[Checkout], ChangeSet]:
    def plan(fork: Checkout) -> ChangeSet:
        found = plan_operator(fork, op, source=source)
        assert found.complete
        return found.changes

    return plan


def add(op: str) -> Callable[[Checkout], ChangeSet]:
    return lambda fork: plan_addition(fork, op).changes


CASES: dict[str, tuple[Make, Callable[[Checkout], ChangeSet]]] = {
    "unary_float": (forks.copy_embedded, port("erf")),
    "unary_complex": (forks.copy_embedded, port("rsqrt")),
    "binary_promoting": (forks.copy_embedded, port("atan2")),
    "comparison": (forks.copy_embedded, port("eq")),
    "one_scalar": (forks.copy_embedded, port("lerp")),
    "several_scalars": (forks.with_struct, port("softplus")),
    "ternary": (forks.with_ternary, port("lerp")),
    "backward": (forks.with_backward, port("bend_backward")),
    "split_by_device": (forks.with_split_row, port("tilt")),
    "from_cuda": (forks.with_cuda_kernel, port("hypot", Source.CUDA)),
    "tensors_left_out": (left_out.copy_fork, left_out.port),
    "added": (forks.with_lacking_operator, add("heaviside")),
}


@pytest.mark.parametrize("name", CASES)
def test_a_diff_is_as_reviewed(name: str, tmp_path: Path) -> None:
    make, plan = CASES[name]
    diff = plan(make(tmp_path / "fork")).diff()
    kept = Path(__file__).with_name(f"{name}.diff")
    if os.environ.get("EXPECTTEST_ACCEPT"):
        kept.write_text(diff)
    assert diff == kept.read_text()
    assert all(len(line) <= 121 for line in diff.splitlines() if line.startswith("+"))
