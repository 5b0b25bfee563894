"""`tools/natives.py` runs native operators as the fork has them."""

from __future__ import annotations

import re

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
