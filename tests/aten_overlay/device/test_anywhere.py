"""A program with the device may be started anywhere, even in the root of a fork with a `torch` and `torchgen`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from porter.core.checkout import EMBEDDED_FORK
from tests.conftest import ROOT
from tests.hostile import fill_with_traps, list_sprung

PROGRAM = """
import helper, sys, torch
print(helper.NAME, torch.ones(1, device="mps").exp().item() > 2.7)
print(sys.path[0])
"""


def test_only_the_program_s_own_folder_is_searched(tmp_path: Path) -> None:
    hostile = fill_with_traps(tmp_path / "fork")
    for package in ("porter", "aten_overlay"):  # Python looks for the package itself, there first
        (hostile / package / "__init__.py").unlink()
        (hostile / package).rmdir()
    (tmp_path / "programs").mkdir()
    (tmp_path / "programs" / "helper.py").write_text("NAME = 'beside'\n")
    (tmp_path / "programs" / "program.py").write_text(PROGRAM)
    settings = {"PYTHONPATH": str(ROOT), "PORTER_CHECKOUT": str(EMBEDDED_FORK), "PORTER_OPERATORS": "exp"}
    # The fork's library of shaders is a static object: what it releases when the process ends has to be there still.
    settings["MALLOC_PERTURB_"] = "85"  # what is freed becomes other bytes
    done = subprocess.run(
        [sys.executable, "-m", "aten_overlay", "../programs/program.py"], cwd=hostile, env={**os.environ, **settings},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["beside True", str((tmp_path / "programs").resolve())]
    assert list_sprung(hostile) == []
