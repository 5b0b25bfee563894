"""What all verdicts share, asked for before any verdict is, and by none if there is no server."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.verdict import client
from porter.verdict.errors import NoVerdict
from porter.verdict.messages import PrepareAnswer, PrepareRequest, decode_request, encode_line
from porter.workflows.setup import start_preparation

FORK = Checkout(EMBEDDED_FORK, "test")
SECONDS = 20.0


def test_the_server_is_asked_to_prepare_and_found_as_soon_as_it_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    asked = _answer_with(monkeypatch, lambda: ours)
    connected = start_preparation(FORK, "host")
    assert connected.wait(SECONDS), "before it has prepared anything"
    theirs.settimeout(SECONDS)
    with theirs, theirs.makefile("rb") as lines:
        request = decode_request(lines.readline())
        theirs.sendall(encode_line(PrepareAnswer()))
    assert isinstance(request, PrepareRequest)
    assert (request.root, request.backend, asked) == (EMBEDDED_FORK.resolve(), "host", ["host"])


def test_a_server_that_does_not_start_holds_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> socket.socket:
        raise NoVerdict("PTR170", "the verdict server did not start")

    asked = _answer_with(monkeypatch, refuse)
    assert start_preparation(FORK, "host").wait(SECONDS)
    assert asked == ["host"]


@pytest.mark.parametrize(("backend", "no_server"), [("host", "1"), ("kernels", "")])
def test_where_no_server_runs_host_code_nothing_is_prepared(
    monkeypatch: pytest.MonkeyPatch, backend: str, no_server: str
) -> None:
    asked = _answer_with(monkeypatch, socket.socket)
    monkeypatch.setenv(client.NO_SERVER, no_server)
    assert start_preparation(FORK, backend).is_set()
    assert not asked


def _answer_with(monkeypatch: pytest.MonkeyPatch, connect: Callable[[], socket.socket]) -> list[str]:
    """The backends whose servers are asked for."""
    asked: list[str] = []

    def connect_to(backend: str) -> socket.socket:
        asked.append(backend)
        return connect()

    monkeypatch.delenv(client.NO_SERVER, raising=False)
    monkeypatch.setattr(client, "connect", connect_to)
    return asked
