"""Programs that are forked from one process see nothing of each other, and end as programs of their own do."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from tests import device_pool
from tests.conftest import Run
from tests.device_pool import DevicePool


def test_a_program_leaves_nothing_to_the_next(on_device: Run) -> None:
    assert on_device("import torch; torch.kept = 1; print(torch.ones(2, device='mps').sum().item())").stdout == "2.0\n"
    assert on_device("import torch; print(hasattr(torch, 'kept'))").stdout == "False\n"


@pytest.mark.parametrize(
    ("code", "returned", "printed"),
    [
        ("import sys; sys.exit('what is wrong')", 1, "what is wrong\n"),
        ("import os; os.kill(os.getpid(), 9)", -9, ""),
        ("raise ValueError('uncaught')", 1, "ValueError: uncaught\n"),
        ("import atexit, sys; atexit.register(print, 'at the end', file=sys.stderr)", 0, "at the end\n"),
    ],
)
def test_an_end_is_that_of_a_program_of_its_own(on_device: Run, code: str, returned: int, printed: str) -> None:
    done = on_device(code)
    assert done.returncode == returned and done.stderr.endswith(printed) and done.stdout == ""


def test_another_environment_takes_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []

    def run(command: list[str], **_options: Any) -> subprocess.CompletedProcess[str]:
        started.append(command)
        return subprocess.CompletedProcess(command, 0, "", "")

    def ask(_request: object) -> int:
        raise LookupError("asked the process that holds the device")

    pool = DevicePool()
    monkeypatch.setattr(pool, "_start", object)
    monkeypatch.setattr(pool, "_ask", ask)
    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(device_pool, "read_environment", iter([{"A": "1"}, {"A": "2"}]).__next__)
    with pytest.raises(LookupError):
        pool.run("-c", "pass")
    assert not started
    pool.run("-c", "pass")
    assert started == [[sys.executable, "-m", "aten_overlay", "-c", "pass"]]
