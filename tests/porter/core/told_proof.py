"""A program for tests: leaves a verdict as one that proves does."""

from __future__ import annotations

import sys
from pathlib import Path

from porter.verdict.new_operator.process import answer
from porter.verdict.result import DEFAULT, HOST, Verdict


def main() -> None:
    """Leaves a verdict in the folder of the first argument."""
    answer(Path(sys.argv[1]), Verdict("told", HOST, DEFAULT, 1, 0, 0, 0, None, 0.0))
