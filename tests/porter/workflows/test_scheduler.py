"""Shares of a command on a local cluster of two processes, one of which is killed."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from distributed import LocalCluster

from porter.cli import main
from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.errors import PorterError
from porter.report.results import Results, read_json
from porter.workflows import scheduler
from porter.workflows.results import digest_fork
from porter.workflows.scheduler import Share, ShareResult, is_loopback, make_shares, run_share, run_shares
from porter.workflows.status import portable

FORK = Checkout(EMBEDDED_FORK, "test")
DIGEST = digest_fork(FORK)
PLAN = ("migrate", "--all", "--no-verify", "--checkout", str(EMBEDDED_FORK))
SECONDS = 120


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """Two workers, which nothing starts again."""
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as made:
        yield made


def wait_for(path: Path) -> str:
    end = time.monotonic() + SECONDS
    while not (path.exists() and path.read_text()):
        assert time.monotonic() < end, f"no {path.name}"
        time.sleep(0.05)
    return path.read_text()


def hang_once(share: Share) -> ShareResult:
    """Runs a share, the first time only until its process is killed: `settings` names a folder to tell of it."""
    folder = Path(dict(share.settings)["FOLDER"])
    pid = folder / share.shard.replace("/", " of ")
    if share.shard.startswith("1/") and not pid.exists():
        pid.with_suffix(".new").write_text(str(os.getpid()))
        pid.with_suffix(".new").rename(pid)
        time.sleep(SECONDS)
    return run_share(replace(share, settings=()))


def names(results: Results) -> list[str]:
    return sorted(each.op for each in results.operators)


def test_what_a_killed_worker_had_is_done_again(
    cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOLDER", str(tmp_path))
    monkeypatch.setattr(scheduler, "_SETTINGS", ("FOLDER",))
    killed = list[int]()

    def kill() -> None:
        killed.append(int(wait_for(tmp_path / "1 of 2")))
        os.kill(killed[0], signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    found, results = run_shares(cluster.scheduler_address, PLAN, DIGEST, run=hang_once)
    thread.join()
    assert killed
    assert [each.shard for each in found] == ["1/2", "2/2"]
    assert names(results) == sorted(portable(FORK))
    assert all(each.code == 0 and "diff --git" in each.output for each in found)


def test_a_command_prints_what_its_shares_print(
    cluster: LocalCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "results.json"
    assert main([*PLAN, "--json", "--scheduler", cluster.scheduler_address, "--results", str(file)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(portable(FORK))
    assert names(read_json(file.read_text(), "results.json")) == sorted(portable(FORK))


def test_a_share_of_another_fork_is_refused(cluster: LocalCluster) -> None:
    with pytest.raises(PorterError, match=r"PTR355.*another fork"):
        run_shares(cluster.scheduler_address, PLAN, "0" * 64)


def test_a_share_that_ends_without_results_is_refused(cluster: LocalCluster) -> None:
    with pytest.raises(PorterError, match=r"PTR355.*ended with 2"):
        run_shares(cluster.scheduler_address, ("migrate", "--nothing"), DIGEST)


def change(share: Share) -> ShareResult:
    made = ShareResult(share.shard, 0, "", "", "{}", "")
    return replace(made, digest=made.digest_content(), output="changed")


def test_a_result_that_is_not_what_was_computed_is_refused(cluster: LocalCluster) -> None:
    with pytest.raises(PorterError, match=r"PTR355.*not what its worker computed"):
        run_shares(cluster.scheduler_address, ("changed",), DIGEST, run=change)


def test_no_scheduler_and_no_package_are_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "CONNECT_SECONDS", 1)
    with pytest.raises(PorterError, match="PTR354 no scheduler answers"):
        run_shares("tcp://127.0.0.1:1", PLAN, DIGEST)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(PorterError, match=r"PTR354 dask\.distributed is not installed"):
        run_shares("tcp://127.0.0.1:1", PLAN, DIGEST)


def test_a_key_is_of_all_that_the_result_depends_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORTER_FAMILY", "apple8")
    [share] = make_shares(PLAN, DIGEST, 1)
    others = (
        replace(share, arguments=("verify",)),
        replace(share, shard="1/2"),
        replace(share, digest=""),
        replace(share, settings=()),
    )
    assert len({share.key, *(each.key for each in others)}) == 5
    assert make_shares(PLAN, DIGEST, 1) == (share,)


@pytest.mark.parametrize("others", [["--write"], ["--shard", "1/2"], ["--pull-request"]])
def test_what_one_machine_does_alone_is_no_share(others: list[str]) -> None:
    assert main([*PLAN, *others, "--scheduler", "tcp://127.0.0.1:1"]) == 2
    assert main(["verify", "atan2", "--scheduler", "tcp://127.0.0.1:1"]) == 2


@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:1", "127.0.0.1:1", "localhost:1", "tcp://[::1]:1", "tcp://127.9.9.9:1"]
)
def test_an_address_of_this_machine_is_one(address: str) -> None:
    assert is_loopback(address)


@pytest.mark.parametrize(
    "address",
    ["tcp://10.0.0.1:1", "example.org:1", "tcp://0.0.0.0:1", "127.0.0.1.example.org:1", "tcp://localhost@evil:1", "", "//",
     "tcp://[::", "tls://10.0.0.1:1", "tls://127.0.0.1:1"],
)  # fmt: skip
def test_an_address_that_others_speak_for_is_refused_before_anything_is_sent(address: str) -> None:
    with pytest.raises(PorterError) as caught:
        run_shares(address, PLAN, DIGEST)
    assert caught.value.code == "PTR357"


def test_an_insecure_address_is_taken_when_that_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(scheduler, "CONNECT_SECONDS", 1)
    command = [*PLAN, "--scheduler", "tcp://192.0.2.1:1"]
    assert main(command) == 2
    assert "PTR357" in capsys.readouterr().err
    assert main([*command, "--insecure"]) == 2
    assert "PTR354" in capsys.readouterr().err


class Trap:
    """Leaves a trace where it is unpickled."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.trace,)


@pytest.mark.parametrize(("wire", "runs"), [(scheduler._WIRE, False), ("pickle", True)])
def test_a_result_that_would_be_unpickled_is_refused(
    wire: str, runs: bool, cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(_run: object, _share: Share) -> Trap:
        return Trap(tmp_path / "trace")

    monkeypatch.setattr(scheduler, "answer_share", answer)
    monkeypatch.setattr(scheduler, "_WIRE", wire)
    with pytest.raises(PorterError, match="PTR355"):
        run_shares(cluster.scheduler_address, (f"a trap for {wire}",), DIGEST)
    assert (tmp_path / "trace").exists() is runs


@pytest.mark.parametrize("answer", ["", "{}", "[" * 100_000, '{"shard": 1}'])
def test_an_answer_that_is_none_is_refused(answer: str) -> None:
    [share] = make_shares(PLAN, DIGEST, 1)
    with pytest.raises(PorterError, match="PTR355"):
        scheduler._read_answer(share, answer)
