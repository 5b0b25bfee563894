"""What the client, the verdict server and its workers say to each other: values, one a line.

A client sends one request. What comes back are lines that a step has started, then the answer. Every request says what
of the client's environment it is to be answered under (`porter.verdict.environment.SENT`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from porter.core import codec
from porter.core.errors import Place, PorterError
from porter.mpsgraph.recording import Recording
from porter.verdict.behavior import SampleResult
from porter.verdict.result import HOST, Verdict, VerifyTarget


@dataclass(frozen=True)
class VerifyRequest:
    """The verdict on a target in the checkout at `root` with these `texts`; see `porter.verdict.verify.verify`."""

    root: Path
    texts: Mapping[str, str]
    target: VerifyTarget
    expr: str | None
    backend: str
    arithmetic: str
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RecordRequest:
    """The recordings of a target as the checkout has it, under a macOS release (`""`: the newest)."""

    root: Path
    target: VerifyTarget
    macos: str
    backend: str = HOST
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PrepareRequest:
    """All that every verdict on a checkout shares is to be built."""

    root: Path
    backend: str
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class StepStarted:
    """What is being done from now on."""

    step: str


@dataclass(frozen=True)
class VerdictAnswer:
    """A verdict; one run's has also what the operator did with every sample, where it is one on a port."""

    verdict: Verdict
    samples: tuple[SampleResult, ...] = ()


@dataclass(frozen=True)
class SamplesAnswer:
    """What the implementation that a port takes out does with every sample."""

    samples: tuple[SampleResult, ...]


@dataclass(frozen=True)
class RecordAnswer:
    """What was recorded."""

    recordings: tuple[Recording, ...]


@dataclass(frozen=True)
class PrepareAnswer:
    """All is built."""


@dataclass(frozen=True)
class ErrorAnswer:
    """Why there is no answer: the fields of a PorterError."""

    code: str
    what: str
    place: Place | None = None
    hint: str = ""


Request = VerifyRequest | RecordRequest | PrepareRequest
Answer = VerdictAnswer | SamplesAnswer | RecordAnswer | PrepareAnswer | ErrorAnswer
Line = StepStarted | Answer


def answer_of_error(error: PorterError) -> ErrorAnswer:
    """What an error is on its way to the client."""
    return ErrorAnswer(error.code, error.what, error.place, error.hint)


def error_of_answer(answer: ErrorAnswer) -> PorterError:
    """The error that was sent."""
    return PorterError(answer.code, answer.what, answer.place, answer.hint)


def encode_request(request: Request) -> bytes:
    """A request as one line."""
    return codec.encode(request, Request).encode() + b"\n"


def decode_request(line: bytes | str) -> Request:
    """The request that `encode_request` was given."""
    request: Request = codec.decode(line, Request)
    return request


def encode_line(line: Line) -> bytes:
    """A step or an answer as one line."""
    return codec.encode(line, Line).encode() + b"\n"


def decode_line(line: bytes | str) -> Line:
    """What `encode_line` was given."""
    decoded: Line = codec.decode(line, Line)
    return decoded
