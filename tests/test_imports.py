"""The import contracts of pyproject.toml: lines planted in a copy of the packages break the ones they should."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LINT = "from importlinter.cli import lint_imports_command as lint; lint(['--no-cache'])"
LAZY = "def _later() -> None:\n    {}\n"
TYPES_ONLY = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    {}\n"

ROOMS = "A room imports only rooms that stand below it"
OVERLAY_ROOMS = "A room of aten_overlay imports only rooms that stand below it"
APART = "aten_overlay is a package of its own"
PLANNING = "Planning knows neither torch nor the overlay"
CIRCLES = "No circles"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The Python of the two packages, and the project's own contracts."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for source in (*(ROOT / "porter").rglob("*.py"), *(ROOT / "aten_overlay").rglob("*.py")):
        target = tmp_path / source.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    return tmp_path


def broken(root: Path) -> set[str]:
    """The contracts that the packages under `root` break."""
    done = subprocess.run([sys.executable, "-c", LINT], cwd=root, capture_output=True, text=True, check=False)
    verdicts = dict(re.findall(r"^(.+?) (KEPT|BROKEN)$", done.stdout, re.MULTILINE))
    assert len(verdicts) == 5, done.stdout + done.stderr
    found = {name for name, verdict in verdicts.items() if verdict == "BROKEN"}
    assert done.returncode == (1 if found else 0)
    return found


def test_the_packages_keep_every_contract(copy: Path) -> None:
    assert broken(copy) == set()


@pytest.mark.parametrize("form", ["{}\n", LAZY, TYPES_ONLY], ids=["plain", "lazy", "types only"])
@pytest.mark.parametrize(
    ("file", "line", "contracts"),
    [
        ("porter/core/edits.py", "from porter.report import status", {ROOMS}),
        ("porter/verdict/result.py", "from porter.recording import cases", {ROOMS}),
        ("porter/aten/declarations.py", "from porter.aten import native_functions", {CIRCLES}),
        ("aten_overlay/metal/passes/ir.py", "from aten_overlay.metal.passes import lockstep", {CIRCLES}),
        ("aten_overlay/apple/compiler.py", "from aten_overlay.device import state", {OVERLAY_ROOMS}),
        ("aten_overlay/device/state.py", "import porter", {APART}),
        ("porter/mpsgraph/graph.py", "import torch", {PLANNING}),
        ("porter/plan/plan.py", "from aten_overlay import toolchain", {PLANNING}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_planted_import_breaks_its_contract(copy: Path, file: str, line: str, contracts: set[str], form: str) -> None:
    with (copy / file).open("a") as source:
        source.write("\n" + form.format(line))
    assert contracts <= broken(copy)


@pytest.mark.parametrize(("package", "contract"), [("porter", ROOMS), ("aten_overlay", OVERLAY_ROOMS)])
def test_a_room_without_a_place_in_the_order_breaks_it(copy: Path, package: str, contract: str) -> None:
    (copy / package / "attic").mkdir()
    (copy / package / "attic" / "__init__.py").touch()
    assert broken(copy) == {contract}
