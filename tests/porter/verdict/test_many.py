"""Several requests at a time over sockets: at most so many, answers as they come, and links that close."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from porter.core.progress import Progress
from porter.verdict import client
from porter.verdict.client import ask_many
from porter.verdict.messages import (
    ErrorAnswer,
    Line,
    PrepareAnswer,
    PrepareRequest,
    Request,
    StepStarted,
    decode_request,
    encode_line,
)

REQUESTS = [PrepareRequest(Path(f"fork{at}"), "host") for at in range(3)]


class Links:
    """The server's ends of the links that were made."""

    def __init__(self) -> None:
        self.ends: list[socket.socket] = []

    def connect(self, _backend: str, _progress: Progress) -> socket.socket:
        mine, theirs = socket.socketpair()
        self.ends.append(theirs)
        return mine

    def send(self, at: int, *lines: Line) -> None:
        self.ends[at].sendall(b"".join(map(encode_line, lines)))

    def received(self, at: int) -> Request:
        return decode_request(self.ends[at].recv(1 << 16))

    def is_left(self, at: int) -> bool:
        """Whether the client has closed its end, with or without reading what was sent."""
        self.ends[at].settimeout(60)
        try:
            while self.ends[at].recv(1 << 16):
                pass
        except TimeoutError:
            return False
        except ConnectionResetError:
            return True
        return True


@pytest.fixture
def links(monkeypatch: pytest.MonkeyPatch) -> Links:
    found = Links()
    monkeypatch.delenv(client.NO_SERVER, raising=False)
    monkeypatch.setattr(client, "connect", found.connect)
    return found


def answering(links: Links, *rounds: Callable[[], None]) -> Callable[[int, str], None]:
    """Reports to nobody; each step that is heard makes the server go on."""
    left = list(rounds)

    def report(_at: int, _step: str) -> None:
        left.pop(0)()

    return report


def test_answers_come_in_the_order_in_which_they_are_ready(links: Links, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[tuple[int, str]] = []
    answers = ask_many(REQUESTS[:2], 2, lambda at, step: heard.append((at, step)))
    started = links.connect
    made: list[int] = []

    def connect(backend: str, progress: Progress) -> socket.socket:
        link = started(backend, progress)
        made.append(len(links.ends) - 1)
        links.send(made[-1], StepStarted("build"), PrepareAnswer() if made[-1] else ErrorAnswer("PTR170", "no"))
        return link

    monkeypatch.setattr(client, "connect", connect)
    assert dict(answers) == {0: ErrorAnswer("PTR170", "no"), 1: PrepareAnswer()}
    assert sorted(heard) == [(0, "build"), (1, "build")]
    assert [links.received(at) for at in made] == [client.complete(each) for each in REQUESTS[:2]]


def test_no_more_are_under_way_than_jobs(links: Links, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = answering(links, lambda: links.send(0, PrepareAnswer()), lambda: links.send(1, PrepareAnswer()))
    open_at: list[int] = []
    answers = ask_many(REQUESTS, 2, rounds)

    def step(at: int) -> None:
        open_at.append(len(links.ends))
        links.send(at, StepStarted("build"))

    original = links.connect

    def connect(backend: str, progress: Progress) -> socket.socket:
        link = original(backend, progress)
        if len(links.ends) == 2:
            step(0)
        if len(links.ends) == 3:
            links.send(2, PrepareAnswer())
            step(1)
        return link

    monkeypatch.setattr(client, "connect", connect)
    assert [at for at, _ in answers] in ([0, 2, 1], [0, 1, 2])
    assert open_at == [2, 3], "the third link is made when the first has its answer"


def test_a_server_that_ends_is_an_error_of_its_request(links: Links, monkeypatch: pytest.MonkeyPatch) -> None:
    original = links.connect

    def connect(backend: str, progress: Progress) -> socket.socket:
        link = original(backend, progress)
        links.ends[-1].shutdown(socket.SHUT_WR)
        return link

    monkeypatch.setattr(client, "connect", connect)
    [(at, answer)] = ask_many(REQUESTS[:1], 2)
    assert at == 0 and isinstance(answer, ErrorAnswer) and answer.code == "PTR170"


def test_leaving_closes_the_links_that_are_open(links: Links, monkeypatch: pytest.MonkeyPatch) -> None:
    original = links.connect

    def connect(backend: str, progress: Progress) -> socket.socket:
        link = original(backend, progress)
        if len(links.ends) == 1:
            links.send(0, PrepareAnswer())
        return link

    monkeypatch.setattr(client, "connect", connect)
    answers = ask_many(REQUESTS, 2)
    assert next(answers) == (0, PrepareAnswer())
    answers.close()  # type: ignore[attr-defined]
    assert all(links.is_left(at) for at in range(len(links.ends)))


def test_an_interrupt_closes_the_links(links: Links, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_at: int, _step: str) -> None:
        raise KeyboardInterrupt

    original = links.connect

    def connect(backend: str, progress: Progress) -> socket.socket:
        link = original(backend, progress)
        links.send(len(links.ends) - 1, StepStarted("build"))
        return link

    monkeypatch.setattr(client, "connect", connect)
    with pytest.raises(KeyboardInterrupt):
        list(ask_many(REQUESTS, 2, interrupt))
    assert all(links.is_left(at) for at in range(2))
