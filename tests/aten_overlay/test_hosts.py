"""How the device finds the package that loads a fork's own operators."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from aten_overlay import hosts
from aten_overlay.errors import OverlayError

PYPROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"
loaded: list[tuple[Path, Sequence[str]]] = []


def load_here(fork: Path, operators: Sequence[str]) -> None:
    loaded.append((fork, operators))


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> list[EntryPoint]:
    """The entry points that are found, to be filled."""
    found: list[EntryPoint] = []
    monkeypatch.setattr(hosts, "entry_points", lambda group: [e for e in found if e.group == group])
    loaded.clear()
    return found


def test_the_one_host_loads_the_operators(installed: list[EntryPoint]) -> None:
    installed += [EntryPoint("here", f"{__name__}:load_here", hosts.GROUP)] * 2  # found twice on the path, it is one
    installed.append(EntryPoint("other", "nowhere:nothing", "other.group"))
    hosts.load_operators(Path("fork"), ["atan2", "erf"])
    assert loaded == [(Path("fork"), ["atan2", "erf"])]


@pytest.mark.parametrize(
    ("values", "what"),
    [((), "no installed package provides it"), (("b:load", "a:load"), "several packages provide it: a:load, b:load")],
)
def test_no_host_or_several_are_refused(values: Sequence[str], what: str, installed: list[EntryPoint]) -> None:
    installed += [EntryPoint("host", value, hosts.GROUP) for value in values]
    with pytest.raises(OverlayError, match=what) as refused:
        hosts.load_operators(Path("fork"), ["atan2"])
    assert refused.value.code == "PTR147"


def test_the_host_that_porter_declares_can_be_loaded() -> None:
    section = PYPROJECT.read_text().partition(f'[project.entry-points."{hosts.GROUP}"]\n')[2].partition("\n[")[0]
    declared = re.findall(r'^(\w+) = "(.+)"$', section, re.M)
    assert [name for name, _ in declared] == ["porter"]
    assert all(callable(EntryPoint(name, value, hosts.GROUP).load()) for name, value in declared)
