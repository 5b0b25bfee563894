"""porter setup: a compiler that is there is taken; else each way to get one is tried in turn."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata

import pytest

from aten_overlay.errors import OverlayError
from aten_overlay.metal import compiler
from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.errors import PorterError
from porter.report.upkeep import Compiler, compiler_text, overlay_text
from porter.verdict import client
from porter.verdict.backends import choice
from porter.verdict.messages import PrepareAnswer, PrepareRequest, Request
from porter.workflows import setup


def missing() -> str:
    raise OverlayError("PTR100", "no clang++ 17 or newer was found")


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ways that were tried, on a machine where none works until a test says so."""
    ways: list[str] = []
    monkeypatch.setattr(setup, "find_clang", missing)
    monkeypatch.setattr(setup, "_install_with_apt", lambda: ways.append("apt"))
    monkeypatch.setattr(setup, "_install_with_pip", lambda: ways.append("pip"))
    return ways


def test_an_installed_compiler_is_named_with_its_version() -> None:
    path = compiler.find_clang()
    assert compiler_text(setup.set_up()) == f"compiler: {path} ({compiler.version(path).splitlines()[0]})"
    assert "clang version" in setup.set_up().version


def test_the_system_comes_before_the_environment(tried: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "find_clang", lambda: "/bin/clang++" if "apt" in tried else missing())
    monkeypatch.setattr(setup, "version", lambda path: "clang version 19\nTarget: any\n")
    assert setup.set_up() == Compiler("/bin/clang++", "clang version 19")
    assert tried == ["apt"]


def test_a_missing_compiler_is_refused_after_every_attempt(tried: list[str]) -> None:
    with pytest.raises(PorterError, match="PTR100"):
        setup.set_up()
    assert tried == ["apt", "pip"]


def test_nothing_is_installed_outside_of_a_virtual_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("ran pip"))
    setup._install_with_pip()


def test_the_overlay_is_built_for_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Request] = []

    def answer(request: Request, progress: object) -> PrepareAnswer:
        asked.append(request)
        return PrepareAnswer()

    monkeypatch.setattr(setup, "choose_backend", lambda name: choice.BACKENDS["host"])
    monkeypatch.setattr(client, "ask", answer)
    made = overlay_text(setup.prepare(Checkout(EMBEDDED_FORK, "named")))
    assert made == f"overlay: built for torch {metadata.version('torch')}"
    assert asked == [PrepareRequest(EMBEDDED_FORK, "host")]


def test_nothing_is_built_for_unused_backends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "ask", lambda *_: pytest.fail("asked"))
    monkeypatch.setattr(setup, "choose_backend", lambda name: choice.BACKENDS["mps"])
    assert "nothing to build for the mps backend" in overlay_text(setup.prepare(Checkout(EMBEDDED_FORK, "named")))
    monkeypatch.setattr(setup, "find_spec", lambda name: None)
    assert "not built, torch is not installed" in overlay_text(setup.prepare(Checkout(EMBEDDED_FORK, "named")))
