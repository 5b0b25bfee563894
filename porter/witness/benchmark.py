"""Times operators on this Mac's GPU with one torch and with another, and writes a table of both.

    python FILE --old PYTHON --new PYTHON    the interpreters of two environments: two wheels, or two checkouts
    python FILE --label old                  or in one environment after the other: --label old, then --label new
    python FILE --table                      the table again

Needs Python and torch alone. Results are kept in bench-old.json and bench-new.json, in the current folder.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

# The operators: `aten::NAME.OVERLOAD`, and their arguments: "tensor", or a value. "?" is a blank to fill by hand.
CALLS: list[dict[str, Any]] = []
DTYPES = ("float32", "float16", "bfloat16")
SIZE = 1024
SECONDS = 0.2  # at least, of each row
OLD, NEW = "old", "new"
DENSE, TRANSPOSED, STRIDED, BOTH, SCALAR = "dense", "transposed", "strided", "strided and transposed", "scalar"
Record = dict[str, Any]


def list_layouts(tensors: int) -> list[tuple[str, ...]]:
    """The layouts of the tensors of a call, row by row."""
    if tensors == 1:
        return [(DENSE,), (TRANSPOSED,), (STRIDED,), (BOTH,)]
    others = tensors - 1
    pairs = ((DENSE, DENSE), (TRANSPOSED, TRANSPOSED), (DENSE, TRANSPOSED), (TRANSPOSED, DENSE), (DENSE, SCALAR))
    return [(first, *[other] * others) for first, other in pairs] if tensors else []


def make_tensor(layout: str, dtype: str) -> Any:
    """A tensor of numbers between -9 and 9."""
    import torch

    kind, columns = getattr(torch, dtype), 2 * SIZE if layout in (STRIDED, BOTH) else SIZE
    shape = () if layout == SCALAR else (SIZE, columns)
    whole = torch.testing.make_tensor(shape, device="mps", dtype=kind, low=-9, high=9)
    view = whole[:, ::2] if columns > SIZE else whole
    return view.t() if layout in (TRANSPOSED, BOTH) else view


def measure(label: str) -> Record:
    """What one torch measures. A row that it refuses has an `error` in place of `seconds`."""
    import torch

    rows = [
        {"operator": call["operator"], "dtype": dtype, "layout": ", ".join(layouts), **time_call(call, dtype, layouts)}
        for call in CALLS
        for dtype in DTYPES
        for layouts in list_layouts(call["arguments"].count("tensor"))
    ]
    return {"label": label, "torch": torch.__version__, "machine": name_machine(), "rows": rows}


def time_call(call: Record, dtype: str, layouts: Sequence[str]) -> Record:
    """The median seconds of one call that is waited for."""
    import torch
    from torch.utils.benchmark import Timer

    try:
        tensors = iter([make_tensor(layout, dtype) for layout in layouts])
        arguments = [next(tensors) if value == "tensor" else value for value in call["arguments"]]
        name, _, overload = call["operator"].partition(".")
        function = getattr(getattr(torch.ops.aten, name), overload or "default")
        timer = Timer("function(*arguments); wait()", globals={
            "function": function, "arguments": arguments, "wait": torch.mps.synchronize,
        })  # fmt: skip
        return {"seconds": timer.blocked_autorange(min_run_time=SECONDS).median}
    except Exception as error:  # one torch may lack what the other has
        return {"seconds": None, "error": (str(error).strip().splitlines() or [type(error).__name__])[0][:200]}


def name_machine() -> str:
    """This Mac's GPU and system, or what stands in for one elsewhere."""
    if sys.platform != "darwin":
        return "the stand-in for Metal on a processor, not a GPU"
    asked = ["sysctl", "-n", "machdep.cpu.brand_string"]
    chip = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    return f"{chip}, macOS {platform.mac_ver()[0]}"


def write_table(old: Record | None, new: Record | None) -> Iterator[str]:
    """The lines of a table in Markdown: blank where a torch has not measured yet."""
    for label, result in ((OLD, old), (NEW, new)):
        yield f"{label}: torch {result['torch']}, on {result['machine']}" if result else f"{label}: torch __, on __"
    yield ""
    yield "| operator | dtype | layout | old us | new us | old / new |"
    yield "| --- | --- | --- | ---: | ---: | ---: |"
    before, after = index_rows(old), index_rows(new)
    blank = [(call["operator"], dtype, ", ".join(layouts)) for call in CALLS for dtype in DTYPES
             for layouts in list_layouts(call["arguments"].count("tensor"))]  # fmt: skip
    for key in dict.fromkeys([*blank, *before, *after]):
        times = [row.get("seconds") if row else None for row in (before.get(key), after.get(key))]
        shown = [write_time(rows.get(key)) for rows in (before, after)]
        ratio = f"{times[0] / times[1]:.2f}" if times[0] and times[1] else ""
        yield f"| {' | '.join(key)} | {' | '.join(shown)} | {ratio} |"


def index_rows(result: Record | None) -> dict[tuple[str, str, str], Record]:
    """Rows by operator, dtype and layout."""
    rows = result["rows"] if result else []
    return {(row["operator"], row["dtype"], row["layout"]): row for row in rows}


def write_time(row: Record | None) -> str:
    """Microseconds; blank where nothing was measured."""
    if row is None:
        return ""
    return f"{row['seconds'] * 1e6:.1f}" if row["seconds"] else "refused"


def read_result(label: str) -> Record | None:
    """What was measured under a label; None if nothing was."""
    path = Path(f"bench-{label}.json")
    result: Record | None = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    return result


def main(words: Sequence[str] | None = None) -> int:
    """Measures, and prints the table. Returns 2 where there is a blank in `CALLS`, or no mps device."""
    parser = argparse.ArgumentParser(description="Times operators with an old and a new torch on this Mac.")
    parser.add_argument("--label", choices=(OLD, NEW), help="Measure with the torch of this interpreter.")
    parser.add_argument("--old", metavar="PYTHON", help="An interpreter with the old torch.")
    parser.add_argument("--new", metavar="PYTHON", help="An interpreter with the new torch.")
    parser.add_argument("--table", action="store_true", help="Only print the table of what was measured.")
    options = parser.parse_args(words)
    blanks = [call["operator"] for call in CALLS if "?" in call["arguments"]]
    if blanks:
        print(f"fill in the arguments of {', '.join(blanks)} in CALLS: '?' is no value", file=sys.stderr)
        return 2
    for label, interpreter in ((OLD, options.old), (NEW, options.new)):
        if interpreter:
            subprocess.run([interpreter, str(Path(__file__).resolve()), "--label", label], check=True)
    if options.label:
        import torch

        if not torch.backends.mps.is_available():
            print("this benchmark needs a Mac with an mps device, and torch has none here", file=sys.stderr)
            return 2
        text = json.dumps(measure(options.label), indent=1)
        Path(f"bench-{options.label}.json").write_text(f"{text}\n", encoding="utf-8")
    print("\n".join(write_table(read_result(OLD), read_result(NEW))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
