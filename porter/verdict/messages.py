"""The messages of the client, the verdict server and its workers, one per line.

A client sends one request. The server replies with a line for each step it starts, then the answer. A request carries
the part of the client's environment that its answer depends on (`porter.verdict.limits.SENT`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from porter.core import codec
from porter.core.errors import Place, PorterError
from porter.verdict.baseline import EarlierResult
from porter.verdict.behavior import SampleResult
from porter.verdict.result import HOST, ForkFinding, Verdict, VerifyTarget


@dataclass(frozen=True)
class Libraries:
    """Libraries of many operators, the ported one among them, and of their old code; empty where none was built.

    `fork` has the kernels that the ports launch: one may call others that are ported after it. `findings` are host
    files of the fork that the library does without.
    """

    ported: str = ""
    old: str = ""
    fork: str = ""
    findings: tuple[ForkFinding, ...] = ()


@dataclass(frozen=True)
class VerifyRequest:
    """Asks for the verdict on a target in the checkout at `root` with these `texts`; see `porter.verdict.verify`.

    With `libraries`, what a BuildRequest built for these texts and for the checkout is tested. `earlier` are the texts
    before the port of files that the checkout has with it, None for those that it created; `texts` has all of them.
    Where `selects`, a person chose the tests of `expr`, and others would say more. A `strict` verdict fails for what is
    wrong with the fork, too.
    """

    root: Path
    texts: Mapping[str, str]
    target: VerifyTarget
    expr: str | None
    backend: str
    arithmetic: str
    environment: Mapping[str, str] = field(default_factory=dict)
    large: bool = False
    thorough: bool = False
    libraries: Libraries = Libraries()
    earlier: Mapping[str, str | None] = field(default_factory=dict)
    selects: bool = False
    strict: bool = False


@dataclass(frozen=True)
class BuildRequest:
    """Asks to build one library for targets in the checkout at `root` with these `texts`.

    For old code, `texts` are empty: a function that nothing defines throws, and what cannot be built is left out.
    """

    root: Path
    texts: Mapping[str, str]
    targets: tuple[VerifyTarget, ...]
    backend: str = HOST
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RecordRequest:
    """Asks for the recordings of a target in the checkout, as on a macOS release (`""` for the newest).

    With `of_programs`, asks for its programs instead, recorded at sizes of porter's own. `earlier` are as in a
    VerifyRequest.
    """

    root: Path
    target: VerifyTarget
    macos: str
    backend: str = HOST
    of_programs: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    earlier: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class PrepareRequest:
    """Asks to build everything that verdicts on a checkout share."""

    root: Path
    backend: str
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class StepStarted:
    """A step has started."""

    step: str


@dataclass(frozen=True)
class VerdictAnswer:
    """A verdict. From a worker that ran a port, also the result of every sample, and the types (torch names) whose
    samples no test vouches for, as all that compare results are expected to fail.
    """

    verdict: Verdict
    samples: tuple[SampleResult, ...] = ()
    listed: tuple[str, ...] = ()


@dataclass(frozen=True)
class SamplesAnswer:
    """The results of all samples on the implementation that a port removes."""

    samples: tuple[SampleResult, ...]


@dataclass(frozen=True)
class BaselineAnswer:
    """What came of tests on the fork before a port."""

    tests: tuple[EarlierResult, ...]


@dataclass(frozen=True)
class RecordAnswer:
    """The recordings or the programs as the cache keeps them: few processes import what decodes these."""

    text: str = "[]"


@dataclass(frozen=True)
class PrepareAnswer:
    """Everything is built."""


@dataclass(frozen=True)
class BuildAnswer:
    """The library for each target, in order; empty where there is none. `broken` says what does not build.

    `fork` is the folder that ports were built from, `findings` are host files of it that the library does without.
    """

    libraries: tuple[str, ...]
    broken: str = ""
    fork: str = ""
    findings: tuple[ForkFinding, ...] = ()


@dataclass(frozen=True)
class ErrorAnswer:
    """Why there is no answer: the fields of a PorterError."""

    code: str
    what: str
    place: Place | None = None
    hint: str = ""


Request = VerifyRequest | BuildRequest | RecordRequest | PrepareRequest
Answer = VerdictAnswer | SamplesAnswer | BaselineAnswer | BuildAnswer | RecordAnswer | PrepareAnswer | ErrorAnswer
Line = StepStarted | Answer


def answer_of_error(error: PorterError) -> ErrorAnswer:
    """Converts an error to a message."""
    return ErrorAnswer(error.code, error.what, error.place, error.hint)


def error_of_answer(answer: ErrorAnswer) -> PorterError:
    """Converts a message back to the error."""
    return PorterError(answer.code, answer.what, answer.place, answer.hint)


def encode_request(request: Request) -> bytes:
    """Encodes a request as one line."""
    return codec.encode(request, Request).encode() + b"\n"


def decode_request(line: bytes | str) -> Request:
    """The inverse of `encode_request`."""
    request: Request = codec.decode(line, Request)
    return request


def encode_line(line: Line) -> bytes:
    """Encodes a step or an answer as one line."""
    return codec.encode(line, Line).encode() + b"\n"


def decode_line(line: bytes | str) -> Line:
    """The inverse of `encode_line`."""
    decoded: Line = codec.decode(line, Line)
    return decoded
