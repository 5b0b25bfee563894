"""The page of `porter run`: its commands print what it shows, of the program that it shows."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

from tests.docs.snippets import read_page
from tests.docs.test_kernel_guides import pattern

PAGE = Path(__file__).resolve().parents[2] / "docs" / "run.md"
ENDS = re.compile(r"^They end with (.*):", re.MULTILINE)


def test_the_commands_of_the_page_print_what_it_shows(tmp_path: Path) -> None:
    program, console, *_ = read_page(PAGE)
    (tmp_path / program.marks[0]).write_text(program.text)
    codes = []
    for command, shown in re.findall(r"^\$ porter ([^\n]*)\n((?:(?!\$ ).*\n)*)", console.text, re.MULTILINE):
        done = subprocess.run(
            [sys.executable, "-m", "porter", *shlex.split(command)],
            cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        codes.append(done.returncode)
        printed = done.stdout.replace(f"{tmp_path}/", "")
        assert re.fullmatch(pattern(shown), printed), f"porter {command} prints\n{printed}"
    ends = ENDS.search(PAGE.read_text())
    assert ends and codes == [int(number) for number in re.findall(r"\d+", ends[1])]
