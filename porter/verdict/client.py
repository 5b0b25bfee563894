"""The client of the verdict server: finds or starts the server and sends it requests.

The server keeps torch, the OpInfos and the device imported and forks for every request. There is one per user and
environment: its socket is named by a digest of that environment, torch and porter's own files, so that a change to any
of them starts a new server, and the old one exits.
"""

from __future__ import annotations

import os
import selectors
import site
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from porter.core import cache
from porter.core.cache import digest, require_writable
from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.core.layout import DEVICE, KERNELS, METAL_HEADERS, MPS, NATIVE_FUNCTIONS, OPERATIONS, TEST_LISTS
from porter.core.private import make_private
from porter.core.progress import Progress, ignore
from porter.core.python import EXECUTABLE, PACKAGES, own_module
from porter.verdict import client, limits
from porter.verdict.errors import NoVerdict
from porter.verdict.limits import Limits, out_of_time, read_limits
from porter.verdict.messages import (
    Answer,
    BuildAnswer,
    BuildRequest,
    ErrorAnswer,
    PrepareRequest,
    RecordAnswer,
    RecordRequest,
    Request,
    StepStarted,
    VerdictAnswer,
    VerifyRequest,
    answer_of_error,
    decode_line,
    encode_request,
    error_of_answer,
)
from porter.verdict.result import Verdict

START_SECONDS = 600.0  # the very first start builds the device
NO_SERVER = "PORTER_NO_SERVER"
COMMANDS = "commands"  # in a backend's place, the server that runs commands
SERVER = "porter.server.server"
LONGEST_FOLDER = 66  # bytes; with a socket's name within the 103 that every system takes
_WATCHED = ("porter", "aten_overlay")
_CODE = (".py", ".h", ".cpp", ".mm", ".m", ".yaml")


def request_verdict(request: VerifyRequest, progress: Progress = ignore) -> Verdict:
    """Requests a verdict. Raises as `ask` does."""
    answer = ask(request, progress)
    assert isinstance(answer, VerdictAnswer)
    return answer.verdict


def request_recording(request: RecordRequest, progress: Progress = ignore) -> str:
    """Requests recordings or programs, as text. Raises PTR136 to PTR138, build errors, and as `ask` does."""
    answer = ask(request, progress)
    assert isinstance(answer, RecordAnswer)
    return answer.text


def request_build(request: BuildRequest) -> BuildAnswer:
    """Requests a library of many operators. Raises as `ask` does."""
    answer = ask(request)
    assert isinstance(answer, BuildAnswer)
    return answer


def request_preparation(request: PrepareRequest, progress: Progress = ignore) -> None:
    """Waits until everything is built. Raises build errors, and as `ask` does."""
    ask(request, progress)


def ask(request: Request, progress: Progress = ignore) -> Answer:
    """Sends a request and returns the answer. The server reports steps to `progress`.

    If `$PORTER_NO_SERVER` is set, and on hardware, which a forked process cannot use, a new process answers and
    reports no steps. Raises PTR170 if no process answers, PTR176 for invalid limits, PTR182 for a read-only cache, and
    the error in the answer.
    """
    require_writable()
    request = complete(request)
    limits = read_limits(request.environment)
    on_hardware = _is_on_hardware(request)
    alone = os.environ.get(NO_SERVER) or on_hardware
    seconds = limits.verdict if on_hardware else None  # a server's process limits itself those that it forks
    answer = _ask_process(request, seconds) if alone else _ask_server(request, progress)
    if isinstance(answer, ErrorAnswer):
        raise error_of_answer(answer)
    return answer


def _is_on_hardware(request: Request) -> bool:
    from porter.verdict.backends.choice import (
        BACKENDS,
    )  # here: what runs a command elsewhere needs none, nor does the cache

    return BACKENDS[request.backend].ON_HARDWARE


def complete(request: Request) -> Request:
    """The request with what its answer depends on of this process's limits."""
    return replace(request, environment=limits.select(limits.SENT))


def connect(backend: str, progress: Progress = ignore) -> socket.socket:
    """A link to the server of a backend, which is started if there is none. Raises as `ask` does."""
    require_writable()
    read_limits(limits.select(limits.SENT))
    return _connect(fingerprint(backend), progress)


def fingerprint(backend: str) -> str:
    """The backend and a digest of everything its server reads: what it imports, and environment variables.

    COMMANDS stand for a backend: their server is this process's in all that nothing changes after a start.
    """
    start = _describe_start() if backend == COMMANDS else ()
    return f"{backend}-{digest(digest_imported(), repr(limits.select(limits.PLACES)), *map(repr, start))[:24]}"


def _describe_start() -> Iterator[object]:
    """What a child cannot take over from whoever asks: it is settled when a process starts."""
    yield limits.select(limits.READ_BY_LIBRARIES, own_module(SERVER).environment)
    yield (os.getpriority(os.PRIO_PROCESS, 0), os.getgid(), sorted(os.getgroups()))
    yield [path.readlink() for path in sorted(Path("/proc/self/ns").iterdir())]


def digest_imported() -> str:
    """A digest of the Python environment, torch, porter and what these read at start. Raises PTR170 without torch.

    By whichever name of the interpreter the environment is entered (`python`, `python3`), it is the same.
    """
    parts: list[object] = [*_describe_environment(), limits.select(limits.READ_AT_START)]
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        raise NoVerdict("PTR170", "torch is not installed", hint="Run `pip install 'torch-porter[verify]'`.")
    parts += [spec.origin, (Path(spec.origin).parent / "version.py").stat().st_mtime_ns]
    for package in _WATCHED:
        parts += sorted(_stamps(PACKAGES / package))
    return digest(repr(parts))


def _describe_environment() -> Iterator[object]:
    """The interpreter, the prefix that it runs in, and the versions of all that is installed there.

    Environments may share an interpreter: `bin/python` of each is a link to it. What they hold then differs.
    """
    yield from (os.path.realpath(EXECUTABLE), sys.version, os.path.realpath(sys.prefix))
    for folder in map(Path, site.getsitepackages()):
        yield sorted(each.name for each in folder.glob("*.dist-info"))


def private_directory() -> Path:
    """Returns the directory of sockets and logs, accessible only to this user. Raises PTR180.

    A `$XDG_RUNTIME_DIR` too long for a socket's path is not used.
    """
    base, own = os.environ.get("XDG_RUNTIME_DIR"), Path(f"/tmp/porter-{os.getuid()}")
    folder = Path(base).absolute() / "porter" if base else own
    return make_private(folder if len(os.fsencode(folder)) <= LONGEST_FOLDER else own)


def _ask_server(request: Request, progress: Progress) -> Answer:
    name = fingerprint(request.backend)
    for _ in range(2):
        try:
            with _connect(name, progress) as link:
                return exchange(link, request, progress)
        except (ConnectionError, EOFError, FileNotFoundError):
            continue  # it exited before the request; the second round starts another
    raise NoVerdict("PTR170", "the verdict server does not respond", hint=f"See its log: {_log(name)}.")


def exchange(link: socket.socket, request: Request, progress: Progress = ignore) -> Answer:
    """Sends a request and reads until the answer. Raises EOFError if there is none."""
    link.sendall(encode_request(request))
    with link.makefile("rb") as lines:
        for line in lines:
            message = decode_line(line)
            if not isinstance(message, StepStarted):
                return message
            progress(message.step)
    raise EOFError


def _connect(name: str, progress: Progress) -> socket.socket:
    path = private_directory() / name
    link = _try(path)
    if link is not None:
        return link
    progress("starting the verdict server")
    child = _start(name, path)
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        link = _try(path)
        if link is not None:
            return link
        ended = child.poll()
        if ended:
            raise _read_refusal(_log(name))
        if ended == 0:  # another one came first; should that one end, this client's takes its place
            time.sleep(0.5)
            link = _try(path)
            if link is not None:
                return link
            child = _start(name, path)
        time.sleep(0.02)
    raise NoVerdict("PTR170", "the verdict server did not start in time", hint=f"See its log: {_log(name)}.")


def _try(path: Path) -> socket.socket | None:
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        link.connect(str(path))
    except (FileNotFoundError, ConnectionRefusedError):
        link.close()
        return None
    return link


def _start(name: str, path: Path) -> subprocess.Popen[bytes]:
    handle = os.open(_log(name), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    program = own_module(SERVER, str(path), name, name.partition("-")[0])
    with os.fdopen(handle, "wb") as log:
        return subprocess.Popen(
            program.command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=program.folder,
            env=program.environment,
            start_new_session=True,
        )


def _ask_process(request: Request, seconds: float | None) -> Answer:
    program = own_module(SERVER, "--once")
    try:
        done = subprocess.run(
            program.command,
            input=encode_request(request),
            capture_output=True,
            cwd=program.folder,
            env=program.environment,
            check=False,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired as expired:
        return _out_of_time(request, expired)
    lines = done.stdout.splitlines()
    said = decode_line(lines[-1]) if lines else None
    if said is None or isinstance(said, StepStarted):
        raise NoVerdict("PTR170", f"the verdict process exited without an answer:\n{done.stderr.decode()[-2000:]}")
    return said


def _out_of_time(request: Request, expired: subprocess.TimeoutExpired) -> Answer:
    """What a process that was ended says: on hardware its tests cannot be forked, so that the whole is ended."""
    *lines, _ = (expired.stdout or b"").split(b"\n")
    steps = [said.step for said in map(decode_line, lines) if isinstance(said, StepStarted)]
    failure = out_of_time(steps[-1] if steps else "worker", Limits(verdict=expired.timeout), expired.timeout)
    if not isinstance(request, VerifyRequest):
        return ErrorAnswer("PTR175", failure.reason.removeprefix("PTR175 "))
    from porter.verdict.judge import verdict_without_tests

    of = request.target.base, [failure], expired.timeout, request.backend, request.arithmetic
    return VerdictAnswer(verdict_without_tests(*of))


def _stamps(folder: Path) -> Iterator[tuple[str, int, int]]:
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            if entry.name not in ("__pycache__", "fork"):
                yield from _stamps(Path(entry.path))
        elif entry.name.endswith(_CODE):
            stat = entry.stat()
            yield entry.path, stat.st_mtime_ns, stat.st_size


def _log(name: str) -> Path:
    return private_directory() / f"{name}.log"


def _read_refusal(log: Path) -> NoVerdict:
    """Why a server did not start: the last line of its log is an error, or PTR170 has the end of it."""
    lines = log.read_text(errors="replace").splitlines()[-15:] if log.is_file() else []
    with suppress(ValueError, IndexError):
        answer = decode_line(lines[-1])
        if isinstance(answer, ErrorAnswer):
            return NoVerdict(answer.code, answer.what, answer.place, answer.hint)
    return NoVerdict("PTR170", "the verdict server did not start:\n" + "\n".join(lines))


Report = Callable[[int, str], None]


def ask_many(
    requests: Sequence[Request], jobs: int, report: Report = lambda _at, _step: None
) -> Iterator[tuple[int, Answer]]:
    """Yields the answers as they come, each with the index of its request, with at most `jobs` of them under way.

    An error is an answer too. Closing the iterator ends what is under way. Where no server can answer (see
    `ask`), asks for one after another.
    """
    if not requests:
        return
    if os.environ.get(NO_SERVER) or any(map(_is_on_hardware, requests)):
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
        return ask(request, _steps_of(at, report))
    except PorterError as error:
        return answer_of_error(error)


def _send(request: Request, at: int, report: Report) -> socket.socket:
    link = connect(request.backend, _steps_of(at, report))
    link.sendall(encode_request(complete(request)))
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


# The code that a tree of a verdict takes from the checkout, as `build.tree` links it.
_FOLDERS = (MPS, OPERATIONS, KERNELS, DEVICE, METAL_HEADERS)
_TREE_CODE = (".h", ".hpp", ".inl", ".mm", ".cpp", ".metal")


def digest_old_code(checkout: Checkout) -> str:
    """A digest of the fork's host code and kernels, torch, porter and its limits. Raises PTR170 without torch."""
    folders = [checkout.folder(folder, *_TREE_CODE) for folder in _FOLDERS]
    files = (part for folder in folders for file in folder.files for part in file)
    settings = repr(limits.select(limits.READ_WHEN_RUN))
    imported = checkout.remember("imported", client.digest_imported)
    return _digest(imported, settings, checkout.read(NATIVE_FUNCTIONS), *files)


@lru_cache(maxsize=2)
def _digest(*parts: str | bytes) -> str:
    """Every row that has been run asks for the digest of the same megabytes."""
    return cache.digest(*parts)


def digest_tested_code(checkout: Checkout) -> str:
    """A digest of what the result of a test on the fork depends on: its old code and its test lists."""
    lists = (checkout.read(path) for path in TEST_LISTS if checkout.exists(path))
    return cache.digest(digest_old_code(checkout), *lists)


def key(evidence: str, kind: str, base: str, *parts: str) -> Path:
    """The cache file of one kind of result for an operator; `evidence` is the digest of what it depends on."""
    return cache.key(kind, base, evidence, *parts)
