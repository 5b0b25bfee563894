"""`porter kernel check --arithmetic`: what Apple's compiler may make of a script's floating-point operations."""

from __future__ import annotations

from pathlib import Path

import pytest

from porter.core.progress import Step
from porter.workflows.kernel import check_script

# A mask as products: fast math may factor it, and the one is lost beside 1e10.
SCRIPT = """
import torch
from porter.kernels.script import Kind, Layout, Script, Stage

library = torch.mps.compile_shader('''
kernel void masked(device const float* a, device const float* m, device float* out, uint i [[thread_position_in_grid]]) {
  out[i] = BODY;
}
''')

def run(a, m):
    out = torch.empty_like(a)
    library.masked(a, m, out)
    return out

SCRIPT = Script(
    "masks", Kind.ELEMENTWISE, (Stage("masked", run, lambda a, m: torch.where(m == 1, a, -1e10), ("a", "m")),),
    lambda case: {"a": case.uniform(*case.size, low=1, high=2), "m": case.uniform(*case.size, low=1, high=1)},
    ((64,),), (), dtypes=(torch.float32,), layouts=(Layout.DENSE,),
)
"""


def ignore(_step: Step) -> None:
    pass


@pytest.mark.parametrize(
    ("body", "failing"),
    [
        ("a[i] * m[i] + -1e10f * (1.0f - m[i])", ["64-float32-dense, fast arithmetic"]),
        ("m[i] == 1 ? a[i] : -1e10f", []),
    ],
)
def test_fast_math_is_among_all_arithmetics(body: str, failing: list[str], tmp_path: Path) -> None:
    path = tmp_path / "masks.py"
    path.write_text(SCRIPT.replace("BODY", body))
    results = list(check_script(path, ignore, arithmetic="all"))
    assert [result.case for result in results if not result.ok] == failing
