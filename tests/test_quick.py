"""`pytest -m quick` asks something of every room."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests import quick
from tests.conftest import ROOT, TESTS

FOLDERS = {path.parent.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py")}
# Folders in folders of a room: what the room above them has is asked.
INNER = {
    "porter/kernels/extension",
    "porter/mpsgraph/source_reader",
    "porter/plan/golden",
    "porter/plan/new_operator",
    "porter/plan/promotion",
    "porter/verdict/backends",
    "porter/verdict/own",
    "porter/verdict/suite/variations",
}


def test_every_room_has_quick_tests() -> None:
    assert FOLDERS - INNER - {"."} == set(quick.ROOMS)
    assert all(folder.rpartition("/")[0] in quick.ROOMS or folder.count("/") > 2 for folder in INNER)


@pytest.mark.parametrize("room", sorted(quick.ROOMS))
def test_every_name_of_a_room_is_that_of_a_test(room: str) -> None:
    for pattern in quick.ROOMS[room]:
        file, _, test = pattern.partition("::")
        files = sorted((TESTS / room).glob(file))
        assert files, pattern
        assert not test or any(f"def {test.rstrip('*')}" in path.read_text() for path in files), pattern


def test_files_without_a_quick_test_are_not_even_read() -> None:
    command = [sys.executable, "-m", "pytest", "-m", "quick", "--collect-only", "-p", "no:cacheprovider"]
    folders = ["tests/aten_overlay/device", "tests/porter/cpu", "tests/porter/server"]
    done = subprocess.run([*command, *folders], capture_output=True, text=True, check=False, cwd=ROOT)
    files = {line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line}
    assert files == {
        "tests/aten_overlay/device/test_start.py",
        "tests/porter/cpu/test_kernels.py",
        "tests/porter/server/test_processor.py",
    }


def test_a_test_is_chosen_by_its_file_or_by_its_name() -> None:
    assert quick.is_quick("porter/cpu/test_kernels.py", "test_any[1]")
    assert not quick.is_quick("porter/cpu/test_values.py", "test_any")
    assert quick.is_quick("aten_overlay/device/test_start.py", "test_other_systems_are_refused")
    assert not quick.is_quick("aten_overlay/device/test_start.py", "test_a_module_runs")
