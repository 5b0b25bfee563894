"""One child process that tries many calls on the CPU: to fork a process that holds torch takes 30 ms of its time.

Only calls come here that `kept_outcomes` can name: nothing of a fork or a test has a say in them. What ends the child,
or damages its memory, may be the fault of an earlier call: then there is no answer, and the caller forks for itself.
"""

from __future__ import annotations

import ctypes
import gc
import io
import os
import pickle
import signal
import struct
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.suite import cpu_memory
from porter.verdict.suite.children import settle
from porter.verdict.suite.kept_outcomes import State, is_nameable, list_known, read_memory

_SECONDS = 20  # of its own process for one request: what takes longer is tried elsewhere
_WHOLE, _BROKEN = b"\x01", b"\x00"
_LENGTH = struct.Struct("<Q")
Run = Callable[[Callable[..., Any], SampleInput], int]


@dataclass
class _Child:
    """A process that waits for requests."""

    process: int
    requests: int  # the end of a pipe that this process writes to
    answers: int
    parent: int
    watches_memory: bool

    def is_usable(self) -> bool:
        """Whether it is a child of this very process, and was forked after what watches memory was installed."""
        return self.parent == os.getpid() and self.watches_memory == cpu_memory.is_installed()

    def ask(self, request: bytes, count: int) -> bytes | None:
        """What came of each call; None if the process did not live to tell, or is damaged."""
        with suppress(BrokenPipeError):
            _write(self.requests, _LENGTH.pack(len(request)) + request)
            answer = _read(self.answers, count + 1)
            if answer is not None and answer[-1:] == _WHOLE:
                return answer[:count]
        return None

    def end(self) -> None:
        """Ends the process, if it is this one's, and closes its pipes."""
        os.close(self.requests)
        os.close(self.answers)
        if self.parent == os.getpid():
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)


_child: _Child | None = None


def try_calls(call: Callable[..., Any], samples: Sequence[SampleInput], run: Run) -> bytes | None:
    """What `run` returns for each call; None for one that no other process can be told of, or that ends the child."""
    global _child
    request = _pack(call, samples) if is_nameable(call) else None
    if request is None:
        return None
    if _child is not None and not _child.is_usable():
        _child.end()
        _child = None
    if _child is None:
        _child = _fork(run)
    answer = None
    try:
        answer = _child.ask(request, len(samples))
    finally:
        if answer is None:  # a test that takes too long is interrupted while it waits
            _child.end()
            _child = None
    return answer


def _fork(run: Run) -> _Child:
    """Starts a process that answers requests until its pipe is closed."""
    asked, requests = os.pipe()
    answers, replies = os.pipe()
    process = os.fork()
    if not process:
        try:
            os.close(requests)
            os.close(answers)
            _answer_all(asked, replies, run)
        finally:
            os._exit(0)
    os.close(asked)
    os.close(replies)
    return _Child(process, requests, answers, os.getpid(), cpu_memory.is_installed())


def _answer_all(asked: int, replies: int, run: Run) -> None:
    settle()
    for standard in range(2):
        os.dup2(2, standard)
    first, last = sorted((asked, replies))
    for opened in (range(3, first), range(first + 1, last), range(last + 1, os.sysconf("SC_OPEN_MAX"))):
        os.closerange(opened.start, opened.stop)  # who reads what the parent writes waits for all who could write
    gc.freeze()  # a collection would copy every page that the parent shares
    while (head := _read(asked, _LENGTH.size)) is not None:
        request = _read(asked, *_LENGTH.unpack(head))
        signal.setitimer(signal.ITIMER_PROF, _SECONDS)
        call, samples, state = _unpack(request or b"")
        state.set()
        outcomes = bytes(run(call, sample) for sample in samples)
        signal.setitimer(signal.ITIMER_PROF, 0)
        _write(replies, outcomes + (_BROKEN if cpu_memory.is_damaged() else _WHOLE))


class _Pickler(pickle.Pickler):
    """Pickles operators by name, and memory once that several tensors share; torch's own pickles take milliseconds."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._kept: dict[int, torch.UntypedStorage] = {}  # that no other takes its place

    def persistent_id(self, value: Any) -> Any:
        if isinstance(value, OpInfo):
            names = (value.name, value.variant_test_name)
            return ("operator", names) if list_known().get(names) is value.op else ("function", value.op)
        if not isinstance(value, torch.storage.TypedStorage):
            return None
        memory = value._untyped_storage
        if memory.device.type != "cpu":
            raise pickle.PicklingError("memory that the CPU does not have")
        key = memory._cdata
        if key in self._kept:
            return "shared", key, value.dtype
        self._kept[key] = memory
        return "memory", key, value.dtype, read_memory(memory)


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self._memory: dict[int, torch.UntypedStorage] = {}

    def persistent_load(self, key: Any) -> Any:
        match key:
            case ("operator", names):
                return list_known()[names]
            case ("function", function):
                return function
            case ("memory", int(memory), dtype, elements):
                tensor = torch.empty(len(elements), dtype=torch.uint8)
                ctypes.memmove(tensor.data_ptr(), elements, len(elements))
                self._memory[memory] = tensor.untyped_storage()
            case (_, memory, dtype):
                pass
        return torch.storage.TypedStorage(wrap_storage=self._memory[memory], dtype=dtype, _internal=True)


def _pack(call: Callable[..., Any], samples: Iterable[SampleInput]) -> bytes | None:
    """A request as bytes; None where an argument is no value: a function that a test made, memory of another device."""
    file = io.BytesIO()
    arguments = [(sample.input, sample.args, sample.kwargs) for sample in samples]
    try:
        _Pickler(file).dump((call, arguments, State.get()))
    except Exception:  # of any kind: what cannot be pickled raises what it likes
        return None
    return file.getvalue()


def _unpack(request: bytes) -> tuple[Callable[..., Any], list[SampleInput], State]:
    call, arguments, state = _Unpickler(io.BytesIO(request)).load()
    return call, [SampleInput(source, args=args, kwargs=named) for source, args, named in arguments], state


def _write(pipe: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(pipe, rest) :]


def _read(pipe: int, size: int) -> bytes | None:
    """As many bytes; None if the other end is closed before."""
    content = bytearray()
    while len(content) < size:
        part = os.read(pipe, min(size - len(content), 1 << 20))
        if not part:
            return None
        content += part
    return bytes(content)
