"""The embedded fork's MPSGraph implementations run, and agree with the CPU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from porter.checkout import EMBEDDED_FORK

ROOT = Path(__file__).resolve().parents[2]


def test_old_implementations_agree_with_the_cpu() -> None:
    """A macro-made operator, a helper with a string branch, one with a scalar and one that needs a stub."""
    command = [sys.executable, "benchmarks/old_path.py", str(EMBEDDED_FORK), "erf", "remainder", "logit", "ceil"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    exact = {name: (int(agree), int(differ)) for name, kind, agree, differ, _, _ in lines if kind == "float32"}
    assert set(exact) == {"erf", "remainder", "logit", "ceil"}
    # The newest OpInfos clamp logit to bounds in the wrong order: the graph answers the upper one, ATen the lower.
    inverted = {"logit": 1}
    assert all(agree > 0 and differ <= inverted.get(name, 0) for name, (agree, differ) in exact.items())
    assert not any("CPU fallbacks" in line[-1] for line in lines)
