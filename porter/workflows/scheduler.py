"""Runs the shares of a command on the machines of a dask.distributed scheduler.

A share is what `--shard I/N` runs, as a process of its own on a worker, which has the checkout at the same path. Its
key is a digest of what it is asked and of the fork, so the scheduler computes it once, and again if its worker is lost.

What a share came to travels as JSON, and nothing else is taken for it. dask's own protocol unpickles more than results,
though: whoever speaks for the scheduler can run code here, so its address has to be one that nobody else speaks for.
"""

from __future__ import annotations

import ipaddress
import os
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from porter.core import cache, codec
from porter.core.errors import PorterError
from porter.core.progress import Step, Steps, ignore
from porter.core.python import own_module
from porter.report.results import Results, merge, read_json

if TYPE_CHECKING:
    from distributed import Client, Security

CONNECT_SECONDS = 30
# Options that are passed on in the environment, as the options of a command set them.
_SETTINGS = ("PORTER_FAMILY", "PORTER_METAL", "PORTER_SANITIZE", "PORTER_TEST_SECONDS", "PORTER_VERDICT_SECONDS")


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
_WIRE = "msgpack"  # the serializer of dask for plain values alone, which unpickles nothing


def make_shares(arguments: Sequence[str], digest: str, count: int) -> tuple[Share, ...]:
    """Returns all shares of a command."""
    settings = tuple((name, os.environ[name]) for name in _SETTINGS if name in os.environ)
    return tuple(Share(tuple(arguments), f"{at}/{count}", digest, settings) for at in range(1, count + 1))


def run_share(share: Share) -> ShareResult:
    """Runs a share, on a worker."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "results.json"
        program = own_module("porter.__main__", *share.arguments, "--shard", share.shard, "--results", str(file))
        environment = {**program.environment, **dict(share.settings)}
        done = subprocess.run(
            program.command, capture_output=True, text=True, check=False, cwd=program.folder, env=environment
        )
        results = file.read_text() if file.exists() else ""
    made = ShareResult(share.shard, done.returncode, done.stdout, done.stderr, results, "")
    return ShareResult(*_list_fields(made)[:-1], made.digest_content())


def answer_share(run: Run, share: Share) -> str:
    """What a worker sends: the JSON of a ShareResult."""
    return codec.encode(run(share), ShareResult)


def _list_fields(made: ShareResult) -> tuple[str, int, str, str, str, str]:
    return made.shard, made.code, made.output, made.notes, made.results, made.digest


def run_shares(
    address: str,
    arguments: Sequence[str],
    digest: str,
    progress: Steps = ignore,
    run: Run = run_share,
    insecure: bool = False,
) -> tuple[list[ShareResult], Results]:
    """Returns what each share came to, in order, and the merged results: one share for each worker.

    Raises PTR354 if there is no scheduler with workers, PTR355 for a share that has no results of this fork, and PTR357
    for an address that others could speak for, unless `insecure`.
    """
    with _connect(address, insecure) as client:
        shares = make_shares(arguments, digest, len(client.scheduler_info(n_workers=-1)["workers"]))
        found = _gather(client, shares, run, progress)
    results = [read_json(found[share.shard].results, f"the share {share.shard}") for share in shares]
    return [found[share.shard] for share in shares], merge(results)


def is_loopback(address: str) -> bool:
    """Whether a scheduler's address, such as `tcp://127.0.0.1:8786`, is one of this machine alone."""
    try:
        host = urlsplit(address if "://" in address else f"tcp://{address}").hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _secure(address: str, insecure: bool) -> Security:
    """The TLS settings of dask's configuration. Raises PTR357 for an address that others could speak for."""
    from distributed import Security

    if address.startswith("tls://"):
        found = Security(require_encryption=True)
        if not found.get_tls_config_for_role("client").get("ca_file"):
            what = f"dask has no certificates to tell whether the scheduler at {address} is the right one"
            raise PorterError("PTR357", what, hint="Name them in dask's configuration, under distributed.comm.tls.")
        return found
    if not insecure and not is_loopback(address):
        what = f"whoever answers at {address} could run code here: it is neither tls:// nor on this machine"
        hint = "Start the scheduler with TLS, or pass --insecure on a network where you trust every machine."
        raise PorterError("PTR357", what, hint=hint)
    return Security()


def _connect(address: str, insecure: bool) -> Client:
    try:
        from distributed import Client
    except ImportError as error:
        raise PorterError(
            "PTR354", "dask.distributed is not installed", hint="pip install 'torch-porter[distributed]'"
        ) from error
    security = _secure(address, insecure)
    try:
        client = Client(
            address, timeout=CONNECT_SECONDS, set_as_default=False, security=security, deserializers=[_WIRE]
        )
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

    futures = {client.submit(answer_share, run, share, key=share.key): share for share in shares}
    found: dict[str, ShareResult] = {}
    for future in as_completed(list(futures), loop=client.loop):
        share = futures[future]
        progress(Step(f"share {share.shard}", len(found), len(shares)))
        try:
            result = _read_answer(share, future.result())
        except PorterError:
            raise
        except Exception as error:
            said = (str(error).splitlines() or [type(error).__name__])[0]
            what = f"the share {share.shard} has no results: {said}"
            raise PorterError("PTR355", what, hint="See the log of the workers.") from error
        found[share.shard] = _check(share, result)
    return found


def _read_answer(share: Share, answer: object) -> ShareResult:
    """The ShareResult that a worker sent. Raises PTR355 for anything else."""
    try:
        if isinstance(answer, str):
            result: ShareResult = codec.decode(answer, ShareResult)
            return result
    except ValueError:
        pass
    raise PorterError("PTR355", f"the result of the share {share.shard} is none of porter's", hint="See its log.")


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
