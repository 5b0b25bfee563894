"""What the runs of a verdict read of a tree before they are forked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.errors import PorterError
from porter.server import worker
from porter.verdict.backends import host
from porter.verdict.native import native_target
from porter.verdict.result import HOST, Failure, VerifyTarget
from porter.verdict.suite.context import Context
from porter.verdict.suite.selection import Selection

READ = ["lint", "unregistered", "context"]


@pytest.fixture
def target() -> VerifyTarget:
    return native_target(Checkout(EMBEDDED_FORK, "embedded"), "exp")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """What is read, in order; OpInfos are not selected, which takes a device."""
    monkeypatch.setenv("PORTER_CACHE", str(tmp_path))
    found: list[str] = []

    def counting(name: str, result: object) -> Callable[..., object]:
        def read(*_: object) -> object:
            found.append(name)
            return result

        return read

    monkeypatch.setattr(worker, "find_lint", counting("lint", []))
    monkeypatch.setattr(worker, "find_unregistered", counting("unregistered", []))
    monkeypatch.setattr(worker, "make_context", counting("context", Context(bases=("exp",))))
    monkeypatch.setattr(host, "select_opinfos", lambda _: Selection())
    return found


def make_case(target: VerifyTarget, backend: str = HOST) -> worker.Case:
    return worker.Case(EMBEDDED_FORK, {}, target, backend)


def test_what_is_read_ahead_is_read_once(target: VerifyTarget, calls: list[str]) -> None:
    case = make_case(target)
    case.read_ahead()
    assert calls == READ
    assert (case.lint, case.unregistered, case.context.bases) == ([], [], ("exp",))
    assert calls == READ


@pytest.mark.parametrize(("wrong", "read"), [("find_lint", ["lint"]), ("find_unregistered", ["lint", "unregistered"])])
def test_what_fails_is_all_that_is_read(
    target: VerifyTarget, calls: list[str], monkeypatch: pytest.MonkeyPatch, wrong: str, read: list[str]
) -> None:
    find = getattr(worker, wrong)
    monkeypatch.setattr(worker, wrong, lambda *given: [*find(*given), Failure("lint", "wrong")])
    make_case(target).read_ahead()
    assert calls == read


def test_what_cannot_be_read_is_an_error_of_the_run(
    target: VerifyTarget, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> list[Failure]:
        raise PorterError("PTR110", "brackets")

    monkeypatch.setattr(worker, "find_lint", refuse)
    case = make_case(target)
    case.read_ahead()
    assert calls == []
    with pytest.raises(PorterError, match="brackets"):
        worker.verify(case, worker.RunOptions(None, HOST, "default"), calls.append)
    assert calls == ["lint"]
