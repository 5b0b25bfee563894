"""The guides of docs/kernels: every snippet is run or says that it is not, and every link leads to something."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from porter.cli.app import app
from tests.docs.snippets import PAGES, Snippet, read_snippets

ROOT = PAGES.parents[1]
SNIPPETS = read_snippets()
INSIDE = Path(__file__).parent / "inside" / "check_kernel_guides.py"
LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")
FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"(?:`|^\$ )porter ([a-z]+)(?: ([a-z]+))?", re.MULTILINE)
LONGEST = 125
EXTENSIONS = "extensions.md"  # whose commands build on each other: test_extension_guide.py runs them all


def test_every_snippet_on_the_device(passes_inside: Callable[[Path], None]) -> None:
    passes_inside(INSIDE)


CONSOLES = [s for s in SNIPPETS if s.language == "console" and s.is_run and s.page != EXTENSIONS]


@pytest.mark.parametrize("snippet", CONSOLES, ids=str)
def test_a_console_shows_what_the_commands_print(snippet: Snippet, tmp_path: Path) -> None:
    for command, shown in re.findall(r"^\$ porter ([^\n]*)\n((?:(?!\$ ).*\n)*)", snippet.text, re.MULTILINE):
        done = subprocess.run(
            [sys.executable, "-m", "porter", *command.split()],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert re.fullmatch(pattern(shown), done.stdout), f"porter {command} prints\n{done.stdout}{done.stderr}"


def pattern(shown: str) -> str:
    """What a page shows, where a line `...` stands for any lines."""
    return "".join(r"(?:.*\n)*?" if line == "...\n" else re.escape(line) for line in shown.splitlines(keepends=True))


def test_the_tests_of_the_guide_run_by_its_command(tmp_path: Path) -> None:
    page = [s for s in SNIPPETS if s.page == "testing.md"]
    shell = next(s for s in page if s.language == "sh")
    tests = next(s for s in page if s.language == "python" and s.line > shell.line)
    command = shell.text.splitlines()[0].partition("#")[0].split()
    (tmp_path / command[-1]).parent.mkdir()
    (tmp_path / command[-1]).write_text(tests.text)
    done = subprocess.run([sys.executable, *command[1:]], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert command[0] == "python" and "2 passed" in done.stdout, done.stdout + done.stderr


def test_what_is_not_run_says_so() -> None:
    assert {s.language for s in SNIPPETS if s.is_run} <= {"python", "metal", "console", "text"}
    assert Counter(s.language for s in SNIPPETS if not s.is_run) == {"sh": 7, "cuda": 1, "cpp": 1, "python": 2}


def test_every_text_block_is_the_output_of_a_snippet() -> None:
    shown = {(s.page, s.output) for s in SNIPPETS if s.is_run}
    assert [str(s) for s in SNIPPETS if s.language == "text" and (s.page, s.text) not in shown] == []


@pytest.mark.parametrize("page", sorted(path.name for path in PAGES.glob("*.md")))
def test_a_page_is_short_listed_and_leads_somewhere(page: str) -> None:
    text = (PAGES / page).read_text()
    assert len(text.splitlines()) <= LONGEST
    links = set(LINK.findall(FENCED.sub("", text)))
    assert [link for link in sorted(links) if not (PAGES / link).exists()] == []
    assert page == "README.md" or f"]({page})" in (PAGES / "README.md").read_text()


@pytest.mark.parametrize("page", sorted(path.name for path in PAGES.glob("*.md")))
def test_a_command_that_a_page_names_exists(page: str) -> None:
    named = {match.groups() for match in COMMAND.finditer((PAGES / page).read_text())}
    assert sorted(" ".join(words) for words in named if not is_command(*words)) == []


def is_command(name: str, second: str) -> bool:
    """Whether `porter NAME SECOND` begins with a command: a group's commands are named in full."""
    found = app.commands.get(name)
    return found is not None and (not isinstance(found, click.Group) or second in found.commands)


def test_a_page_is_read_as_a_reader_sees_it(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(
        "```python\nprint(1)\n```\n\n```text\n1\n```\n\nNext:\n\n```sh not-run\nls\n```\nMore.\n```text\n2\n```\n"
    )
    first, shown, second, alone = read_snippets(tmp_path)
    assert (first.language, first.line, first.text, first.output) == ("python", 2, "print(1)\n", "1\n")
    assert (second.language, second.is_run, second.output) == ("sh", False, None)
    assert [shown.text, alone.text] == ["1\n", "2\n"]


def test_a_line_of_dots_stands_for_any_lines() -> None:
    assert re.fullmatch(pattern("a\n...\nz\n"), "a\nb\nc\nz\n")
    assert not re.fullmatch(pattern("a\nb\n"), "a\nc\n")
