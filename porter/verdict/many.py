"""Asks the verdict server for several answers at a time, in one thread: leaving closes all links, which ends them."""

from __future__ import annotations

import os
import selectors
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

from porter.core.errors import PorterError
from porter.core.progress import Progress
from porter.verdict import client
from porter.verdict.backends.choice import BACKENDS
from porter.verdict.messages import (
    Answer,
    ErrorAnswer,
    Request,
    StepStarted,
    answer_of_error,
    decode_line,
    encode_request,
)

Report = Callable[[int, str], None]


def ask_many(
    requests: Sequence[Request], jobs: int, report: Report = lambda _at, _step: None
) -> Iterator[tuple[int, Answer]]:
    """Yields the answers as they come, each with the index of its request, with at most `jobs` of them under way.

    An error is an answer too. Closing the iterator ends what is under way. Where no server can answer (see
    `client.ask`), asks for one after another.
    """
    if not requests:
        return
    if os.environ.get(client.NO_SERVER) or any(BACKENDS[each.backend].ON_HARDWARE for each in requests):
        yield from ((at, _ask(each, at, report)) for at, each in enumerate(requests))
        return
    with ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        waiting = list(enumerate(requests))[::-1]
        rest: dict[int, bytes] = {}
        while waiting or rest:
            while waiting and len(rest) < jobs:
                at, request = waiting.pop()
                link = stack.enter_context(_send(request, at, report))
                selector.register(link, selectors.EVENT_READ, at)
                rest[at] = b""
            for key, _ in selector.select():
                assert isinstance(key.fileobj, socket.socket)
                answer = _read(key.fileobj, key.data, rest, report)
                if answer is not None:
                    selector.unregister(key.fileobj)
                    key.fileobj.close()
                    del rest[key.data]
                    yield key.data, answer


def _ask(request: Request, at: int, report: Report) -> Answer:
    try:
        return client.ask(request, _steps_of(at, report))
    except PorterError as error:
        return answer_of_error(error)


def _send(request: Request, at: int, report: Report) -> socket.socket:
    link = client.connect(request.backend, _steps_of(at, report))
    link.sendall(encode_request(client.complete(request)))
    return link


def _steps_of(at: int, report: Report) -> Progress:
    return lambda step: report(at, step)


def _read(link: socket.socket, at: int, rest: dict[int, bytes], report: Report) -> Answer | None:
    """Takes in what has come on a link; the answer if that was its end."""
    data = link.recv(1 << 16)
    if not data:
        return ErrorAnswer("PTR170", "the process that verifies has ended without an answer")
    *lines, rest[at] = (rest[at] + data).split(b"\n")
    for line in lines:
        message = decode_line(line)
        if not isinstance(message, StepStarted):
            return message
        report(at, message.step)
    return None
