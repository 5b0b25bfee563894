"""Runs kernels with planted faults on an NVIDIA GPU under compute-sanitizer, and the templates, which have none.

    python tools/cuda_faults.py [--templates NAME ...] [--no-faults] [--jobs N] [--out FOLDER]

One line a kernel: whether the check that has to find its fault named a line of it. One line a template and check: what
was found, which should be nothing. Ends with 1 where a fault is missed or a template is not clean.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from aten_overlay.cuda.sanitizer import TOOLS, Finding, run_sanitized
from aten_overlay.errors import OverlayError

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.aten_overlay.cuda import planted  # noqa: E402

SECONDS = 60


@dataclass(frozen=True)
class Result:
    """What one run was expected to find, and found."""

    name: str
    check: str
    lines: tuple[int, ...]
    found: tuple[Finding, ...]
    printed: str

    @property
    def ok(self) -> bool:
        """A planted fault is found at its line; where none is planted, nothing is."""
        if not self.lines:
            return not self.found and any(summary in self.printed for summary in _CLEAN)
        return any(line in self.lines for finding in self.found for _, line in finding.lines)

    def __str__(self) -> str:
        what = "; ".join(map(str, self.found[:2])) or "nothing"
        return f"{'ok  ' if self.ok else 'FAIL'}  {self.name:28}{self.check:14}{what}"


_MISSED = re.compile(r"(?P<file>[\w.]+):(?P<line>\d+): PTR397 (?P<what>[^\n]*)")
_CLEAN = ("ERROR SUMMARY: 0 errors", "RACECHECK SUMMARY: 0 hazards")


def run_fault(kernel: str) -> Result:
    """A planted fault under the tool that has to find it."""
    check = planted.FAULTS[kernel]
    try:
        found, printed = run_sanitized(check, [sys.executable, str(Path(planted.__file__)), kernel], seconds=SECONDS)
    except OverlayError as error:
        found, printed = [], str(error)
    return Result(kernel, check, planted.find_lines(kernel), tuple(found), printed)


def run_missed(kernel: str) -> Result:
    """A barrier that threads miss, which the kernel's own count finds."""
    command = [sys.executable, str(Path(planted.__file__)), kernel, "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    said = _MISSED.search(done.stderr)
    lines = ((said["file"], int(said["line"])),) if said else ()
    found = (Finding("missed barriers", said["what"], kernel, lines),) if said else ()
    return Result(kernel, "missed barriers", planted.find_lines(kernel), found, done.stderr)


def run_template(name: str, check: str) -> Result:
    """All cases of a template under one tool."""
    file = str(ROOT / "templates" / f"{name}.py")
    command = [sys.executable, "-m", "porter", "kernel", "check", file, "--device", "cuda"]
    found, printed = run_sanitized(check, command, seconds=SECONDS)
    return Result(name, check, (), tuple(found), printed)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--templates", nargs="*", default=[])
    parser.add_argument("--no-faults", action="store_true")
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args(arguments)
    with ThreadPoolExecutor(chosen.jobs) as pool:
        faults = [pool.submit(run_fault, kernel) for kernel in planted.FAULTS if not chosen.no_faults]
        faults += [pool.submit(run_missed, kernel) for kernel in planted.MISSED if not chosen.no_faults]
        clean = [pool.submit(run_template, name, check) for name in chosen.templates for check in TOOLS]
        results = [future.result() for future in (*faults, *clean)]
    if chosen.out:
        logs = (f"#### {each.name} {each.check}\n{each.printed}" for each in results)
        (chosen.out / "sanitizer.log").write_text("\n".join(logs))
    print("\n".join(map(str, results)))
    print("\n".join(each.printed[-2000:] for each in results if not each.ok))
    print(f"{sum(each.ok for each in results)} of {len(results)} as expected")
    return 0 if all(each.ok for each in results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
