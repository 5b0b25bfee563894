"""The scripts of the reusable workflow, with stand-ins of what they run: one comment, and the review's exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from workflow import list_values, run_steps, write_gh

PORTER = """#!/bin/bash
echo "porter $*" >> calls
case "$*" in
  *markdown*) [ -f silent ] && exit 2; printf '<!-- porter review -->\\n%s\\n' "$(cat said)"; exit "$(cat code)" ;;
  *github*) echo "::error file=a.mm::wrong"; exit 1 ;;
esac
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "bin").mkdir()
    write_gh(tmp_path / "bin")
    for name, text in (("porter", PORTER), ("python", '#!/bin/bash\necho "python $*" >> calls\n')):
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    return tmp_path


def review(workspace: Path, said: str, code: int, verify: bool = True) -> int:
    """Runs the workflow on a change of which porter says something. Returns the exit code of the last step that ran."""
    (workspace / "said").write_text(said)
    (workspace / "code").write_text(str(code))
    values = list_values("porter.whl", "https://example.com/torch", verify, workspace, "abc123")
    return run_steps(workspace, f"{workspace}/bin:/usr/bin:/bin", values)[-1].code


def test_a_change_is_commented_once_and_later_in_the_same_place(workspace: Path) -> None:
    assert review(workspace, "two errors", 1) == 1
    assert review(workspace, "all mended", 0) == 0
    (comment,) = (workspace / "comments").iterdir()
    assert comment.read_text() == "<!-- porter review -->\nall mended\n"
    assert (workspace / "gh.log").read_text().split() == ["posted", "patched"]
    assert (workspace / "summary.md").read_text().count("<!-- porter review -->") == 2


def test_each_step_runs_what_its_inputs_say(workspace: Path) -> None:
    assert review(workspace, "fine", 0, verify=False) == 0
    assert (workspace / "calls").read_text().splitlines() == [
        "python -m pip install -q torch==2.13.0 --index-url https://example.com/torch",
        "python -m pip install -q torch-porter[verify] @ porter.whl",
        "porter review abc123 --checkout fork --no-verify --format github",
        "porter review abc123 --checkout fork --no-verify --format markdown",
    ]
    assert review(workspace, "fine", 0) == 0
    assert (workspace / "calls").read_text().splitlines()[-2:] == [
        "porter setup --checkout fork", "porter review abc123 --checkout fork --format markdown",
    ]  # fmt: skip


def test_a_review_that_says_nothing_is_no_comment_and_fails(workspace: Path) -> None:
    (workspace / "silent").touch()
    assert review(workspace, "", 2) == 2
    assert list((workspace / "comments").iterdir()) == []
