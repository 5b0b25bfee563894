"""An adapter of lintrunner, and its name where the fork's spin lists the linters that it knows."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

from porter.core.checkout import Checkout
from porter.core.edits import Edit
from porter.core.errors import PorterError
from porter.core.layout import LINTED, LINTRUNNER, SPIN_COMMANDS
from porter.plan.toolbelt.text import append, check_toml, read_toml, refuse

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
