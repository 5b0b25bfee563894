"""The kernels of every port of the embedded fork compile, those of each pair of types; verdicts are for the sweep."""

from __future__ import annotations

from pathlib import Path

import pytest

from aten_overlay.metal.build import Options, compile_kernels, host_names
from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.layout import KERNELS
from porter.plan.planner import plan_operator
from porter.verdict.build.tree import materialise
from porter.workflows.status import portable

FORK = Checkout(EMBEDDED_FORK, "embedded")


@pytest.mark.parametrize("op", portable(FORK))
def test_the_kernels_of_a_port_compile(op: str, tmp_path: Path) -> None:
    plan = plan_operator(FORK, op)
    tree = materialise(FORK.root, plan.changes.apply(), tmp_path)
    options = Options(include=(tree.root,), optimization="-O0")
    made = {name for functor in plan.functors for name in _compiled(tree.root, functor.name, options)}
    assert made and plan.registrations
    for pair in plan.registrations:
        assert any(f"_{pair.output}_{pair.input}" in name for name in made), pair


def _compiled(root: Path, functor: str, options: Options) -> list[str]:
    found: list[str] = []
    for path in sorted((root / KERNELS).glob("*.metal")):
        names = [name for name in host_names(path, options) if name.startswith(f"{functor}_")]
        if names:
            compile_kernels(path, names, options)
        found += names
    return found
