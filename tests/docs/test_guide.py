"""README and CONTRIBUTING name the folders, commands, files and linters that there are."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from porter.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
GUIDE = (ROOT / "CONTRIBUTING.md").read_text()
PACKAGES = ("porter", "aten_overlay")
# A file, or a folder with a slash at its end; `*` and dots stand for any name.
NAMED = re.compile(r"`((?:[\w.*]+/)+[\w.*]*|[A-Z]+\.md)`")


def drawn() -> list[str]:
    """The folders of the picture in the README, in its order."""
    picture = re.search(r"<!-- folders -->\n```\n(.*?)```", README, re.DOTALL)
    assert picture
    paths, parent = [], ""
    for indent, name in re.findall(r"^( *)(\w+)/(?: |$)", picture[1], re.MULTILINE):
        parent = parent if indent else name
        paths.append(f"{parent}/{name}" if indent else name)
    return paths


def folders() -> set[str]:
    """The folders that the repository has at its root and in its packages, hidden ones left out."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    parts = [path.split("/") for path in listed if (ROOT / path).exists()]
    top = {each[0] for each in parts if len(each) > 1 and not each[0].startswith(".")}
    return top | {"/".join(each[:2]) for each in parts if each[0] in PACKAGES and len(each) > 2}


def test_the_picture_names_exactly_the_folders_that_exist() -> None:
    assert sorted(drawn()) == sorted(folders())


@pytest.mark.parametrize("package", PACKAGES)
def test_the_picture_has_the_rooms_in_the_order_of_the_contract(package: str) -> None:
    contract = re.search(rf'containers = \["{package}"\].*?layers = \[(.*?)\]', pyproject(), re.DOTALL)
    assert contract
    rooms = [path.removeprefix(f"{package}/") for path in drawn() if path.startswith(f"{package}/")]
    ordered = [name for name in re.findall(r"\w+", contract[1]) if name in rooms]
    assert ordered == [name for name in rooms if name in ordered]
    assert len(ordered) > 3


def pyproject() -> str:
    return (ROOT / "pyproject.toml").read_text()


def test_the_table_of_commands_has_every_command() -> None:
    assert set(re.findall(r"^\| `porter (\w+)", README, re.MULTILINE)) == set(app.commands)


@pytest.mark.parametrize("path", sorted(set(NAMED.findall(GUIDE))))
def test_a_file_that_the_guide_names_exists(path: str) -> None:
    assert list(ROOT.glob(path.replace("....", "*.").rstrip("/")))


def test_the_guide_lists_the_linters_that_ci_runs() -> None:
    listed = re.search(r"## Lint\n\n```sh\n(.*?)```", GUIDE, re.DOTALL)
    assert listed
    run = (ROOT / ".ci" / "run").read_text().splitlines()
    assert listed[1].splitlines() == [line for line in run if re.match(r"\.venv/bin/(ruff|mypy|lint-imports)", line)]
