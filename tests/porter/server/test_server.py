"""Requests are answered by processes of their own, and what ends one of them is said."""

from __future__ import annotations

import contextlib
import os
import platform
import signal
import site
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aten_overlay.errors import OverlayError
from porter.core.checkout import EMBEDDED_FORK
from porter.core.errors import Place, PorterError
from porter.core.progress import Progress
from porter.server import server, worker
from porter.server.worker import RunOptions
from porter.verdict import client
from porter.verdict.backends.choice import choose_backend
from porter.verdict.messages import (
    Answer,
    ErrorAnswer,
    PrepareAnswer,
    PrepareRequest,
    RecordAnswer,
    RecordRequest,
    VerdictAnswer,
    VerifyRequest,
    encode_line,
    encode_request,
)
from porter.verdict.result import ListEntry, Verdict, VerifyTarget
from porter.verdict.verify import verify

TARGET = VerifyTarget(
    "atan2", kernels=("atan2",), pairs=(("int", "float"),), removed=(ListEntry("f", "L", "e", ("x",)),)
)
REQUEST = VerifyRequest(Path("/"), {}, TARGET, None, "kernels", "default")


def passing(
    root: Path, earlier: object, texts: object, target: VerifyTarget, options: RunOptions, progress: Progress
) -> VerdictAnswer:
    assert target == TARGET
    progress("every test")
    return VerdictAnswer(Verdict(target.base, options.backend, options.arithmetic, 3, 0, 0, 7, None, 0.5))


def verdict_of(answer: Answer) -> Verdict:
    assert isinstance(answer, VerdictAnswer), answer
    return answer.verdict


def test_every_arithmetic_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "verify", passing)
    found = verdict_of(server.answer(replace(REQUEST, arithmetic="all")))
    assert found.arithmetic == "default+fused+flush+reorder"
    assert (found.ok, found.kernel_calls) == (True, 28)


def test_the_mps_backend_runs_without_a_fork_and_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[tuple[int, RunOptions]] = []

    def noting(
        root: Path, earlier: object, texts: object, target: VerifyTarget, options: RunOptions, progress: Progress
    ) -> Any:
        runs.append((os.getpid(), options))
        return passing(root, earlier, texts, target, options, progress)

    monkeypatch.setattr(worker, "verify", noting)
    found = verdict_of(server.answer(replace(REQUEST, backend="mps")))
    assert runs == [(os.getpid(), RunOptions(None, "mps", "default"))]
    assert found.where == "mps (not yet run on Apple hardware)"


def test_where_there_is_no_apple_gpu_the_backend_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PorterError, match="PTR171 no Apple GPU is available"):
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
    assert backend == choose_backend("auto").NAME


def test_a_dead_worker_is_a_failed_verdict_naming_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    def dying(
        root: Path, earlier: object, texts: object, target: VerifyTarget, options: RunOptions, progress: Progress
    ) -> Any:
        progress("test_out_atan2_mps_int8")
        os.kill(os.getpid(), signal.SIGSEGV)

    monkeypatch.setattr(worker, "verify", dying)
    heard: list[str] = []
    found = verdict_of(server.answer(REQUEST, heard.append))
    assert not found.ok
    assert found.failures[-1].test == "test_out_atan2_mps_int8" == heard[-1]
    assert "SIGSEGV" in found.failures[-1].reason


def test_a_dead_preparation_reports_its_last_output(monkeypatch: pytest.MonkeyPatch) -> None:
    request = PrepareRequest(Path("/"), "host")
    monkeypatch.setattr(worker, "prepare", lambda root, backend: None)
    assert server.answer(request) == PrepareAnswer()
    monkeypatch.setattr(worker, "prepare", lambda root, backend: os.kill(os.getpid(), signal.SIGKILL))
    found = server.answer(request)
    assert isinstance(found, ErrorAnswer)
    assert (found.code, "the preparation failed" in found.what, "SIGKILL" in found.what) == ("PTR170", True, True)


def test_old_code_that_dies_is_an_error_that_names_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def dying(root: Path, earlier: object, target: VerifyTarget, macos: str, progress: Progress) -> Any:
        progress("recording")
        os._exit(3)

    monkeypatch.setattr(worker, "record", lambda root, earlier, target, macos, progress: "[]")
    assert server.answer(RecordRequest(Path("/"), TARGET, "14.4")) == RecordAnswer()
    monkeypatch.setattr(worker, "record", dying)
    found = server.answer(RecordRequest(Path("/"), TARGET, ""))
    told = "the old implementation crashed during recording: the process exited with code 3\n"
    assert found == ErrorAnswer("PTR137", told)


def test_a_refusal_is_an_error_with_its_place_and_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(*_: Any) -> Any:
        raise PorterError("PTR172", "no", Place("a/b.yaml", 7), hint="try this")

    monkeypatch.setattr(worker, "verify", refusing)
    assert server.answer(REQUEST) == ErrorAnswer("PTR172", "no", Place("a/b.yaml", 7), "try this")


def test_a_fault_of_porter_s_own_is_an_error_with_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "verify", lambda *_: [][1])
    found = server.answer(REQUEST)
    assert isinstance(found, ErrorAnswer)
    assert found.what.startswith("internal error: IndexError") and "in act_here" in found.what


def test_the_socket_answers_and_closes_when_outdated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(worker, "verify", passing)
    monkeypatch.setattr(server, "LOOK_SECONDS", 0.05)
    current = ["kernels-1"]
    monkeypatch.setattr(client, "fingerprint", lambda backend: current[0])
    path = tmp_path / "socket"
    thread = threading.Thread(target=server.serve, args=(path, "kernels-1"))
    thread.start()
    while not path.exists():
        assert thread.is_alive()
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(str(path))
        heard: list[str] = []
        assert verdict_of(client.exchange(link, REQUEST, heard.append)).passed == 3
        assert heard == ["every test", "every test"]
    current[0] = "kernels-2"
    thread.join(30)
    assert not thread.is_alive() and not path.exists()


def test_what_is_no_request_is_answered_by_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        found = server._answer_line(b"{}\n", theirs)
    assert isinstance(found, ErrorAnswer) and "KeyError" in found.what


def test_an_error_keeps_its_place_on_the_way_to_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = ErrorAnswer("PTR166", "no member", Place("a/BinaryKernel.mm", 7), "mend it")
    monkeypatch.setattr(client, "_ask_server", lambda request, progress: answer)
    with pytest.raises(PorterError) as refused:
        client.request_verdict(REQUEST)
    assert str(refused.value) == "a/BinaryKernel.mm:7: PTR166 no member\n  mend it"


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder with a short path, as runtime folders have, which pytest's own are not."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


def test_the_directory_is_private(monkeypatch: pytest.MonkeyPatch, short: Path) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short))
    folder = client.private_directory()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o755)
    assert stat.S_IMODE(client.private_directory().stat().st_mode) == 0o700
    (folder / "socket").touch()
    folder.chmod(0o777)
    with pytest.raises(PorterError, match="PTR180"):
        client.private_directory()


def test_a_folder_that_is_a_link_of_the_user_s_own_is_used(monkeypatch: pytest.MonkeyPatch, short: Path) -> None:
    (short / "real").mkdir()
    (short / "link").symlink_to(short / "real")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short / "link"))
    assert client.private_directory().resolve() == short / "real" / "porter"


def test_a_long_runtime_folder_leaves_room_for_the_socket_s_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / ("x" * 90)))
    monkeypatch.setattr(client, "make_private", lambda folder: folder)
    folder = client.private_directory()
    assert len(str(folder / f"kernels-{'0' * 24}.lock")) <= 103


def test_a_second_server_leaves_the_first_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "socket"
    claim = server._claim(path)
    assert claim is not None
    listener = server._listen(path)
    server.serve(path, "kernels-1", preload=lambda: pytest.fail("it imports nothing"))
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(str(path))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["socket", "socket.lock"]
    os.close(claim)
    listener.close()


def test_the_socket_of_a_server_that_was_killed_is_replaced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "socket"
    server._listen(path).close()
    (tmp_path / "socket.new").touch()
    listener = server._listen(path)
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(str(path))
    listener.close()
    assert [each.name for each in tmp_path.iterdir()] == ["socket"]


def test_what_ended_servers_left_is_removed_and_others_stay(tmp_path: Path) -> None:
    for name in ("old", "living", "new"):
        for suffix in ("", ".log", ".lock"):
            (tmp_path / f"{name}{suffix}").touch()
    claim = server._claim(tmp_path / "living")
    for name in ("old", "living"):
        os.utime(tmp_path / f"{name}.lock", (0, 0))
    server._sweep(tmp_path / "socket")
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "living",
        "living.lock",
        "living.log",
        "new",
        "new.lock",
        "new.log",
    ]
    assert claim is not None
    os.close(claim)


def test_host_code_that_writes_to_any_descriptor_changes_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    forged = encode_line(VerdictAnswer(Verdict("atan2", "kernels", "default", 999, 0, 0, 7, None, 0.5)))

    def straying(
        root: Path, earlier: object, texts: object, target: VerifyTarget, options: RunOptions, progress: Progress
    ) -> Any:
        for handle in range(3, 1024):
            with contextlib.suppress(OSError):
                if stat.S_ISREG(os.fstat(handle).st_mode):
                    continue  # where pytest's own output goes
                for stray in (b"garbage", forged, b"\n", forged[:-1]):
                    os.write(handle, stray)
        return passing(root, earlier, texts, target, options, progress)

    ours, theirs = socket.socketpair()
    monkeypatch.setattr(worker, "verify", straying)
    with ours, theirs:
        heard: list[str] = []
        assert verdict_of(server.answer(REQUEST, heard.append)).passed == 3
        assert heard == ["every test", "every test"]
        ours.setblocking(False)
        with pytest.raises(BlockingIOError):
            ours.recv(1)


def test_the_answer_of_a_process_of_its_own_is_all_that_it_prints() -> None:
    """In a process of the test's own: at its end it ends all that it started, as other tests of a worker have."""
    program = """
import os, sys
from porter.server import server, worker
from porter.verdict.messages import PrepareAnswer

def printing(*_):
    os.write(1, b"noise")
    return PrepareAnswer()

worker.preload = lambda backend: None
server.answer = printing
sys.argv = ["server", "--once"]
sys.exit(server.main())
"""
    request = encode_request(PrepareRequest(Path("/"), "host"))
    done = subprocess.run([sys.executable, "-c", program], input=request, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, encode_line(PrepareAnswer())), done.stderr.decode()
    assert done.stderr.endswith(b"noise")


FULL = OverlayError("PTR182", "the system refused: No space left on device", hint="Make room.")


def refuse(_backend: str) -> None:
    raise FULL


def test_a_server_that_cannot_start_says_why_with_the_code_of_its_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """A traceback of the device's stood there, under PTR170."""
    monkeypatch.setattr(worker, "preload", refuse)
    monkeypatch.setattr(sys, "argv", ["server", str(tmp_path / "socket"), "host-1", "host"])
    assert server.main() == 1
    log = tmp_path / "log"
    log.write_bytes(b"what a server before it said\n" + capfdbinary.readouterr().err)
    error = client._read_refusal(log)
    assert (error.code, error.what, error.hint) == (FULL.code, FULL.what, FULL.hint)
    log.write_bytes(b"Traceback\nSegmentation fault\n")
    assert client._read_refusal(log).code == "PTR170"


def test_a_process_that_cannot_start_answers_with_its_error() -> None:
    program = """
import sys
from aten_overlay.errors import OverlayError
from porter.server import server, worker

def refuse(backend):
    raise OverlayError("PTR182", "the system refused: No space left on device", hint="Make room.")

worker.preload = refuse
sys.argv = ["server", "--once"]
sys.exit(server.main())
"""
    request = encode_request(PrepareRequest(Path("/"), "host"))
    done = subprocess.run([sys.executable, "-c", program], input=request, capture_output=True, check=False)
    assert done.stdout == encode_line(ErrorAnswer(FULL.code, FULL.what, hint=FULL.hint)), done.stderr.decode()


def test_every_name_of_an_environments_interpreter_has_one_server(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`python` and `python3` of one environment recorded twice, and had a server each."""
    before = client.fingerprint("host")
    for name in ("python", "python3"):
        (tmp_path / name).symlink_to(sys.executable)
        monkeypatch.setattr(sys, "executable", str(tmp_path / name))
        assert client.fingerprint("host") == before


def test_environments_that_share_an_interpreter_have_servers_of_their_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By their prefix, and by what is installed in it, which changes."""
    packages = tmp_path / "site-packages"
    packages.mkdir()
    monkeypatch.setattr(site, "getsitepackages", lambda: [str(packages)])
    seen = [client.fingerprint("host")]
    (packages / "numpy-2.0.dist-info").mkdir()
    seen.append(client.fingerprint("host"))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    seen.append(client.fingerprint("host"))
    assert len(set(seen)) == 3


def test_the_fingerprint_follows_the_settings_and_the_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    before = client.fingerprint("host")
    assert client.fingerprint("host") == before != client.fingerprint("kernels")
    monkeypatch.setenv("PORTER_CACHE", "/elsewhere")
    assert client.fingerprint("host") != before


def test_unknown_backends_and_arithmetics_are_refused(tmp_path: Path) -> None:
    for backend, arithmetic in (("cuda", "default"), ("auto", "exact"), ("mps", "all")):
        with pytest.raises(PorterError) as refused:
            verify(tmp_path, {}, TARGET, backend=backend, arithmetic=arithmetic)
        assert refused.value.code == "PTR171"
