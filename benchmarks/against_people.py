"""Ports that porter writes against kernels that people wrote: the same calls through both, on an NVIDIA GPU.

    python benchmarks/record_launches.py --help              # on the host: makes FOLDER
    python benchmarks/against_people.py FOLDER --compile     # to PTX, with clang and without a GPU
    python benchmarks/against_people.py FOLDER [--out FILE]  # on the GPU: times, and the share of a copy's speed
    python benchmarks/against_people.py FOLDER --table FILE  # what --out kept, as the table of docs/against-people.md

FOLDER has `launches.json`, what host code launches for each call, the Metal that it names, and `inc`, the headers of
both. Nothing of PyTorch's own is kept in this repository. Each row has medians of CUDA events around graphs of calls; a
result that differs from torch's is an error. Ends with 1 where one does.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from aten_overlay.cuda.compile import compile_kernels
from aten_overlay.cuda.library import CudaLibrary, compile_shader
from aten_overlay.metal.build import Options
from aten_overlay.metal.cuda.target import CudaOptions

INDICES, BYTES = "indices", "bytes"
DTYPES = {
    "float": torch.float32, "half": torch.float16, "bfloat": torch.bfloat16, INDICES: torch.int64, BYTES: torch.uint8,
}  # fmt: skip
MOST_ERROR = {"float": 1e-4, "half": 4e-3, "bfloat": 3e-2}  # of the norm of the result
WARM_UP, CALLS, ROUNDS = 3, 8, 15


@dataclass(frozen=True)
class Launch:
    """One kernel of a Metal file.

    Arguments are names of tensors, or `{"bytes": HEX}` for what the host copied: a number, or what a pointer to
    constants gets.
    """

    file: str
    kernel: str
    arguments: tuple[Any, ...]
    threads: tuple[int, ...]
    group: tuple[int, ...]


@dataclass(frozen=True)
class Call:
    """A call of an operator: its tensors as shapes (`out` is the result), torch's own call, and launches by who wrote
    them. `views` are how tensors are made of others, such as `x[:, :100]`; `moves` are bytes at least.
    """

    operator: str
    label: str
    dtype: str
    tensors: Mapping[str, Sequence[int]]
    torch: str
    moves: int
    sides: Mapping[str, Sequence[Launch]]
    views: Mapping[str, str]
    types: Mapping[str, str]  # of tensors that have another


@dataclass(frozen=True)
class Row:
    """Milliseconds by side, torch's, and the share of a copy's speed that each has."""

    operator: str
    label: str
    dtype: str
    times: Mapping[str, float]
    shares: Mapping[str, float]
    errors: Mapping[str, float]


def read_calls(folder: Path) -> list[Call]:
    calls = []
    for fields in json.loads((folder / "launches.json").read_text()):
        sides = {side: [Launch(**launch) for launch in launches] for side, launches in fields["sides"].items()}
        calls.append(Call(**{"views": {}, "types": {}, **fields, "sides": sides}))
    return calls


def list_kernels(calls: Sequence[Call]) -> dict[str, list[str]]:
    """The kernels that are launched, by file."""
    kernels: dict[str, list[str]] = {}
    for call in calls:
        for launch in (launch for launches in call.sides.values() for launch in launches):
            if launch.kernel not in kernels.setdefault(launch.file, []):
                kernels[launch.file].append(launch.kernel)
    return kernels


class Race:
    """The libraries of a folder, and the speed of a copy in bytes a millisecond."""

    def __init__(self, folder: Path, calls: Sequence[Call], cuda: CudaOptions) -> None:
        options = Options(include=(folder / "inc",))
        self.libraries: dict[str, CudaLibrary] = {
            file: compile_shader((folder / file).read_text(), names, options, cuda)
            for file, names in list_kernels(calls).items()
        }
        one, other = (torch.empty(1 << 29, dtype=torch.uint8, device="cuda") for _ in range(2))
        self.copy = 2 * one.numel() / measure(lambda: other.copy_(one))

    def run(self, call: Call) -> Row:
        """Times a call's sides and torch's own."""
        tensors = make_tensors(call)
        inputs = {name: value for name, value in tensors.items() if name != "out"}
        reference = partial(eval, compile(call.torch, call.label, "eval"), {"torch": torch, **inputs})
        exact = reference()
        times, errors = {}, {}
        for side, launches in call.sides.items():
            tensors["out"].fill_(math.nan)
            prepared = [self._prepare(launch, tensors) for launch in launches]
            run = partial(run_all, prepared)
            run()
            errors[side] = difference(tensors["out"], exact)
            times[side] = measure(run)
        times["torch"] = measure(reference)
        shares = {side: call.moves / time / self.copy for side, time in times.items()}
        return Row(call.operator, call.label, call.dtype, times, shares, errors)

    def _prepare(self, launch: Launch, tensors: Mapping[str, torch.Tensor]) -> Callable[[], None]:
        arguments: list[torch.Tensor | list[int] | int] = []
        casts = {}
        for i, argument in enumerate(launch.arguments):
            if isinstance(argument, str):
                arguments.append(tensors[argument])
                continue
            data = bytes.fromhex(argument["bytes"])
            parts = memoryview(data.ljust(-(-len(data) // 4) * 4, b"\0")).cast("i").tolist()
            arguments.append(parts if len(parts) > 1 else parts[0])
            casts[i] = "int32"
        kernel = getattr(self.libraries[launch.file], launch.kernel)
        return partial(kernel, *arguments, threads=launch.threads, group_size=launch.group, arg_casts=casts)


def run_all(prepared: Sequence[Callable[[], None]]) -> None:
    for launch in prepared:
        launch()


def make_tensors(call: Call) -> dict[str, torch.Tensor]:
    """The tensors of a call, of random numbers."""
    torch.manual_seed(0)
    tensors = {}
    for name, shape in call.tensors.items():
        dtype = DTYPES[call.types.get(name, call.dtype)]
        random = torch.rand(tuple(shape), device="cuda")
        tensors[name] = (random * shape[0]).to(dtype) if dtype == torch.int64 else random.to(dtype)
    for name, view in call.views.items():
        tensors[name] = eval(view, {"torch": torch, **tensors})
    return tensors


def difference(result: torch.Tensor, exact: torch.Tensor) -> float:
    """The norm of the error over that of the exact result."""
    exact = exact.reshape(result.shape)
    return float((result.float() - exact.float()).norm() / exact.float().norm().clamp_min(1e-30))


def measure(run: Callable[[], object]) -> float:
    """The median milliseconds of a call: of a CUDA graph of several, so that the host's time for a launch is not in it.

    A Mac's host binds arguments in microseconds; Python, which launches here, takes as long as a small kernel runs.
    """
    for _ in range(WARM_UP):
        run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CALLS):
            run()
    graph.replay()
    events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(ROUNDS)]
    for start, end in events:
        start.record()
        graph.replay()
        end.record()
    torch.cuda.synchronize()
    return float(statistics.median(start.elapsed_time(end) for start, end in events)) / CALLS


def describe(row: Row) -> str:
    """A line of the table: times, how many times as fast as the person's the port is, and shares of a copy."""
    cells = [f"{side} {time:.4f} ({row.shares[side]:.0%})" for side, time in row.times.items()]
    ratios = [
        f"{one}/{other} {row.times[other] / row.times[one]:.2f}"
        for one, other in (("port", "person"), ("port", "before"), ("port", "torch"))
        if {one, other} <= row.times.keys()
    ]
    wrong = [f"{side} DIFFERS {error:.1e}" for side, error in row.errors.items() if not error <= MOST_ERROR[row.dtype]]
    return f"{row.operator} {row.label} {row.dtype}: {', '.join(cells)} | {', '.join((*ratios, *wrong))}"


def find_means(rows: Sequence[Row]) -> list[str]:
    """The geometric mean of the port over each other side, by operator."""
    lines = []
    for operator in dict.fromkeys(row.operator for row in rows):
        for other in ("person", "before", "torch"):
            ratios = [
                row.times[other] / row.times["port"] for row in rows if row.operator == operator and other in row.times
            ]
            if ratios:
                mean = math.exp(statistics.fmean(map(math.log, ratios)))
                lines.append(f"{operator}: port/{other} {mean:.2f}, least {min(ratios):.2f}, of {len(ratios)}")
    return lines


def write_table(rows: Sequence[Row]) -> list[str]:
    """The table of docs/against-people.md: a line a call; of each dtype, how many times as fast as the person's and
    torch's the port is, and its share of a copy's speed.
    """
    lines = [f"| operator | call | {' | '.join(DTYPES)} |", f"|{'---|' * (2 + len(DTYPES))}"]
    for operator, label in dict.fromkeys((row.operator, row.label) for row in rows):
        cells = []
        for dtype in DTYPES:
            same = [row for row in rows if (row.operator, row.label, row.dtype) == (operator, label, dtype)]
            for row in same:
                port, times = row.times["port"], row.times
                ratios = [f"{times[side] / port:.2f}" if side in times else "-" for side in ("person", "torch")]
                cells.append(f"{' / '.join(ratios)} / {row.shares['port']:.0%}")
            cells += [] if same else [""]
        lines.append(f"| {operator} | {label} | {' | '.join(cells)} |")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument(
        "--tensor-cores", action="store_true", help="products of 16-bit simdgroup matrices by tensor cores"
    )
    parser.add_argument("--out", type=Path)
    parser.add_argument("--table", type=Path, help="print the table of a run that --out kept")
    chosen = parser.parse_args()
    if chosen.table:
        print("\n".join(write_table([Row(**row) for row in json.loads(chosen.table.read_text())["rows"]])))
        return 0
    calls, cuda = read_calls(chosen.folder), CudaOptions(tensor_cores=chosen.tensor_cores)
    if chosen.compile:
        for file, names in list_kernels(calls).items():
            options = Options(include=(chosen.folder / "inc",))
            module = compile_kernels((chosen.folder / file).read_text(), names, options, cuda)
            print(f"{file}: {len(module.entries)} kernels", flush=True)
        return 0
    race, rows, failed = Race(chosen.folder, calls, cuda), [], 0
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, copy {race.copy / 1e6:.0f} GB/s", flush=True)
    for call in calls:
        try:
            rows.append(race.run(call))
            print(describe(rows[-1]), flush=True)
            failed += any(not error <= MOST_ERROR[call.dtype] for error in rows[-1].errors.values())
        except RuntimeError as error:
            failed += 1
            print(f"FAILED {call.operator} {call.label} {call.dtype}: {error}", flush=True)
    print("\n".join(find_means(rows)))
    if chosen.out:
        chosen.out.write_text(json.dumps({"copy": race.copy, "rows": [asdict(row) for row in rows]}, indent=1))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
