"""The page of witnesses: its commands print what it shows, and the workflow that they write is one of GitHub's."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import yaml

from tests.docs.snippets import read_page
from tests.docs.test_kernel_guides import pattern

PAGE = Path(__file__).resolve().parents[2] / "docs" / "mac.md"


def test_the_commands_of_the_page_print_what_it_shows(tmp_path: Path) -> None:
    console = next(snippet for snippet in read_page(PAGE) if snippet.language == "console")
    for command, shown in re.findall(r"^\$ porter ([^\n]*)\n((?:(?!\$ ).*\n)*)", console.text, re.MULTILINE):
        done = subprocess.run(
            [sys.executable, "-m", "porter", *shlex.split(command)],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert re.fullmatch(pattern(shown), re.sub(r"torch \S+\)", "torch 2.13.0+cpu)", done.stdout)), done.stdout
    assert re.search(r"\d+ ran, 0 not compiled, 0 refused, 0 failed", done.stdout)
    require_workflow(tmp_path / "witness")


def require_workflow(folder: Path) -> None:
    """The workflow runs the script of its folder, pins the torch that recorded, and uploads the log it names."""
    workflow = yaml.safe_load((folder / "witness.yml").read_text())
    (job,) = workflow["jobs"].values()
    assert workflow["permissions"] == {"contents": "read"} and "workflow_dispatch" in workflow[True]
    assert job["strategy"]["matrix"]["runner"] == ["macos-15", "macos-26"]
    assert job["env"]["FOLDER"] == folder.name
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert commands[1] == 'python "$FOLDER/witness.py" --log "$LOG"'
    assert re.fullmatch(r'python -m pip install -q "torch==[\d.]+" numpy', commands[0])
    assert job["steps"][-1]["if"] == "always()" and job["steps"][-1]["with"]["path"] == "${{ env.LOG }}"
