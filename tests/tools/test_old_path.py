"""The embedded fork's MPSGraph implementations run, and agree with the CPU."""

from __future__ import annotations

import json
from pathlib import Path

from porter.core.checkout import EMBEDDED_FORK
from tests.conftest import Run

OPERATORS = ("erf", "remainder", "logit", "ceil")


def test_old_implementations_agree_with_the_cpu(tmp_path: Path, python: Run) -> None:
    """A macro-made operator, a helper with a string branch, one with a scalar and one that needs a stub."""
    saved = tmp_path / "lines.json"
    done = python("tools/old_path.py", str(EMBEDDED_FORK), *OPERATORS, "--save", str(saved))
    assert done.returncode == 0, done.stderr
    every = [json.loads(text) for text in saved.read_text().splitlines()]
    lines = {line["op"]: line for line in every if line["kind"] == "float32"}
    assert set(lines) == set(OPERATORS)
    # The newest OpInfos clamp logit to bounds in the wrong order: the graph answers the upper one, ATen the lower.
    inverted = {"logit": 1}
    for name, line in lines.items():
        assert line["graphs"] > 0 and line["counts"]["agree"] > 0 and name in line["reached"]
        assert line["counts"].get("differ", 0) <= inverted.get(name, 0) and "refused" not in line["counts"]
        assert name not in {fallback.split(".")[0] for fallback in line["fallbacks"]}
    told = [line.split("\t") for line in done.stdout.splitlines()]
    assert {line[0] for line in told if line[1:2] == ["float32"]} >= set(OPERATORS)  # and what they call
    assert "through 4 OpInfos" in done.stdout.splitlines()[-4]
