"""What `porter run` says of a program's kernels: text, and JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aten_overlay.runs.origin import Origin
    from aten_overlay.runs.reading import Finding, Run

VERSION = 1
_MOST_KERNELS = 8  # of a producer
_MOST_OPERATORS = 6  # of a kernel


@dataclass(frozen=True)
class _Line:
    """What a line says of a kernel: `operators` are those of its graph, or the one that had it compiled."""

    name: str
    operators: tuple[str, ...]
    place: str
    source: str


def run_lines(
    run: Run, checks: Sequence[str], keep: Path | None, as_mac: Sequence[str] = (), title: str = "porter run"
) -> list[str]:
    """A line of counts, one for each producer and its kernels, then the findings."""
    processes = "" if run.processes <= 1 else f", in {run.processes} processes"
    watched = f"sanitizer: {', '.join(checks)}" if checks else "sanitizer off: --sanitize all watches every launch"
    counts = f"{_count(run.compiled, 'kernel')} compiled, {_count(run.launches, 'launch')}"
    lines = [f"{title}: {counts}{processes} ({watched})"]
    if as_mac:
        lines.append(f"  files below {', '.join(as_mac)} saw a Mac")
    for producer, kernels in _by_producer(run).items():
        lines.append(f"  {producer}: {_count(len(kernels), 'kernel')}, {_count(kernels.total(), 'launch')}")
        lines += [f"    {line}" for line in _kernel_lines(kernels)]
    for finding in run.findings:
        lines += _finding_lines(finding, keep)
    if keep is not None:
        lines.append(f"  sources: {keep}")
    return lines


def run_object(run: Run, checks: Sequence[str], code: int, as_mac: Sequence[str] = ()) -> dict[str, Any]:
    """The same as JSON, with every kernel."""
    return {
        "version": VERSION,
        "exit_code": code,
        "processes": run.processes,
        "sanitizer": list(checks),
        "as_mac": list(as_mac),
        "compiled": run.compiled,
        "launches": run.launches,
        "producers": {
            producer: {"kernels": len(kernels), "launches": kernels.total()}
            for producer, kernels in _by_producer(run).items()
        },
        "kernels": [
            {
                "name": kernel.name,
                **_origin_object(kernel.origin),
                "launched_by": kernel.operator,
                "launches": kernel.launches,
                "source": kernel.source,
            }
            for kernel in run.kernels
        ],
        "findings": [
            {
                "code": finding.code,
                "text": finding.text,
                "kernel": finding.kernel,
                "place": finding.origin.place,
                "function": finding.origin.function,
                "running": list(finding.operators),
                "made_by": _origin_object(finding.kernel_origin) if finding.kernel_origin else None,
                "source": finding.source,
                "count": finding.count,
            }
            for finding in run.findings
        ],
    }


def _by_producer(run: Run) -> dict[str, Counter[_Line]]:
    """The kernels of each producer with their launches, whichever operators made these."""
    producers: dict[str, Counter[_Line]] = {}
    for kernel in run.kernels:
        operators = kernel.origin.operators or (() if kernel.origin.place else (kernel.operator,))
        line = _Line(kernel.name, tuple(filter(None, operators)), _place_text(kernel.origin), kernel.source)
        producers.setdefault(kernel.origin.producer, Counter())[line] += kernel.launches
    return producers


def _kernel_lines(kernels: Counter[_Line]) -> Iterator[str]:
    launched = [line for line, _ in kernels.most_common() if kernels[line]]
    for line in launched[:_MOST_KERNELS]:
        operators = f" of {_shorten(line.operators)}" if line.operators else ""
        place = f", {line.place}" if line.place else ""
        yield f"{line.name}{operators}: {_count(kernels[line], 'launch')}{place}"
    if len(launched) > _MOST_KERNELS:
        yield f"and {len(launched) - _MOST_KERNELS} more (--json FILE lists all)"
    if idle := len(kernels) - len(launched):
        yield f"and {idle} compiled and not launched"


def _finding_lines(finding: Finding, keep: Path | None) -> Iterator[str]:
    times = f" ({finding.count} times)" if finding.count > 1 else ""
    yield f"{finding.code}{times}: {finding.text}"
    if finding.origin.place:
        yield f"  launched at {_place_text(finding.origin)}"
    if finding.operators:
        yield f"  in {' > '.join(finding.operators)}"
    maker = finding.kernel_origin
    if maker is not None:
        operators = f", of {_shorten(maker.operators)}" if maker.operators else ""
        generated = f", {maker.generated}" if maker.generated else ""
        yield f"  kernel made by {maker.producer}{operators}{generated}"
    if finding.source and keep is not None:
        yield f"  source: {keep / finding.source}"


def _shorten(operators: Sequence[str]) -> str:
    more = f" and {len(operators) - _MOST_OPERATORS} more" if len(operators) > _MOST_OPERATORS else ""
    return f"{', '.join(operators[:_MOST_OPERATORS])}{more}"


def _place_text(origin: Origin) -> str:
    is_named = origin.function and not origin.function.startswith("<")
    return f"{origin.place} in {origin.function}" if is_named else origin.place


def _origin_object(origin: Origin) -> dict[str, Any]:
    return {**asdict(origin), "operators": list(origin.operators)}


def _count(number: int, noun: str) -> str:
    plural = f"{noun}es" if noun.endswith("ch") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"
