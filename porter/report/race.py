"""The output of `porter bench`: a line a call, then ratios by operator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from porter.race.calls import PERSON, PORT, TORCH, Row, Timings

_HEADING = ("operator", "call", "dtype", "port ms", "person ms", "torch ms", "port/person", "port/torch", "of a copy")


def timing_lines(timings: Timings) -> Iterator[str]:
    """Who measured, a table of milliseconds and ratios, their means, and what is wrong or failed."""
    yield f"NVIDIA GPU, not Apple hardware: {timings.device}, a copy runs at {timings.copy / 1e6:.0f} GB/s"
    cells = [_HEADING, *(_list_cells(row) for row in timings.rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for line in cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
    for other in (PERSON, TORCH):
        for operator, (mean, least, count) in timings.find_ratios(other).items():
            yield f"{operator}: port/{other} {mean:.2f} in the geometric mean of {count}, {least:.2f} at least"
    for row in timings.rows:
        for side in row.wrong:
            yield f"{row.operator} {row.label} {row.dtype}: {side} differs from torch by {row.errors[side]:.1e}"
    for call, reason in timings.failures.items():
        yield f"{call}: not timed: {reason}"


def timing_object(timings: Timings) -> dict[str, Any]:
    """The same as one JSON object."""
    means = {
        other: {
            operator: {"mean": mean, "least": least, "calls": count}
            for operator, (mean, least, count) in timings.find_ratios(other).items()
        }
        for other in (PERSON, TORCH)
    }
    return {
        "device": timings.device, "copy_gb_per_s": timings.copy / 1e6, "ratios": means,
        "rows": [{**asdict(row), "wrong": row.wrong} for row in timings.rows], "failures": dict(timings.failures),
    }  # fmt: skip


def _list_cells(row: Row) -> tuple[str, ...]:
    times = (f"{row.times[side]:.4f}" if side in row.times else "-" for side in (PORT, PERSON, TORCH))
    ratios = (
        f"{row.times[side] / row.times[PORT]:.2f}" if {side, PORT} <= row.times.keys() else "-"
        for side in (PERSON, TORCH)
    )
    share = f"{row.shares[PORT]:.0%}" if PORT in row.shares else "-"
    return (row.operator, row.label, row.dtype, *times, *ratios, share)
