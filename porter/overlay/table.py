"""A verdict as plain text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from porter.verdict.behavior import Behavior
from porter.verdict.result import DTypeVerdict, Verdict

HEADINGS = ("dtype", "passed", "failed", "skipped", "kernel calls", "max ULP", "CPU ULP")
MOST_FAILURES = 12
REASON_LINES = 6


def table(verdict: Verdict) -> str:
    """Counts by dtype, what failed and why, what is worth noting, and one line that says it all."""
    parts = [_grid([HEADINGS, *map(_row, verdict.dtypes)])] if verdict.dtypes else []
    parts += [_failure(f.test, f.place, f.reason) for f in verdict.failures[:MOST_FAILURES]]
    if len(verdict.failures) > MOST_FAILURES:
        parts.append(f"... and {len(verdict.failures) - MOST_FAILURES} more failures")
    parts += [f"note: {note}" for note in verdict.notes]
    parts += list(_old_path(verdict.old_path)) if verdict.old_path else []
    return "\n".join([*parts, summary(verdict)])


def summary(verdict: Verdict) -> str:
    """One line: the verdict, its counts, and the backend it ran on."""
    word = "right" if verdict.ok else "WRONG"
    ulp = "" if verdict.max_ulp is None else f", at most {verdict.max_ulp:.2f} ULP"
    return (
        f"{verdict.op}: {word}: {verdict.passed} passed, {verdict.failed} failed, {verdict.skipped} skipped, "
        f"{verdict.kernel_calls} kernel calls{ulp} (backend {verdict.where}, {verdict.arithmetic} arithmetic, "
        f"{verdict.seconds:.1f} s)"
    )


def _old_path(found: Behavior) -> Iterator[str]:
    """How both paths do in all, and what changes."""
    samples, old, new = (sum(getattr(count, name) for count in found.counts) for name in ("samples", "old", "new"))
    yield f"as on the CPU: the old path in {old} of {samples} samples, the new path in {new}"
    yield from (f"  changes: {line}" for line in found.changes)


def _row(found: DTypeVerdict) -> tuple[str, ...]:
    counts = (found.passed, found.failed, found.skipped, found.kernel_calls)
    return (found.dtype, *map(str, counts), _ulp(found.max_ulp), _ulp(found.cpu_ulp))


def _ulp(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


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
    return "\n".join([head, *(f"     {line}" for line in shown)])
