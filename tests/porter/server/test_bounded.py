"""Whatever a worker does, it is ended in time, with all that it started, and the verdict says what it was doing."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

from porter.core.errors import PorterError
from porter.core.progress import Progress
from porter.server import ending, server, worker
from porter.server.ending import end_tree
from porter.server.process import End, Process, wait
from porter.verdict import client
from porter.verdict.limits import Limits, read_limits
from porter.verdict.messages import (
    Answer,
    ErrorAnswer,
    PrepareAnswer,
    RecordRequest,
    Request,
    VerdictAnswer,
    VerifyRequest,
    encode_request,
)
from porter.verdict.result import VerifyTarget

SHORT = {"PORTER_TEST_SECONDS": "0.3"}
UNLIMITED = {"PORTER_TEST_SECONDS": "1e6", "PORTER_VERDICT_SECONDS": "1e6"}
REQUEST = VerifyRequest(Path("/"), {}, VerifyTarget("atan2"), None, "kernels", "default", SHORT)


def hang(*_: Any) -> NoReturn:
    while True:
        time.sleep(60)


def ended(end: End) -> Answer:
    return ErrorAnswer("PTR170", f"{end.step}: {end.how}")


def is_alive(process: int) -> bool:
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return fields[0] != "Z"


def wait_until_gone(processes: list[int]) -> None:
    while any(map(is_alive, processes)):
        time.sleep(0.01)


@pytest.fixture
def note(tmp_path: Path) -> Iterator[Path]:
    """Where processes write their numbers, a line each: none may be left."""
    path = tmp_path / "processes"
    path.touch()
    yield path
    for number in numbers(path):
        if is_alive(number):
            os.kill(number, signal.SIGKILL)


def numbers(path: Path) -> list[int]:
    return [int(line) for line in path.read_text().splitlines()]


def sign(path: Path) -> None:
    with path.open("a") as file:
        file.write(f"{os.getpid()}\n")


def forked(path: Path, *, leaves_group: bool = False) -> None:
    """A child that hangs, as host code may fork one."""
    ready, done = os.pipe()
    if os.fork() == 0:
        if leaves_group:
            os.setsid()
        sign(path)
        os.write(done, b".")
        hang()
    os.read(ready, 1)
    os.close(ready)
    os.close(done)


def test_a_test_that_hangs_fails_the_verdict_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def hanging(root: Path, earlier: Any, texts: Any, target: Any, options: Any, progress: Progress) -> Any:
        progress("test_out_atan2_mps_int8")
        hang()

    monkeypatch.setattr(worker, "verify", hanging)
    found = server.answer(REQUEST)
    assert isinstance(found, VerdictAnswer) and not found.verdict.ok
    assert {failure.test for failure in found.verdict.failures} == {"test_out_atan2_mps_int8"}
    told = "PTR175 test_out_atan2_mps_int8 took longer than 0.3 s and was ended"
    assert found.verdict.failures[-1].reason == told


def test_every_test_has_the_whole_limit_and_a_build_none() -> None:
    limits = Limits(test=1, verdict=5)
    assert [limits.of_step(step) for step in ("test_a", "samples of x float32", "build")] == [1, 1, float("inf")]


def test_a_verdict_that_hangs_in_its_build_fails_by_the_limit_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def hanging(root: Path, earlier: Any, texts: Any, target: Any, options: Any, progress: Progress) -> Any:
        progress("build")
        hang()

    monkeypatch.setattr(worker, "verify", hanging)
    found = server.answer(replace(REQUEST, environment={"PORTER_VERDICT_SECONDS": "0.3"}))
    assert isinstance(found, VerdictAnswer)
    told = "PTR175 the verdict, in build, took longer than 0.3 s and was ended"
    assert (found.verdict.failures[-1].test, found.verdict.failures[-1].reason) == ("build", told)


def test_old_code_that_hangs_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "record", hang)
    found = server.answer(
        RecordRequest(Path("/"), VerifyTarget("x"), "", environment={"PORTER_VERDICT_SECONDS": "0.3"})
    )
    told = "the verdict, in worker, took longer than 0.3 s and was ended"
    assert found == ErrorAnswer("PTR175", told)


@pytest.mark.parametrize("text", ["soon", "0", "-1", "inf", "nan"])
def test_a_limit_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(PorterError, match=f"PTR176 .PORTER_TEST_SECONDS is {text}, not a number of seconds"):
        read_limits({"PORTER_TEST_SECONDS": text})


@pytest.mark.parametrize("leaves_group", [False, True])
def test_children_of_a_worker_that_hangs_are_ended(note: Path, leaves_group: bool) -> None:
    def act(progress: Progress) -> Answer:
        sign(note)
        forked(note, leaves_group=leaves_group)
        progress("test_x")
        hang()

    answer = wait([Process(act, ended, Limits(test=0.3))])[0]
    assert isinstance(answer, ErrorAnswer) and "test_x took longer than 0.3 s" in answer.what
    assert len(numbers(note)) == 2
    wait_until_gone(numbers(note))


def test_children_of_a_worker_that_answers_are_ended_and_not_waited_for(note: Path) -> None:
    def act(_: Progress) -> Answer:
        forked(note)
        return PrepareAnswer()

    assert wait([Process(act, ended)])[0] == PrepareAnswer()
    wait_until_gone(numbers(note))


def test_a_worker_that_dies_is_noticed_while_its_child_holds_the_pipe(note: Path) -> None:
    def act(_: Progress) -> Answer:
        forked(note)
        os._exit(7)

    answer = wait([Process(act, ended)])[0]
    assert isinstance(answer, ErrorAnswer) and "code 7" in answer.what
    wait_until_gone(numbers(note))


def test_the_clock_of_one_process_runs_while_another_is_waited_for(note: Path) -> None:
    def waits(_: Progress) -> Answer:
        while not note.read_text():
            time.sleep(0.01)
        return PrepareAnswer()

    def hangs(progress: Progress) -> Answer:
        progress("test_x")
        hang()

    def end_other(end: End) -> Answer:
        sign(note)  # only now can the first one answer
        return ended(end)

    answers = wait([Process(waits, ended), Process(hangs, end_other, Limits(test=0.3))])
    assert isinstance(answers[1], ErrorAnswer)
    assert answers[0] == PrepareAnswer()
    note.write_text("")


def test_what_waits_and_is_interrupted_leaves_no_worker(note: Path) -> None:
    def act(progress: Progress) -> Answer:
        sign(note)
        progress("test_x")
        hang()

    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wait([Process(act, ended)], interrupt)
    wait_until_gone(numbers(note))


def test_what_is_no_child_is_neither_stopped_nor_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of a process that was waited for may be another's, and 0 would stand for every process there is."""
    over = os.fork()
    if over == 0:
        os._exit(0)
    os.waitpid(over, 0)
    sent: list[int] = []
    monkeypatch.setattr(os, "kill", lambda process, _: sent.append(process))
    monkeypatch.setattr(os, "killpg", lambda group, _: sent.append(group))
    for process in (0, 1, os.getpid(), os.getppid(), over):
        with pytest.raises(ValueError, match="is no child"):
            end_tree(process)
    assert sent == []


@pytest.mark.parametrize("method", ["stat", "read_text"])
def test_a_process_that_ends_while_all_are_listed_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    for name in ("7", "8", "9"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "stat").write_text(f"{name} (a) b) S 5 {name} {name}")
    (tmp_path / "8" / "stat").unlink()
    of_path = getattr(Path, method)

    def vanish(path: Path, **named: Any) -> Any:
        if "9" in path.parts:
            raise ProcessLookupError(path)
        return of_path(path, **named)

    monkeypatch.setattr(ending, "_PROC", tmp_path)
    monkeypatch.setattr(Path, method, vanish)
    assert sorted(ending._children()[5]) == ([7] if method == "read_text" else [7, 9])


def test_closing_twice_signals_once(monkeypatch: pytest.MonkeyPatch) -> None:
    process = Process(lambda _: os._exit(3), ended)
    assert isinstance(wait([process])[0], ErrorAnswer)
    monkeypatch.setattr(os, "kill", lambda *_: pytest.fail("its number may be another's"))
    monkeypatch.setattr(os, "killpg", lambda *_: pytest.fail("its number may be another's"))
    process.close()
    process.look(lambda _: None)


def test_a_worker_ends_with_the_process_that_forked_it(note: Path) -> None:
    def act(progress: Progress) -> Answer:
        sign(note)
        hang()

    parent = os.fork()
    if parent == 0:
        Process(act, ended)
        hang()
    while not numbers(note):
        time.sleep(0.01)
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    wait_until_gone(numbers(note))


def test_a_client_that_leaves_ends_its_workers_and_their_children(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, note: Path
) -> None:
    def hanging(root: Path, earlier: Any, texts: Any, target: Any, options: Any, progress: Progress) -> Any:
        if os.fork() == 0:  # a daemon, whose parent ends
            os.setsid()
            forked(note, leaves_group=True)
            os._exit(0)
        while not numbers(note):
            time.sleep(0.01)
        sign(note)
        progress("test_x")
        hang()

    monkeypatch.setattr(worker, "verify", hanging)
    path = tmp_path / "socket"
    serving = os.fork()  # no thread: what it forks would hold the client's end of the connection
    if serving == 0:
        server.serve(path, "kernels-1")
    while not path.exists():
        time.sleep(0.01)
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(str(path))
        link.sendall(encode_request(replace(REQUEST, environment=UNLIMITED)))
        assert b"test_x" in link.makefile("rb").readline()
    wait_until_gone(numbers(note))
    os.kill(serving, signal.SIGKILL)
    os.waitpid(serving, 0)


def test_a_server_answers_with_the_environment_that_was_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """As C code sees it, since Metal's API validation asks getenv."""

    def telling(*_: Any) -> Any:
        value = ctypes.CDLL(None)
        value.getenv.restype = ctypes.c_char_p
        raise PorterError("PTR172", repr([value.getenv(b"MTL_DEBUG_LAYER"), value.getenv(b"MTL_OTHER")]))

    monkeypatch.setattr(worker, "verify", telling)
    monkeypatch.setenv("MTL_DEBUG_LAYER", "0")
    told = [ask_as_server({}), ask_as_server({"MTL_OTHER": "1", "HOME": "/x"}), ask_as_server({"MTL_DEBUG_LAYER": "2"})]
    assert told == ["[None, None]", "[None, b'1']", "[b'2', None]"]
    assert os.environ["MTL_DEBUG_LAYER"] == "0" and os.environ["HOME"] != "/x"


def ask_as_server(environment: dict[str, str]) -> str:
    """What the child of a server that handles a connection answers."""
    ours, theirs = socket.socketpair()
    with socket.socket() as listener, ours:
        server._handle(theirs, listener, os.open(os.devnull, os.O_RDONLY))
        answer = client.exchange(ours, replace(REQUEST, environment=environment))
    os.wait()
    assert isinstance(answer, ErrorAnswer)
    return answer.what


def test_a_client_sends_what_is_read_when_run_and_asks_by_what_was_read_before(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Request] = []

    def keep(request: Request, _: Progress) -> Answer:
        sent.append(request)
        return PrepareAnswer()

    monkeypatch.setattr(client, "_ask_server", keep)
    monkeypatch.delenv(client.NO_SERVER, raising=False)
    before = client.fingerprint("host")
    monkeypatch.setenv("MTL_DEBUG_LAYER", "0")
    client.ask(REQUEST)
    assert sent[0].environment["MTL_DEBUG_LAYER"] == "0" and "HOME" not in sent[0].environment
    assert client.fingerprint("host") == before
    monkeypatch.setenv("PYTORCH_ENABLE_MPS_FALLBACK", "1")
    assert client.fingerprint("host") != before


def test_a_process_of_its_own_that_is_interrupted_leaves_no_worker(note: Path) -> None:
    program = f"""
import os, signal, sys, time
from pathlib import Path
from porter.server import server, worker

def hanging(*_):
    with open({str(note)!r}, "a") as file:
        file.write(f"{{os.getpid()}}\\n")
    time.sleep(600)

worker.preload = lambda backend: None
worker.verify = hanging
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background has its programs ignore it
sys.argv = ["server", "--once"]
server.main()
"""
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdin
        process.stdin.write(encode_request(replace(REQUEST, environment=UNLIMITED)))
        process.stdin.close()
        while len(numbers(note)) < 2:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
    wait_until_gone(numbers(note))
