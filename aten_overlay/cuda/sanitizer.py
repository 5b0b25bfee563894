"""compute-sanitizer, NVIDIA's checker of kernels: runs programs under it, and reads what it finds, by Metal's lines."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aten_overlay.errors import OverlayError
from aten_overlay.metal.sanitizer.checks import VARIABLE

# The checks of the sanitizer of kernels on the host, and the tool that looks for the same on a GPU.
TOOLS: Mapping[str, tuple[str, ...]] = {
    "bounds": ("memcheck", "--padding", "64", "--destroy-on-device-error", "kernel"),
    "races": ("racecheck", "--racecheck-report", "analysis"),
    "barriers": ("synccheck",),
    "uninitialized": ("initcheck",),
}
_PLACES = ("/usr/local/cuda/bin/compute-sanitizer", "/opt/cuda/bin/compute-sanitizer")
# Every allocation is the driver's own, so that what lies behind one is nobody else's.
_ENVIRONMENT = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
_MARK = re.compile(r"^=========( ?)(?P<text>.*)$")
_PLACE = re.compile(r"(?:at|by|between \w+ access at) .*?(?:\bin )?(?P<file>[^\s:()]+\.metal|[^\s:()]+):(?P<line>\d+)")
_HEAD = re.compile(
    r"(?P<what>Invalid __\w+__ \w+ of size \d+ bytes|(?:Error|Warning): Race reported between|Barrier error detected.*|"
    r"Uninitialized __\w+__ memory read of size \d+ bytes|Misaligned .*|Potential .*hazard.*)"
)
_KERNEL = re.compile(r"(?:at|in block|access at) (?:0x[\da-f]+ in )?(?P<kernel>\w+?)(?:__(?:grid|flat|several))?\+0x")


@dataclass(frozen=True)
class Finding:
    """What a tool found: the lines of Metal that take part, each once, and how often."""

    check: str
    what: str
    kernel: str
    lines: tuple[tuple[str, int], ...]
    count: int = 1

    def __str__(self) -> str:
        lines = " and ".join(f"{Path(file).name}:{line}" for file, line in self.lines)
        where = f" at {lines}" if lines else ""
        return f"{self.check}: {self.what} in {self.kernel or 'a kernel'}{where} ({self.count})"


def find_sanitizer() -> str:
    """The path of compute-sanitizer. Raises PTR394 where it is not installed."""
    found = shutil.which("compute-sanitizer") or next((p for p in _PLACES if Path(p).is_file()), None)
    if found is None:
        raise OverlayError(
            "PTR394", "compute-sanitizer is not installed", hint="It comes with the CUDA toolkit; or omit --sanitize."
        )
    return found


def run_sanitized(
    check: str,
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    seconds: float = 600,
    given: bytes = b"",
) -> tuple[list[Finding], str]:
    """Runs a program, and those that it starts, under the tool of a check: what it found, and all that was printed.

    `given` is its input. Its environment is this process's unless another is passed. It is asked for no checks of its
    own. Raises PTR394.
    """
    tool = [find_sanitizer(), "--tool", *TOOLS[check], "--target-processes", "all", "--print-limit", "1000"]
    around = os.environ if environment is None else environment
    environment = {name: value for name, value in around.items() if name != VARIABLE}
    try:
        done = _run(tool + list(command), {**environment, **_ENVIRONMENT}, seconds, given)
    except subprocess.TimeoutExpired:
        what = f"the program did not end in {seconds:g} seconds under {TOOLS[check][0]}"
        raise OverlayError("PTR390", what, hint="A barrier that not all threads reach may wait for ever.") from None
    printed = done.stdout.decode(errors="replace")
    return read_findings(check, printed), printed


def _run(
    command: Sequence[str], environment: Mapping[str, str], seconds: float, given: bytes
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        command, input=given, env=environment, timeout=seconds, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        check=False,
    )  # fmt: skip


def read_findings(check: str, text: str) -> list[Finding]:
    """The findings in what a tool printed: those of one kind at the same lines of a kernel are one."""
    found: dict[tuple[str, str, tuple[tuple[str, int], ...]], int] = {}
    for block in _split(text):
        head = _HEAD.search(block[0])
        if head is None:
            continue
        whole = "\n".join(block)
        lines = tuple(dict.fromkeys((m["file"], int(m["line"])) for m in _PLACE.finditer(whole)))[:2]
        kernel = _KERNEL.search(whole)
        key = (head["what"].rstrip(".: "), kernel["kernel"] if kernel else "", lines)
        found[key] = found.get(key, 0) + 1
    return [Finding(check, what, kernel, lines, count) for (what, kernel, lines), count in found.items()]


def _split(text: str) -> Iterator[list[str]]:
    """The lines of each thing that a tool reports, without its mark."""
    block: list[str] = []
    for line in text.splitlines():
        mark = _MARK.match(line)
        if mark is None:
            continue
        if _HEAD.search(mark["text"]) and block:
            yield block
            block = []
        block.append(mark["text"])
    if block:
        yield block
