"""How much is optimized in the kernels of a verdict: what is compiled soon has to run as the tests need it."""

from __future__ import annotations

from pathlib import Path

import pytest

from porter.core.checkout import EMBEDDED_FORK
from porter.core.errors import PorterError
from porter.verdict.backends import host
from porter.verdict.build.tree import Tree
from porter.verdict.result import ARITHMETICS, DEFAULT, FUSED, VerifyTarget

TREE = Tree(EMBEDDED_FORK, EMBEDDED_FORK, {})
TARGET = VerifyTarget("exp", kernels=("exp",))
SOON = "-O1"


@pytest.fixture
def levels(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The levels at which kernels are compiled."""
    found: list[str] = []

    def load(
        _library: Path, _fork: Path, prefixes: list[str], _arithmetic: str, _checked: bool, _checks: object, level: str
    ) -> dict[Path, PorterError]:
        assert prefixes == ["exp_"]
        found.append(level)
        return {}

    monkeypatch.setattr(host, "load", load)
    monkeypatch.setattr("porter.verdict.build.switches.register", lambda _library, _base: None)
    monkeypatch.setattr("porter.verdict.suite.counters.install", lambda _calls, _fallbacks: None)
    return found


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_kernels_are_compiled_soon_unless_the_optimizer_is_what_contracts(levels: list[str], arithmetic: str) -> None:
    host.load_built(Path("built.so"), EMBEDDED_FORK, TREE, TARGET, arithmetic)
    assert levels == [host.FULL if arithmetic == FUSED else SOON]


def test_kernels_that_are_watched_are_optimized(levels: list[str]) -> None:
    host.load_built(Path("built.so"), EMBEDDED_FORK, TREE, TARGET, DEFAULT, checked=True)
    assert levels == [host.FULL]


def test_old_code_is_compiled_as_the_port_is(levels: list[str]) -> None:
    host.load_old_code(TREE, TARGET, DEFAULT, Path("old.so"))
    assert levels == [SOON]
