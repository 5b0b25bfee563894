"""A verdict as text: plain, or styled for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from porter.report.console import printable, show_ulp
from porter.verdict.result import CUDA, HOST, KERNELS, MPS, DTypeVerdict, Verdict
from porter.witness.witnessed import WITNESSED

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

    from porter.verdict.result import Verdict

HEADINGS = ("dtype", "passed", "failed", "skipped", "kernel calls", "max ULP", "CPU ULP")
BESIDE = ("beside", "dtype", "calls", "equal", "close", "different", "left out", "max ULP")
MOST_FAILURES = 12
LARGE_ULP = 1000.0  # an error that needs a word
REASON_LINES = 6


def table(verdict: Verdict) -> str:
    """Counts by dtype, the failures, the reasons for skips, the notes, and a summary line."""
    grid = [_grid([HEADINGS, *map(_row, verdict.dtypes)])] if verdict.dtypes else []
    beside = [*_show_beside(verdict)]
    told = [*_failures(verdict), *_failed_before(verdict), *_skips(verdict), *_notes(verdict)]
    return "\n".join([*grid, *beside, *told, summary(verdict)])


def style_verdict(verdict: Verdict) -> Group:
    """The same for a terminal."""
    from rich.console import Group
    from rich.text import Text

    parts = [Text(text, "red") for text in _failures(verdict)] + [
        Text(text, "yellow") for text in _failed_before(verdict)
    ]
    parts += [Text(text) for text in (*_show_beside(verdict), *_skips(verdict), *_notes(verdict))]
    parts.append(Text(summary(verdict), "bold green" if verdict.ok else "bold red"))
    return Group(*([_style_grid(verdict)] if verdict.dtypes else []), *parts)


def _style_grid(verdict: Verdict) -> Table:
    from rich.table import Table

    grid = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for at, heading in enumerate(HEADINGS):
        grid.add_column(heading, justify="right" if at else "left", overflow="fold")
    for found in verdict.dtypes:
        grid.add_row(*_row(found), style="red" if found.failed else "")
    return grid


def _show_beside(verdict: Verdict) -> Iterator[str]:
    """A GPU's results beside others', and the first that differs from each."""
    if verdict.beside:
        rows = [
            (each.other, each.dtype, *map(str, (each.calls, each.equal, each.close, each.different, each.left_out)),
             show_ulp(each.max_ulp)) for each in verdict.beside
        ]  # fmt: skip
        yield _grid([BESIDE, *rows])
    yield from (printable(f"differs ({each.dtype}): {each.first}") for each in verdict.beside if each.first)
    for (other, reason), dtypes in _left_out(verdict).items():
        yield printable(f"left out beside {other} ({', '.join(dtypes)}): {reason}")


def _left_out(verdict: Verdict) -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = {}
    for each in verdict.beside:
        if each.reason:
            found.setdefault((each.other, each.reason), []).append(each.dtype)
    return found


def _failures(verdict: Verdict) -> Iterator[str]:
    yield from (_failure(f.test, f.place, f.reason) for f in verdict.failures[:MOST_FAILURES])
    if len(verdict.failures) > MOST_FAILURES:
        yield f"... and {len(verdict.failures) - MOST_FAILURES} more failures"


def _failed_before(verdict: Verdict) -> Iterator[str]:
    """The failures that are not the port's, each in one line."""
    for failure in verdict.failed_before:
        reason = printable(failure.reason.strip().partition("\n")[0])
        yield f"before: failed, after: failed {failure.test}: {reason}"


def _skips(verdict: Verdict) -> Iterator[str]:
    yield from (f"skipped: {each.tests}: {printable(each.reason)}" for each in verdict.skips)


def _notes(verdict: Verdict) -> Iterator[str]:
    yield from (printable(f"note: {note}", keep="\n\t") for note in verdict.notes)
    for finding in verdict.fork_findings:
        place = f" at {finding.place}" if finding.place else ""
        yield printable(f"note: finding about the fork{place}: {finding.what}", keep="\n\t")
    if verdict.old_path:
        samples, old, new = (
            sum(getattr(count, name) for count in verdict.old_path.counts) for name in ("samples", "old", "new")
        )
        yield f"samples that match the CPU: {old} of {samples} on the old path, {new} on the new path"
        yield from (f"  changes: {line}" for line in verdict.old_path.changes)


def summary(verdict: Verdict) -> str:
    """PASS or FAIL, the counts, and the backend, in one line."""
    word = "PASS" if verdict.ok else "FAIL"
    before = f"{len(verdict.failed_before)} failed before the port and after, " if verdict.failed_before else ""
    ulp = "" if verdict.max_ulp is None else f", at most {verdict.max_ulp:.2f} ULP{_excuse(verdict)}"
    return (
        f"{verdict.op}: {word}: {verdict.passed} passed, {verdict.failed} failed, {verdict.skipped} skipped, "
        f"{before}{verdict.kernel_calls} kernel calls{ulp} (backend {verdict.where}, {verdict.arithmetic} arithmetic, "
        f"{verdict.seconds:.1f} s)"
    )


def _excuse(verdict: Verdict) -> str:
    """What stands beside a large error: that of ATen's kernel for the CPU, in the type that has it."""
    worst = max(verdict.dtypes, key=lambda row: row.max_ulp or 0.0, default=None)
    if worst is None or (worst.max_ulp or 0.0) < LARGE_ULP or worst.cpu_ulp is None:
        return ""
    return f" in {worst.dtype}, where the CPU's kernel has {worst.cpu_ulp:.2f}"


def _row(found: DTypeVerdict) -> tuple[str, ...]:
    counts = (found.passed, found.failed, found.skipped, found.kernel_calls)
    return (found.dtype, *map(str, counts), show_ulp(found.max_ulp), show_ulp(found.cpu_ulp))


def _grid(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )


def _failure(test: str, place: str, reason: str) -> str:
    lines = [line.strip() for line in reason.splitlines() if line.strip()]
    shown = lines[:REASON_LINES] + (["..."] if len(lines) > REASON_LINES else [])
    head = f"FAIL {test}" + (f" at {place}" if place else "")
    return printable("\n".join([head, *(f"     {line}" for line in shown)]), keep="\n\t")


# What a verdict's backend is, in the words of somebody who has never seen porter.


NO_APPLE = "No Apple hardware, and no Apple software, took part."
_MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        HOST: (
            "on Linux, against a stand-in for Metal and MPSGraph. The host code (`.mm`) and the kernels (`.metal`) of "
            f"this checkout were compiled for the CPU and ran PyTorch's OpInfo tests as an `mps` device. {NO_APPLE}"
        ),
        KERNELS: (
            "on the CPU, with the kernels (`.metal`) alone: they were compiled for the CPU and called by the OpInfo "
            f"tests. Host code was read and did not run. {NO_APPLE}"
        ),
        MPS: (
            "on a Mac's GPU, with the kernels (`.metal`) alone: `torch.mps.compile_shader` compiled them, and the "
            "OpInfo tests called them. Host code was read and did not run."
        ),
        CUDA: (
            "on an NVIDIA GPU, with the kernels (`.metal`) alone: they were compiled to PTX and called by the OpInfo "
            f"tests. Host code was read and did not run. {NO_APPLE}"
        ),
    }
)


def describe_backend(name: str) -> str:
    """Where a verdict of a backend ran, and what did not run: a phrase that follows "ran", then sentences."""
    return _MEANINGS.get(name, f"on `{name}`.")


def ran_on_apple(name: str) -> bool:
    """Whether a verdict of a backend ran on Apple hardware, of which a log is kept."""
    return name == MPS and bool(WITNESSED)
