"""A hook of pre-commit that lints the lines of a commit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from porter.core.checkout import Checkout
from porter.core.edits import Edit, splice
from porter.core.layout import METAL_HEADERS, NATIVE, PRE_COMMIT, TEST_MPS
from porter.core.yaml_text import choose_loader
from porter.plan.toolbelt.text import append, refuse

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
_WITH_TEXT = re.compile(r"^(?!\s*(?:#|$)).*\n?", re.MULTILINE)


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
