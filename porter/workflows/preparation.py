"""What all verdicts share, built while operators are planned: planning takes one core."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.verdict import client
from porter.verdict.backends.choice import choose_backend
from porter.verdict.messages import PrepareRequest


def start_preparation(checkout: Checkout, backend: str) -> Event:
    """Starts the verdict server and prepares it in the background, until this process ends.

    The event is set once the server answers, or does not start, which is said to who asks it next. Raises as
    `choose_backend` does.
    """
    chosen, connected = choose_backend(backend), Event()
    if chosen.RUNS_HOST_CODE and not os.environ.get(client.NO_SERVER):
        Thread(target=_prepare, args=(checkout.root.resolve(), chosen.NAME, connected), daemon=True).start()
    else:
        connected.set()
    return connected


def _prepare(root: Path, backend: str, connected: Event) -> None:
    try:
        with suppress(PorterError, OSError, EOFError), client.connect(backend) as link:
            connected.set()
            client.exchange(link, client.complete(PrepareRequest(root, backend)))
    finally:
        connected.set()
