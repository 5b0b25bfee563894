"""Every tool and every benchmark explains itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.device_pool import DevicePool

SCRIPTS = sorted(path.relative_to(ROOT) for folder in ("tools", "benchmarks") for path in (ROOT / folder).glob("*.py"))


def test_there_are_scripts_in_both_folders() -> None:
    assert {path.parts[0] for path in SCRIPTS} == {"tools", "benchmarks"}


@pytest.mark.parametrize("script", SCRIPTS, ids=str)
def test_help_is_printed_without_running_anything(script: Path, device_pool: DevicePool) -> None:
    done = device_pool.run(str(script), "--help")  # a third of them import torch
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: {script.name}")
    first = (ROOT / script).read_text().removeprefix('"""').partition(".")[0]
    assert " ".join(first.split()) in " ".join(done.stdout.split())
