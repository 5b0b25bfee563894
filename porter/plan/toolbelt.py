"""What a fork's own tools call of porter: edits of the files that configure spin, lintrunner, pre-commit and GitHub.

A tool is a function that yields edits, none where the fork has them already, and leaves every other line as it is.
Nothing of the fork is run.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from porter.core.change_set import ChangeSet
from porter.core.checkout import Checkout
from porter.core.edits import Edit, splice
from porter.core.errors import Place, PorterError
from porter.core.files import read_regular
from porter.core.layout import (
    LINTED,
    LINTRUNNER,
    MATCHER,
    METAL_HEADERS,
    NATIVE,
    PRE_COMMIT,
    PROJECT,
    SPIN_COMMANDS,
    SPIN_FILES,
    SPIN_PORTER,
    TEST_MPS,
)
from porter.core.yaml_text import choose_loader

_HEADER = re.compile(r"^\[", re.MULTILINE)
_WITH_TEXT = re.compile(r"^(?!\s*(?:#|$)).*\n?", re.MULTILINE)


def refuse(path: str, what: str) -> PorterError:
    """The error for a file that cannot be edited without guessing."""
    return PorterError("PTR152", what, Place(path), "Add it by hand: docs/toolbelt.md has the text.")


def replace_file(checkout: Checkout, path: str, text: str) -> list[Edit]:
    """Edits that give a file this text; none where it has it."""
    before = checkout.read(path) if checkout.exists(path) else ""
    return [] if before == text else [Edit(path, 0, len(before), text)]


def append(path: str, text: str, added: str) -> Edit:
    """An edit that adds lines at the end of a file."""
    return Edit(path, len(text), len(text), added if not text or text.endswith("\n") else f"\n{added}")


def find_table_end(text: str, name: str) -> int | None:
    """Where the last line of a TOML table ends that is no comment: comments after it are about the next table."""
    header = re.search(rf"^\[{re.escape(name)}\][^\n]*\n?", text, re.MULTILINE)
    if header is None:
        return None
    following = _HEADER.search(text, header.end())
    last = header.end()
    for line in _WITH_TEXT.finditer(text, header.end(), following.start() if following else len(text)):
        last = line.end()
    return last


def read_toml(path: str, text: str) -> dict[str, Any]:
    """What a TOML file says; nothing before Python 3.11, which cannot tell. Raises PTR152 for what is no TOML."""
    if sys.version_info < (3, 11):
        return {}
    import tomllib

    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise refuse(path, f"this is no TOML: {error}") from error


def check_toml(path: str, text: str, edits: list[Edit]) -> list[Edit]:
    """The edits, unless the file is no TOML before them or after them. Raises PTR152."""
    read_toml(path, text)
    read_toml(path, splice(text, sorted(edits, key=lambda edit: edit.start)))
    return edits


# `path:line: severity: what [rule]`, as the text of a review has it; advice has no level at GitHub.
PATTERN = {
    "regexp": r"^(\S.*?):(\d+): (error|warning): (.+) \[([a-z0-9-]+)\]$",
    "file": 1,
    "line": 2,
    "severity": 3,
    "message": 4,
    "code": 5,
}


def add_problem_matcher(checkout: Checkout) -> Iterator[Edit]:
    """Writes the matcher. A job takes it by `echo "::add-matcher::PATH"`."""
    matcher = {"problemMatcher": [{"owner": "porter", "pattern": [PATTERN]}]}
    yield from replace_file(checkout, MATCHER, f"{json.dumps(matcher, indent=2)}\n")


_FUNCTIONS = ("port", "port_verify", "port_status")
_ENTRIES = tuple(f"{SPIN_PORTER}:{function}" for function in _FUNCTIONS)
_COMMANDS = "tool.spin.commands"
_SECTION = "Ports of MPS operators"
_SPIN = re.compile(r"^\[tool\.spin\b|^\s*tool\.spin\b|^spin\b", re.MULTILINE)
_SOURCE = Path(__file__).with_name("spin_commands.py")


def add_commands(checkout: Checkout) -> Iterator[Edit]:
    """Lists the commands where the fork lists its own, and writes their file. Raises PTR151 without such a list."""
    path = next((path for path in SPIN_FILES if _configures_spin(checkout, path)), None)
    if path is None and not checkout.exists(PROJECT):
        hint = f"Give the fork a {PROJECT}, where spin reads its commands."
        raise PorterError("PTR151", f"the fork has no {PROJECT} for commands of spin", hint=hint)
    yield from _list_commands(path or PROJECT, checkout.read(path or PROJECT), new=path is None)
    yield from replace_file(checkout, SPIN_PORTER, read_regular(_SOURCE).decode())


def _configures_spin(checkout: Checkout, path: str) -> bool:
    return checkout.exists(path) and bool(_SPIN.search(checkout.read(path)))


def _list_commands(path: str, text: str, new: bool) -> list[Edit]:
    missing = [entry for entry in _ENTRIES if f'"{entry}"' not in text]
    if not missing:
        read_toml(path, text)
        return []
    if len(missing) < len(_ENTRIES):
        last_listed = max(text.rindex(f'"{entry}"') for entry in _ENTRIES if entry not in missing)
        at = text.find("\n", last_listed) + 1 or len(text)
        return check_toml(path, text, [Edit(path, at, at, "".join(f'  "{entry}",\n' for entry in missing))])
    listed = "".join(f'  "{entry}",\n' for entry in _ENTRIES)
    section = f'"{_SECTION}" = [\n{listed}]\n'
    end = find_table_end(text, _COMMANDS)
    if end is not None:
        lead = "" if text[:end].endswith("\n") else "\n"
        return check_toml(path, text, [Edit(path, end, end, f"{lead}{section}")])
    if not new:
        raise refuse(path, f"spin's commands are in no table [{_COMMANDS}]")
    return check_toml(path, text, [append(path, text, f"\n[tool.spin]\npackage = 'torch'\n\n[{_COMMANDS}]\n{section}")])


CODE = "PORTER"
_LISTED = re.compile(rf"^\s*code\s*=\s*['\"]{CODE}['\"]", re.MULTILINE)
# spin refuses to lint while lintrunner has a linter that is in none of its sets. porter takes seconds.
_KNOWN, _FAST = re.compile(r"\w+_LINTERS"), "FAST_LINTERS"
_PATTERNS = "".join(f"    '{pattern}',\n" for pattern in LINTED)
ENTRY = f"""
[[linter]]
code = '{CODE}'
include_patterns = [
{_PATTERNS}]
command = [
    'porter',
    'lint',
    '--format',
    'lintrunner',
    '--',
    '@{{{{PATHSFILE}}}}',
]
"""


def add_linter(checkout: Checkout) -> Iterator[Edit]:
    """Adds the adapter. Raises PTR151 for a fork that lintrunner does not lint."""
    if not checkout.exists(LINTRUNNER):
        hint = "`porter lint` and the pre-commit hook need none."
        raise PorterError("PTR151", f"the fork has no {LINTRUNNER}, as one that lintrunner lints has", hint=hint)
    text = checkout.read(LINTRUNNER)
    if _LISTED.search(text):
        read_toml(LINTRUNNER, text)
    else:
        yield from check_toml(LINTRUNNER, text, [append(LINTRUNNER, text, ENTRY)])
    if checkout.exists(SPIN_COMMANDS):
        yield from _name_linter(checkout.read(SPIN_COMMANDS))


def _name_linter(text: str) -> list[Edit]:
    """Edits that put the linter into the set of fast ones, in its order."""
    try:
        statements = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError) as error:
        raise refuse(SPIN_COMMANDS, f"this is no Python: {error}") from error
    sets = dict(filter(None, map(_read_set, statements)))
    if not sets or any(CODE in names for names in sets.values()):
        return []
    if not sets.get(_FAST):
        raise refuse(SPIN_COMMANDS, f"there is no set {_FAST} for a linter")
    names = sets[_FAST]
    following = next((name for name in sorted(names) if name > CODE), max(names))
    item = names[following]
    lines = text.splitlines(keepends=True)
    start = lines[item.lineno - 1].encode()[: item.col_offset].decode()
    at = sum(map(len, lines[: item.lineno - 1])) + len(start)
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return [Edit(SPIN_COMMANDS, at, at, f'"{CODE}",' + (" " if line.strip() else f"\n{line}"))]


def _read_set(statement: Any) -> tuple[str, Mapping[str, ast.Constant]] | None:
    """The name of a set of linters, and where each of its strings is."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Set(elts=items)) if _KNOWN.fullmatch(name):
            return name, {
                item.value: item for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str)
            }
    return None


# The files whose lines porter lints, as `.pre-commit-hooks.yaml` of porter's repository has them too.
_FILES = rf"^({NATIVE}/(mps/|native_functions\.yaml)|{METAL_HEADERS}/|{re.escape(TEST_MPS)}|torch/testing/_internal/)"
_HOOK = "porter-lint"
_LINES = (
    "- repo: local",
    "  hooks:",
    f"    - id: {_HOOK}",
    "      name: porter lint",
    "      entry: porter lint",
    "      language: system",
    f"      files: {_FILES}",
    "      require_serial: true",
)
_REPOSITORIES = re.compile(r"^repos:[ \t]*(?:#[^\n]*)?\n", re.MULTILINE)
_ITEM = re.compile(r"^([ ]*)- ", re.MULTILINE)
_NEXT_KEY = re.compile(r"^[^\s#-]", re.MULTILINE)


def add_hook(checkout: Checkout) -> Iterator[Edit]:
    """Adds the hook to those of the fork, or as its first. Raises PTR152 for hooks that are no YAML list."""
    if not checkout.exists(PRE_COMMIT):
        yield append(PRE_COMMIT, "", f"repos:\n{_indent('  ')}")
        return
    text = checkout.read(PRE_COMMIT)
    before = _read_hooks(text)
    if _HOOK in before:
        return
    list_of_hooks = _REPOSITORIES.search(text)
    if list_of_hooks is None:
        raise refuse(PRE_COMMIT, "`repos` is no list with an item a line")
    following = _NEXT_KEY.search(text, list_of_hooks.end())
    items = text[list_of_hooks.end() : following.start() if following else len(text)]
    first = _ITEM.match(items) or _ITEM.search(items)
    end = max((line.end() for line in _WITH_TEXT.finditer(items)), default=0) + list_of_hooks.end()
    lead = "" if text[:end].endswith("\n") else "\n"
    edit = Edit(PRE_COMMIT, end, end, f"{lead}{_indent(first[1] if first else '  ')}")
    if _read_hooks(splice(text, [edit])) != [*before, _HOOK]:
        raise refuse(PRE_COMMIT, "`repos` is no list with an item a line")
    yield edit


def _indent(by: str) -> str:
    return "".join(f"{by}{line}\n" for line in _LINES)


def _read_hooks(text: str) -> list[Any]:
    """The ids of all hooks. Raises PTR152 for what is not a file of pre-commit."""
    try:
        repositories = yaml.load(text, choose_loader(text))["repos"] or []
        return [hook["id"] for repository in repositories for hook in repository["hooks"]]
    except (yaml.YAMLError, TypeError, KeyError, RecursionError, ValueError) as error:
        raise refuse(PRE_COMMIT, "these are no hooks of pre-commit") from error


TOOLS: Mapping[str, Callable[[Checkout], Iterator[Edit]]] = {
    "spin": add_commands,
    "lintrunner": add_linter,
    "pre-commit": add_hook,
    "github": add_problem_matcher,
}
NO_PLACE = "PTR151"


@dataclass(frozen=True)
class Toolbelt:
    """The edits for some tools, and the tools for which the fork has no place, each with why."""

    changes: ChangeSet
    left_out: tuple[tuple[str, PorterError], ...]


def plan_toolbelt(checkout: Checkout, tools: Sequence[str] = ()) -> Toolbelt:
    """Plans what some of `TOOLS` need; none stands for all, less what the fork has no place for.

    Raises PTR151 for a tool that is named and has no place, PTR152 for a file that is not as its tool reads it, and
    what `Checkout.read` raises.
    """
    edits, left_out = list[Edit](), list[tuple[str, PorterError]]()
    for tool in dict.fromkeys(tools) or TOOLS:
        try:
            edits += TOOLS[tool](checkout)
        except PorterError as error:
            if tools or error.code != NO_PLACE:
                raise
            left_out.append((tool, error))
    base = {edit.file: checkout.read(edit.file) for edit in edits if checkout.exists(edit.file)}
    return Toolbelt(ChangeSet(base, tuple(edits)), tuple(left_out))
