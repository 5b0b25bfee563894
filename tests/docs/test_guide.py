"""The pages that a newcomer reads name the folders, commands, files and linters that there are."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

import commands
from porter.cli.app import app
from porter.cli.options import Group

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
GUIDE = (ROOT / "CONTRIBUTING.md").read_text()
ROOMS = (ROOT / "docs" / "rooms.md").read_text()
README_LINES, CELL_WORDS = 90, 12
PACKAGES = ("porter", "aten_overlay")
# A file, or a folder with a slash at its end; `*` and dots stand for any name.
NAMED = re.compile(r"`((?:[\w.*]+/)+[\w.*]*|[A-Z]+\.md)`")


def drawn() -> list[str]:
    """The folders of the picture in `docs/rooms.md`, in its order."""
    picture = re.search(r"<!-- folders -->\n```\n(.*?)```", ROOMS, re.DOTALL)
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


def list_commands() -> set[str]:
    """Every command, and those inside others: `migrate`, `kernel new`."""
    inside = {
        f"{name} {inner}"
        for name, command in app.commands.items()
        if isinstance(command, Group)
        for inner in command.commands
    }
    return inside | set(app.commands)


def test_the_page_of_commands_is_made_from_their_help() -> None:
    assert (ROOT / commands.PAGE).read_text() == commands.write_page(), "run python tools/commands.py"


def test_the_page_of_commands_has_every_command() -> None:
    assert set(re.findall(r"^### `porter (.+)`$", commands.write_page(), re.MULTILINE)) == list_commands()
    assert {name.removeprefix("porter ") for name in commands.FURTHER} <= list_commands()


def test_the_readme_is_short_and_names_commands_that_there_are() -> None:
    assert len(README.splitlines()) <= README_LINES
    block = re.search(r"## A day with porter\n\n```sh\n(.*?)```", README, re.DOTALL)
    assert block
    named = re.findall(r"^porter (\w+)", block[1], re.MULTILINE)
    assert len(named) == 5 and set(named) <= set(app.commands)


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/commands.md", "docs/rooms.md"])
def test_links_lead_somewhere(page: str) -> None:
    folder = (ROOT / page).parent
    links = re.findall(r"\]\((?!https?:)([^)#]*)", (ROOT / page).read_text())
    assert links and all((folder / link).exists() for link in links)


@pytest.mark.parametrize("page", sorted(path.name for path in (ROOT / "docs").glob("*.md")))
def test_every_page_is_linked_from_the_readme(page: str) -> None:
    reached = README + "".join(
        (ROOT / "docs" / name).read_text() for name in set(re.findall(r"docs/([\w-]+\.md)", README))
    )
    assert page in reached


@pytest.mark.parametrize("path", sorted(set(NAMED.findall(GUIDE))))
def test_a_file_that_the_guide_names_exists(path: str) -> None:
    assert list(ROOT.glob(path.replace("....", "*.").rstrip("/")))


ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in GUIDE.partition("| --- |")[2].splitlines()
    if line.startswith("| ")
]


def test_the_table_of_the_guide_has_a_row_for_an_extension_point() -> None:
    assert 12 <= len(ROWS) <= 24
    assert len({row[0] for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_row_of_the_guide_is_short_and_its_registry_exists(row: list[str]) -> None:
    assert all(len(cell.split()) <= CELL_WORDS for cell in row)
    assert len(row) == 3 and NAMED.search(row[1]) and re.search(r"`|mypy", row[2])
    for symbol, path in re.findall(r"`(\w+)` in `([\w/.]+)`", row[1]):
        assert symbol in list_names(ROOT / path), f"{path} has no {symbol}"


def list_names(path: Path) -> set[str]:
    """The names that the statements of a module define."""
    statements = ast.parse(path.read_text()).body
    assigned = [
        target.id
        for statement in statements
        if isinstance(statement, (ast.Assign, ast.AnnAssign))
        for target in (statement.targets if isinstance(statement, ast.Assign) else [statement.target])
        if isinstance(target, ast.Name)
    ]
    return {*assigned, *(node.name for node in statements if isinstance(node, (ast.FunctionDef, ast.ClassDef)))}


def test_a_registry_that_is_not_there_is_noticed(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text("A = 1\nB: int = 2\ndef c() -> None: ...\nclass D: ...\n")
    assert list_names(module) == {"A", "B", "c", "D"}


def test_the_guide_lists_the_linters_that_ci_runs() -> None:
    listed = re.search(r"## Lint\n\n```sh\n(.*?)```", GUIDE, re.DOTALL)
    assert listed
    run = [line.strip() for line in (ROOT / ".ci" / "run").read_text().splitlines()]
    assert listed[1].splitlines() == [line for line in run if re.match(r"\.venv/bin/(ruff|mypy|lint-imports)", line)]
