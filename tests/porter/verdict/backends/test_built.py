"""A library of many ports: what of the fork it is loaded with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from porter.core.checkout import EMBEDDED_FORK
from porter.core.errors import PorterError
from porter.verdict.backends import host
from porter.verdict.build.tree import Tree
from porter.verdict.result import DEFAULT, VerifyTarget

TREE = Tree(EMBEDDED_FORK, EMBEDDED_FORK, {})


def test_kernels_are_those_of_the_fork_that_it_was_built_from(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its host code may call an operator that is ported after the one under test, as the gradient of that one does."""
    loaded: list[Any] = []

    def load(library: Path, fork: Path, *_: object) -> dict[Path, PorterError]:
        loaded.append((library, fork))
        return {}

    monkeypatch.setattr(host, "load", load)
    monkeypatch.setattr("porter.verdict.build.switches.register", lambda _library, _base: None)
    monkeypatch.setattr("porter.verdict.suite.counters.install", lambda _calls, _fallbacks: None)
    host.load_built(Path("built.so"), Path("all"), TREE, VerifyTarget("exp", kernels=("exp",)), DEFAULT)
    assert loaded == [(Path("built.so"), Path("all"))]
