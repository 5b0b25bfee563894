"""Why a package was not built, from what pip printed: a class, a line of it, a place, and what to do next."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from porter.core.errors import Place, PorterError


class Cause(Enum):
    """What a build fails for."""

    REQUIREMENT = "lacks a requirement"
    PLATFORM = "refuses this system"
    COMPILE = "does not compile"
    LINK = "does not link"
    TIME = "takes too long"
    NOTHING = "compiles nothing"
    OTHER = "fails"


@dataclass(frozen=True)
class Failure:
    """A cause, and the error that a report shows."""

    cause: Cause
    error: PorterError


_FRAME = re.compile(r"╰─> \[\d+ lines of output\]\n(.*?)^ *\[end of output\]", re.DOTALL | re.MULTILINE)
_MODULE = re.compile(
    r"ModuleNotFoundError: No module named '([\w.]+)'|BackendUnavailable: Cannot import '([\w.]+)'"
    r"|ERROR: Backend '([\w.]+):?[\w.]*' is not available"
)
_PROGRAM = re.compile(
    r"error: command '([^'\n]+)' failed: No such file|\[Errno 2\] No such file or directory: '([\w.+-]+)'"
    r"|error: could not find `?([\w.+-]+)`? (?:executable|command)"
)
_AT_LINE = re.compile(r"^\s*(\S[^\n:]*):(\d+):(?:\d+:)? (?:fatal )?error: ([^\n]+)$", re.MULTILINE)
_HEADER = re.compile(r"'([^']+)' file not found|([^\s:]+): No such file or directory")
_LINK = re.compile(
    r"^[^\n]*(?:undefined reference to|undefined symbol: |unable to find library|cannot find -l|multiple definition of"
    r"|duplicate symbol|library not found for)[^\n]*$",
    re.MULTILINE,
)
_RAISED = re.compile(r"\s*(?:AttributeError|ImportError|OSError): ")  # a library that a setup script opens
_SYSTEM = re.compile(r"\bmac ?os|\bosx\b|darwin|apple|\bxcode|\bonly .{0,30}\bmac", re.IGNORECASE)
_PYTHON = re.compile(
    r"^\s*(?:[\w.]+(?:Error|Exception|Exit|Interrupt|Unavailable)|error|ERROR): (?!subprocess-exited)\S"
)
_OLD = re.compile(r"-std=(?:c|gnu)\+\+(?:11|14|17|1z)\b")
_OF_TORCH = "/torch/include/"
_SAID_BY_PIP = ("note: ", "hint: ", "[notice]", "WARNING: ", "DEPRECATION: ")
_OTHER_NAMES = {"skbuild": "scikit-build", "scikit_build_core": "scikit-build-core", "mesonpy": "meson-python"}
_CODE = "PTR199"


def explain_failure(log: str, as_mac: bool, code: int = 1) -> Failure:
    """The failure that a log of pip ends with, and its exit code: less than 0 for a signal, as of subprocess."""
    parts = _FRAME.findall(log)
    text = parts[-1] if parts else log
    if module := _MODULE.search(text):
        name = next(filter(None, module.groups())).partition(".")[0]
        package = _OTHER_NAMES.get(name, name.replace("_", "-"))
        return _fail(Cause.REQUIREMENT, f"the build needs {package}", f"Run `pip install {package}`.")
    if program := _PROGRAM.search(text):
        name = next(filter(None, program.groups()))
        return _fail(Cause.REQUIREMENT, f"the build runs {name}, which is not there", f"Put {name} on the path.")
    if line := _AT_LINE.search(text):
        return _explain_line(line, text)
    if (line := _LINK.search(text)) and not _RAISED.match(line[0]):
        return _fail(Cause.LINK, line[0].strip(), "docs/kernels/extensions.md says what of Apple's is not here.")
    last = _find_last(text) if code >= 0 else f"pip was ended by signal {-code}"
    if _SYSTEM.search(last):
        hint = "" if as_mac else "Try --as-mac, which lets the package's own files see macOS."
        return _fail(Cause.PLATFORM, last, hint)
    return _fail(Cause.OTHER, last, "Keep the log with --keep DIR.")


def explain_overdue(step: str, seconds: float) -> Failure:
    """A step that did not end in time."""
    return _fail(Cause.TIME, f"{step} takes longer than {seconds:g} seconds", "Give it more with --timeout SECONDS.")


def explain_nothing(sources: tuple[str, ...], as_mac: bool) -> Failure:
    """A build that ends well and compiles none of the package's Objective-C++."""
    hint = "Read its setup.py: what does it ask for?" if as_mac else "Try --as-mac: setup scripts ask for the system."
    return _fail(Cause.NOTHING, f"pip ends well, but {', '.join(sources[:3])} was not compiled", hint)


def _explain_line(line: re.Match[str], text: str) -> Failure:
    hint = "docs/kernels/extensions.md says what of Apple's is not here."
    if header := _HEADER.search(line[3]):
        hint = f"{header[1] or header[2]} is none of Apple's headers that are here, nor one of the package's."
    elif _OF_TORCH in line[1] and (standard := _OLD.search(text)):
        hint = f"The package asks for {standard[0]}, and this header of torch is C++20: no Mac compiles it either."
    return _fail(Cause.COMPILE, line[3].strip(), hint, Place(line[1], int(line[2])))


def _find_last(text: str) -> str:
    """The last line that says what is wrong: of Python's own, or else of any."""
    lines = list(_list_lines(text))
    said = [line for line in lines if _PYTHON.match(line)]
    return (said or lines or ["pip says nothing"])[-1]


def _list_lines(text: str) -> Iterator[str]:
    for line in map(str.strip, text.splitlines()):
        if line and not line.startswith(_SAID_BY_PIP):
            yield line


def _fail(cause: Cause, what: str, hint: str, place: Place | None = None) -> Failure:
    return Failure(cause, PorterError(_CODE, f"the package {cause.value}: {what}", place, hint))
