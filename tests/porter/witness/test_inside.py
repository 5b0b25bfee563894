"""The suites of inside/, each under the plugin."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

SUITES = sorted((Path(__file__).parent / "inside").glob("check_*.py"))


@pytest.mark.parametrize("suite", SUITES, ids=lambda path: path.name)
def test_suite(suite: Path, passes_inside: Callable[[Path], None]) -> None:
    passes_inside(suite)
