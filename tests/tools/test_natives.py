"""`tools/natives.py` runs native operators as the fork has them."""

from __future__ import annotations

import json
import re
from pathlib import Path

from porter.core.checkout import EMBEDDED_FORK
from tests.conftest import Run

MATCH = "test_output_match and float32"


def test_a_line_is_printed_for_each_operator(python: Run) -> None:
    command = ("-W", "ignore", "tools/natives.py", str(EMBEDDED_FORK), "copysign", "-k", MATCH)
    done = python(*command)
    assert done.returncode == 0, done.stderr
    op, passed, failed, skipped, calls, first = done.stdout.rstrip("\n").split("\t")
    assert (op, passed, failed, skipped, first) == ("copysign", "1", "0", "0", "")
    assert int(calls) > 0
    assert done.stderr.strip().splitlines()[-1].startswith("1 operators, 1 without a failure")


def test_what_was_watched_is_said(python: Run) -> None:
    done = python(
        "-W", "ignore", "tools/natives.py", str(EMBEDDED_FORK), "copysign", "-k", MATCH, "--sanitize", "bounds"
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 1, "no finding follows the operator"
    summary = done.stderr.strip().splitlines()[-1]
    assert re.search(r"[1-9]\d* of \d+ kernels ran, watched for bounds: findings in 0, none in [1-9]", summary)


def test_what_no_run_called_is_named(python: Run, tmp_path: Path) -> None:
    base = ("-W", "ignore", "tools/natives.py", str(EMBEDDED_FORK), "-k", MATCH)
    first = python(*base, "copysign", "--unreached", "--save", str(tmp_path / "first.json"))
    (line,) = json.loads((tmp_path / "first.json").read_text())
    missed = _read_unreached(first.stdout)
    assert line["kernels"] and missed and not missed & set(line["kernels"])
    again = python(*base, "exp", "--unreached", "--earlier", str(tmp_path / "first.json"))
    left = _read_unreached(again.stdout)
    assert left <= missed and not left & set(line["kernels"])


def _read_unreached(text: str) -> set[str]:
    rows = [line.split("\t") for line in text.splitlines() if line.startswith("not called\t")]
    assert all(int(count) == len(names.split(", ")) for _, _, count, names in rows)
    return {name for *_, names in rows for name in names.split(", ")}
