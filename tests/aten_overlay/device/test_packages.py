"""What packages of AOTInductor call does what the operators do; docs/kernels/inductor.md loads and runs one."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import Run

PROGRAM = Path(__file__).parent / "programs" / "packaged_calls.py"


def test_a_function_of_c_calls_its_operator(on_device: Run) -> None:
    done = on_device(PROGRAM.read_text())
    assert (done.returncode, done.stdout) == (0, "refused\nTrue []\n"), done.stderr[-3000:]
