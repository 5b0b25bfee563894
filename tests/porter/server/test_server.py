from __future__ import annotations

import os
import platform
import signal
import socket
import stat
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from porter.core.checkout import EMBEDDED_FORK
from porter.core.errors import PorterError
from porter.server import server as serve
from porter.server import worker as work
from porter.verdict import client as server
from porter.verdict import result as verdict
from porter.verdict.backends import backends as rooms
from porter.verdict.result import ListEntry, VerifyTarget
from porter.verdict.verify import verify

TARGET = VerifyTarget(
    "atan2", kernels=("atan2",), pairs=(("int", "float"),), removed=(ListEntry("f", "L", "e", ("x",)),)
)
ASKED = {
    "what": server.VERDICT,
    "root": "/",
    "texts": {},
    "target": asdict(TARGET),
    "expr": None,
    "backend": "kernels",
    "arithmetic": "default",
}

Verify = Callable[..., work.Judged]


def passing(root: Path, texts: object, target: VerifyTarget, run: work.Run, tell: Callable[[str], None]) -> Any:
    return work.Judged(verdict.Verdict(target.base, run.backend, run.arithmetic, 3, 0, 0, 7, None, 0.5))


def test_a_target_round_trips_through_json() -> None:
    import json

    assert serve.target_from(json.loads(json.dumps(asdict(TARGET)))) == TARGET


def test_every_arithmetic_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "verdict", passing)
    found = serve.answer({**ASKED, "arithmetic": "all"})
    assert found["arithmetic"] == "default+fused+flush+reorder"
    assert (found["ok"], found["kernel_calls"]) == (True, 28)


def test_the_mps_backend_runs_without_a_fork_and_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[tuple[int, work.Run]] = []

    def noting(root: Path, texts: object, target: VerifyTarget, run: work.Run, tell: Callable[[str], None]) -> Any:
        runs.append((os.getpid(), run))
        return passing(root, texts, target, run, tell)

    monkeypatch.setattr(work, "verdict", noting)
    found = serve.answer({**ASKED, "backend": "mps"})
    assert runs == [(os.getpid(), work.Run(None, "mps", "default"))]
    assert found["where"] == "mps (not yet run on Apple hardware)"


def test_where_there_is_no_apple_gpu_the_backend_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PorterError, match="PTR171 there is no Apple GPU here"):
        verify(EMBEDDED_FORK, {}, VerifyTarget("exp", kernels=("exp",)), backend="mps")


@pytest.mark.parametrize(
    ("system", "machine", "backend"),
    [("linux", "x86_64", "host"), ("darwin", "arm64", "mps"), ("darwin", "x86_64", "kernels")],
)
def test_the_most_complete_backend_is_the_default(
    system: str, machine: str, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    assert rooms.chosen("auto") == backend


def test_a_dead_worker_is_a_failed_verdict_naming_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    def dying(root: Path, texts: object, target: VerifyTarget, run: work.Run, tell: Callable[[str], None]) -> Any:
        tell("test_out_atan2_mps_int8")
        os.kill(os.getpid(), signal.SIGSEGV)

    monkeypatch.setattr(work, "verdict", dying)
    found = serve.answer(ASKED)
    assert not found["ok"]
    assert found["failures"][-1]["test"] == "test_out_atan2_mps_int8"
    assert "SIGSEGV" in found["failures"][-1]["reason"]


def test_a_dead_preparation_reports_its_last_output(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"what": server.PREPARATION, "root": "/", "backend": "host"}
    monkeypatch.setattr(work, "prepare", lambda root: None)
    assert serve.answer(asked) == {}
    monkeypatch.setattr(work, "prepare", lambda root: os.kill(os.getpid(), signal.SIGKILL))
    found = serve.answer(asked)
    assert (found["code"], "the preparation ended" in found["error"], "SIGKILL" in found["error"]) == (
        "PTR170", True, True
    )  # fmt: skip


def test_a_refusal_is_an_error_with_its_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(*_: Any) -> Any:
        raise PorterError("PTR170", "no", hint="try this")

    monkeypatch.setattr(work, "verdict", refusing)
    assert serve.answer(ASKED) == {"error": "no", "code": "PTR170", "hint": "try this"}


def test_the_socket_answers_and_closes_when_outdated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(work, "verdict", passing)
    monkeypatch.setattr(serve, "LOOK_SECONDS", 0.05)
    current = ["kernels-1"]
    monkeypatch.setattr(server, "fingerprint", lambda backend: current[0])
    path = tmp_path / "socket"
    thread = threading.Thread(target=serve.serve, args=(path, "kernels-1"))
    thread.start()
    while not path.exists():
        assert thread.is_alive()
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(str(path))
        assert server.exchange(link, ASKED)["passed"] == 3
    current[0] = "kernels-2"
    thread.join(30)
    assert not thread.is_alive() and not path.exists()


def test_the_directory_is_private(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    folder = server.private_directory()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o755)
    with pytest.raises(PorterError, match="not private"):
        server.private_directory()


def test_the_fingerprint_follows_the_settings_and_the_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    before = server.fingerprint("host")
    assert server.fingerprint("host") == before != server.fingerprint("kernels")
    monkeypatch.setenv("PORTER_CACHE", "/elsewhere")
    assert server.fingerprint("host") != before


def test_unknown_backends_and_arithmetics_are_refused(tmp_path: Path) -> None:
    for given in ({"backend": "cuda"}, {"arithmetic": "exact"}, {"backend": "mps", "arithmetic": "all"}):
        with pytest.raises(PorterError) as refused:
            verify(tmp_path, {}, TARGET, **given)
        assert refused.value.code == "PTR171"
