"""Commands of spin: `spin port OP`, `spin port-verify OP` and `spin port-status`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from porter.core.checkout import Checkout
from porter.core.edits import Edit
from porter.core.errors import PorterError
from porter.core.files import read_regular
from porter.core.layout import PROJECT, SPIN_FILES, SPIN_PORTER
from porter.plan.toolbelt.text import append, check_toml, find_table_end, read_toml, refuse, replace_file

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
