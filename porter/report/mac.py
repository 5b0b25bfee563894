"""The output of `porter mac compare`: logs side by side, by kernel and element type."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from porter.report.console import printable
from porter.witness.log import RAN, Cell, Comparison, Log, Row

_HEADING = ("subject", "kernel", "dtype", "ran", "same bits", "max ULP", "us")
_MOST_SHOWN = 20  # rows of one kind of finding


def comparison_lines(comparison: Comparison) -> Iterator[str]:
    """What each log is of, a table for each, what differs from the host, and what only some of them do."""
    for log in comparison.logs:
        yield f"{log.name}: {log.machine}"
        yield f"  {', '.join(f'{count} {outcome}' for outcome, count in log.counts.items())}"
        if not log.whole:
            yield "  it ends early: the launch after its last line ended the process"
    for at, log in enumerate(comparison.logs):
        yield from ("", log.name, *_table(comparison, at))
    for at, log in enumerate(comparison.logs):
        yield from _findings(f"{log.name}: other values than the host's", list(_differences(comparison, at)))
        yield from _findings(f"{log.name}: did not run", list(_refusals(comparison, at)))
    yield from _findings(
        "ran on some machines only",
        [_describe_one_sided(row, comparison) for row in [row for row in comparison.rows if row.is_one_sided]],
    )


def comparison_object(comparison: Comparison) -> dict[str, Any]:
    """The same as one JSON object."""
    return {
        "agrees": comparison.agrees,
        "logs": [
            {"name": log.name, "machine": asdict(log.machine), "whole": log.whole, "counts": log.counts}
            for log in comparison.logs
        ],
        "kernels": [
            {
                "subject": row.subject, "kernel": row.kernel, "dtype": row.dtype, "only_some": row.is_one_sided,
                "logs": [_cell_object(cell) for cell in row.cells],
            }
            for row in comparison.rows
        ],
    }  # fmt: skip


def _cell_object(cell: Cell | None) -> dict[str, Any] | None:
    return None if cell is None else {**asdict(cell), "outcomes": dict(cell.outcomes)}


def _table(comparison: Comparison, at: int) -> Iterator[str]:
    """A line for each kernel that a log has, in columns."""
    rows = [_HEADING, *(_columns(row, cell) for row in comparison.rows if (cell := row.cells[at]))]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADING))]
    for row in rows:
        names = [text.ljust(width) for text, width in zip(row[:3], widths[:3], strict=True)]
        numbers = [text.rjust(width) for text, width in zip(row[3:], widths[3:], strict=True)]
        yield f"  {'  '.join([*names, *numbers])}".rstrip()


def _columns(row: Row, cell: Cell) -> tuple[str, ...]:
    same = f"{cell.equal}/{cell.elements}" if cell.elements else ""
    ulp = "" if cell.max_ulp is None else str(cell.max_ulp)
    micros = "" if cell.seconds is None else f"{cell.seconds * 1e6:.0f}"
    ran = f"{cell.ran}/{sum(cell.outcomes.values())}"
    return (printable(row.subject), printable(row.kernel), row.dtype, ran, same, ulp, micros)


def _differences(comparison: Comparison, at: int) -> Iterator[str]:
    for row in comparison.rows:
        cell = row.cells[at]
        if cell and cell.different:
            yield f"{_name(row)}: {cell.different} of {cell.elements} elements, first {cell.first}"


def _refusals(comparison: Comparison, at: int) -> Iterator[str]:
    for row in comparison.rows:
        cell = row.cells[at]
        for outcome, count in cell.outcomes.items() if cell else ():
            if outcome != RAN and cell:
                yield f"{_name(row)}: {count} {outcome}: {cell.reason.splitlines()[0] if cell.reason else '?'}"


def _describe_one_sided(row: Row, comparison: Comparison) -> str:
    ran = [log.name for log, cell in zip(comparison.logs, row.cells, strict=True) if cell and cell.ran]
    return f"{_name(row)}: {', '.join(ran)}"


def _findings(title: str, lines: list[str]) -> Iterator[str]:
    if lines:
        yield from ("", f"{title}: {len(lines)}")
        yield from (f"  {printable(line)}" for line in lines[:_MOST_SHOWN])
    if len(lines) > _MOST_SHOWN:
        yield f"  and {len(lines) - _MOST_SHOWN} more (--json has all)"


def _name(row: Row) -> str:
    return " ".join(filter(None, (row.subject, row.kernel, row.dtype)))


def log_line(log: Log) -> str:
    """One line of what came of each launch."""
    return f"{log.name}: {', '.join(f'{count} {outcome}' for outcome, count in log.counts.items() if count)}"
