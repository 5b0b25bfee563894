"""Times Metal kernels on this Mac's GPU beside torch's own operators, and writes a table.

    python FILE            measure, and print the table
    python FILE --table    print the table alone, to be filled in

Needs Python and torch alone. Each case launches its kernels as the script that they come from does, on made numbers.
"""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

# The Metal sources, and the cases: the launches of each, in order, and what torch computes instead.
SOURCES: list[str] = []
CASES: list[dict[str, Any]] = []
REFERENCES: dict[str, Callable[..., Any]] = {}
SECONDS = 0.2  # at least, of each measurement


def make_value(value: Any) -> Any:
    """A tensor as it was described, of numbers between its least and its greatest; anything else as it is."""
    if not isinstance(value, dict):
        return value
    dtype, low, high = getattr(torch, value["dtype"]), value["low"], value["high"]
    count = (
        value["offset"] + 1 + sum((size - 1) * step for size, step in zip(value["shape"], value["stride"], strict=True))
    )
    count = 0 if 0 in value["shape"] else count
    if dtype.is_floating_point or dtype.is_complex:
        whole = (torch.rand(count) * (high - low) + low).to(dtype)
    else:
        whole = torch.randint(low, high + 1, (count,)).to(dtype)
    return whole.to("mps").as_strided(value["shape"], value["stride"], value["offset"])


def prepare_launch(launch: dict[str, Any]) -> Callable[[], object]:
    """One launch, compiled."""
    function = getattr(torch.mps.compile_shader(SOURCES[launch["source"]]), launch["kernel"])
    arguments = [make_value(value) for value in launch["arguments"]]
    options = {"threads": launch["threads"], "group_size": launch["group_size"]}
    casts = {int(at): cast for at, cast in launch["arg_casts"].items()}
    return lambda: function(*arguments, **options, arg_casts=casts or None)


def prepare_reference(case: dict[str, Any]) -> Callable[[], object] | None:
    """What torch computes in a case's place; None where the table has no such time."""
    function = REFERENCES.get(case["reference"])
    values = [make_value(value) for value in case["values"]]
    return None if function is None else lambda: function(*values)


def measure(calls: Sequence[Callable[[], object]]) -> float:
    """The median seconds of calls that are waited for together."""
    from torch.utils.benchmark import Timer

    def run() -> None:
        for call in calls:
            call()
        torch.mps.synchronize()

    run()
    return float(Timer("run()", globals={"run": run}).blocked_autorange(min_run_time=SECONDS).median)


def measure_case(case: dict[str, Any]) -> list[str]:
    """The last cells of a row."""
    try:
        kernel = measure([prepare_launch(launch) for launch in case["launches"]])
        reference = prepare_reference(case)
        theirs = measure([reference]) if reference else None
    except Exception as error:  # a row that cannot be measured here says so
        return [(str(error).strip().splitlines() or [type(error).__name__])[0][:100], "", ""]
    ratio = f"{theirs / kernel:.2f}" if theirs else ""
    return [f"{kernel * 1e6:.1f}", f"{theirs * 1e6:.1f}" if theirs else "", ratio]


def write_table(measured: bool) -> Iterator[str]:
    """The lines of a table in Markdown: blank unless it is measured."""
    yield f"torch {torch.__version__}, on {name_machine()}" if measured else "torch __, on __"
    yield ""
    yield "| stage | case | kernel us | torch us | torch / kernel |"
    yield "| --- | --- | ---: | ---: | ---: |"
    for case in CASES:
        cells = measure_case(case) if measured else ["", "", ""]
        yield f"| {' | '.join((case['stage'], case['case'], *cells))} |"


def name_machine() -> str:
    """This Mac's GPU and system, or what stands in for one elsewhere."""
    if sys.platform != "darwin":
        return "the stand-in for Metal on a processor, not a GPU"
    asked = ["sysctl", "-n", "machdep.cpu.brand_string"]
    chip = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    return f"{chip}, macOS {platform.mac_ver()[0]}"


def main(words: Sequence[str] | None = None) -> int:
    """Measures and prints the table. Returns 2 where there is no mps device."""
    parser = argparse.ArgumentParser(description="Times Metal kernels beside torch's operators on this Mac.")
    parser.add_argument("--table", action="store_true", help="Only print the table, to be filled in.")
    options = parser.parse_args(words)
    if not options.table and not torch.backends.mps.is_available():
        print("this benchmark needs a Mac with an mps device, and torch has none here", file=sys.stderr)
        return 2
    for line in write_table(not options.table):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
