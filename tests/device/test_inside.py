"""The suites of inside/, each under the plugin: ordinary tests that use torch's mps device."""

from pathlib import Path

import pytest

INSIDE = Path(__file__).resolve().parent / "inside"


@pytest.mark.parametrize("suite", sorted(p.name for p in INSIDE.glob("check_*.py")))
def test_suite(suite, python):
    done = python("-m", "pytest", "-p", "aten_overlay.plugin", "-p", "no:cacheprovider", str(INSIDE / suite))
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout and "skipped" not in done.stdout
