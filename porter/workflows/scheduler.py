"""Runs the shares of a command on the machines of a dask.distributed scheduler.

A share is what `--shard I/N` runs, as a process of its own on a worker, which has the checkout at the same path. Its
key is a digest of what it is asked and of the fork, so the scheduler computes it once, and again if its worker is lost.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from porter.core import cache
from porter.core.errors import PorterError
from porter.core.progress import Step, Steps, ignore
from porter.report.results import Results, merge, read_json

if TYPE_CHECKING:
    from distributed import Client

CONNECT_SECONDS = 30
# Options that are passed on in the environment, as the options of a command set them.
_SETTINGS = ("PORTER_FAMILY", "PORTER_SANITIZE", "PORTER_TEST_SECONDS", "PORTER_VERDICT_SECONDS")


@dataclass(frozen=True)
class Share:
    """A command without its `--shard` and `--results`, the share of it to run, and a digest of the fork it is of."""

    arguments: tuple[str, ...]
    shard: str
    digest: str
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> str:
        """The name of the result: the same for the same question."""
        return f"porter-{cache.digest(*self.arguments, self.shard, self.digest, repr(self.settings))}"


@dataclass(frozen=True)
class ShareResult:
    """What a share printed, its exit code, and its file of results, with a digest of all three."""

    shard: str
    code: int
    output: str
    notes: str
    results: str
    digest: str

    def digest_content(self) -> str:
        return cache.digest(self.shard, str(self.code), self.output, self.notes, self.results)


Run = Callable[[Share], ShareResult]


def make_shares(arguments: Sequence[str], digest: str, count: int) -> tuple[Share, ...]:
    """Returns all shares of a command."""
    settings = tuple((name, os.environ[name]) for name in _SETTINGS if name in os.environ)
    return tuple(Share(tuple(arguments), f"{at}/{count}", digest, settings) for at in range(1, count + 1))


def run_share(share: Share) -> ShareResult:
    """Runs a share, on a worker."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "results.json"
        command = [sys.executable, "-m", "porter", *share.arguments, "--shard", share.shard, "--results", str(file)]
        environment = {**os.environ, **dict(share.settings)}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        results = file.read_text() if file.exists() else ""
    made = ShareResult(share.shard, done.returncode, done.stdout, done.stderr, results, "")
    return ShareResult(*_list_fields(made)[:-1], made.digest_content())


def _list_fields(made: ShareResult) -> tuple[str, int, str, str, str, str]:
    return made.shard, made.code, made.output, made.notes, made.results, made.digest


def run_shares(
    address: str, arguments: Sequence[str], digest: str, progress: Steps = ignore, run: Run = run_share
) -> tuple[list[ShareResult], Results]:
    """Returns what each share came to, in order, and the merged results: one share for each worker.

    Raises PTR354 if there is no scheduler with workers, and PTR355 for a share that has no results of this fork.
    """
    with _connect(address) as client:
        shares = make_shares(arguments, digest, len(client.scheduler_info(n_workers=-1)["workers"]))
        found = _gather(client, shares, run, progress)
    results = [read_json(found[share.shard].results, f"the share {share.shard}") for share in shares]
    return [found[share.shard] for share in shares], merge(results)


def _connect(address: str) -> Client:
    try:
        from distributed import Client
    except ImportError as error:
        raise PorterError(
            "PTR354", "dask.distributed is not installed", hint="pip install 'porter[distributed]'"
        ) from error
    try:
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        what = f"no scheduler answers at {address}"
        raise PorterError(
            "PTR354", what, hint="Start one with `dask scheduler`, and workers with `dask worker`."
        ) from error
    try:
        client.wait_for_workers(1, timeout=CONNECT_SECONDS)
    except TimeoutError as error:
        client.close()
        what = f"the scheduler at {address} has no workers"
        raise PorterError("PTR354", what, hint="Start some with `dask worker`.") from error
    return client


def _gather(client: Client, shares: Sequence[Share], run: Run, progress: Steps) -> dict[str, ShareResult]:
    """Fetches the results as they come. What a lost worker had, another one does."""
    from distributed import as_completed

    futures = {client.submit(run, share, key=share.key): share for share in shares}
    found: dict[str, ShareResult] = {}
    for future in as_completed(list(futures), loop=client.loop):
        share = futures[future]
        progress(Step(f"share {share.shard}", len(found), len(shares)))
        try:
            result = future.result()
        except Exception as error:
            said = (str(error).splitlines() or [type(error).__name__])[0]
            what = f"the share {share.shard} has no results: {said}"
            raise PorterError("PTR355", what, hint="See the log of the workers.") from error
        found[share.shard] = _check(share, result)
    return found


def _check(share: Share, result: ShareResult) -> ShareResult:
    """Raises PTR355 for a result that changed on its way, is none, or is of another fork."""
    if result.digest != result.digest_content():
        raise PorterError("PTR355", f"the result of the share {share.shard} is not what its worker computed")
    if not result.results:
        last = (result.notes.strip().splitlines() or ["it said nothing"])[-1]
        raise PorterError("PTR355", f"the share {share.shard} ended with {result.code}: {last}")
    if read_json(result.results, f"the share {share.shard}").digest != share.digest:
        what = f"the share {share.shard} ran on another fork, or another state of it"
        raise PorterError("PTR355", what, hint="Workers need the checkout at the same path, in the same state.")
    return result
