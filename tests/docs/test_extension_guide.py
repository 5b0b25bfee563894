"""The commands of docs/kernels/extensions.md, run in order, each in the folder where those before it left it."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.porter.kernels.extension.test_build import QUICK

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "kernels" / "extensions.md").read_text()
BLOCKS = re.findall(r"^```console\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^\$ ([^\n]*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


def run(command: str, folder: Path) -> str:
    words = shlex.split(command)
    program = {"porter": ["-m", "porter"], "python": []}[words[0]]
    environment = {**os.environ, **QUICK, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, *program, *words[1:]], cwd=folder, capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


def pattern(shown: str) -> str:
    """What a page shows, where `...` stands for anything."""
    return ".*".join(map(re.escape, shown.replace("...\n", "...").split("...")))


def test_there_are_commands() -> None:
    assert [len(COMMAND.findall(block)) for block in BLOCKS] == [5, 2]


@pytest.mark.parametrize("block", BLOCKS, ids=["new", "from"])
def test_the_commands_print_what_the_page_shows(block: str, tmp_path: Path) -> None:
    folder = tmp_path
    for command, shown in COMMAND.findall(block):
        if command.startswith("cd "):
            folder = folder / command.removeprefix("cd ")
        else:
            told = run(command, folder)
            assert re.fullmatch(pattern(shown), told, re.DOTALL), f"{command}\n{told}"
