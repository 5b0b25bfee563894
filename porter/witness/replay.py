"""Runs recorded launches of Metal kernels on this machine's GPU, and logs what came of each.

    python witness.py [--launches launches.jsonl] [--log log.jsonl]

Needs Python and a torch wheel with the mps device, and nothing of porter. Each launch gets the same memory as on the
host, and the log says how far the memory that it leaves lies from the host's.
"""

from __future__ import annotations

import argparse
import base64
import json
import platform
import statistics
import subprocess
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

FORMAT = 1  # of a file of launches, and of a log
RAN, NOT_COMPILED, REFUSED, FAILED, SKIPPED = "ran", "not compiled", "refused", "failed", "skipped"
HOST, MPS, CUDA = "host", "mps", "cuda"
_ROUNDS = 7
_WORDS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
Record = dict[str, Any]


@dataclass(frozen=True)
class Machine:
    """What launches run on: a backend, the name of its torch device, its GPU's name, and how Metal is compiled.

    A `virtual` Mac has Apple's paravirtual GPU.
    """

    backend: str
    device: str
    gpu: str
    system: str
    virtual: bool
    compile_shader: Callable[[str], Any]
    synchronize: Callable[[], None]

    def describe(self) -> Record:
        """The first record of a log."""
        return {
            "record": "machine", "format": FORMAT, "backend": self.backend, "gpu": self.gpu, "system": self.system,
            "virtual": self.virtual, "torch": torch.__version__, "python_version": platform.python_version(),
        }  # fmt: skip


def find_machine() -> Machine:
    """This Mac, or what stands in for one elsewhere."""
    is_mac = sys.platform == "darwin"
    model = _ask_system("hw.model") if is_mac else ""
    chip = _ask_system("machdep.cpu.brand_string") if is_mac else ""
    system = f"macOS {platform.mac_ver()[0]} {platform.machine()}" if is_mac else f"{sys.platform} {platform.machine()}"
    named = getattr(torch.backends.mps, "get_name", None) if is_mac else None
    gpu = f"{named() if named else ''} {chip} {model}".strip() if is_mac else "stand-in for Metal"
    backend = MPS if is_mac else HOST
    is_virtual = "virtual" in gpu.lower()
    return Machine(backend, "mps", gpu, system, is_virtual, torch.mps.compile_shader, torch.mps.synchronize)


def _ask_system(key: str) -> str:
    done = subprocess.run(["sysctl", "-n", key], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def read_launches(path: Path) -> Iterator[Record]:
    """The records of a file of launches, one a line. Raises ValueError for another format."""
    with path.open(encoding="utf-8") as lines:
        first = json.loads(next(lines, "{}"))
        if first.get("record") != "launches" or first.get("format") != FORMAT:
            raise ValueError(f"{path} is not a file of launches of format {FORMAT}")
        yield first
        yield from map(json.loads, lines)


def replay(records: Iterable[Record], machine: Machine) -> Iterator[Record]:
    """The records of a log: the machine, one for each launch, and the counts at the end."""
    yield machine.describe()
    libraries: dict[int, Any] = {}
    bounds: Mapping[str, float] = {}
    counts = Counter[str]()
    for record in records:
        match record["record"]:
            case "launches":
                bounds = record["bounds"]
            case "library":
                libraries[record["library"]] = _compile(record, machine)
            case "launch" | "left out":
                line = _run(record, libraries, bounds, machine)
                counts[line["outcome"]] += 1
                yield line
    yield {"record": "end", "counts": dict(counts)}


def _compile(record: Record, machine: Machine) -> Any:
    """The library of a source, or the reason why this machine makes none."""
    try:
        return machine.compile_shader(record["source"])
    except Exception as error:
        return _first_lines(error)


def _run(record: Record, libraries: Mapping[int, Any], bounds: Mapping[str, float], machine: Machine) -> Record:
    line = {"record": "launch", **{name: record[name] for name in ("subject", "kernel", "dtype")}}
    if record["record"] == "left out":
        return {**line, "outcome": SKIPPED, "reason": record["reason"]}
    if machine.virtual and record["lacks"]:
        return {**line, "outcome": REFUSED, "reason": record["lacks"]}
    library = libraries[record["library"]]
    if isinstance(library, str):
        return {**line, "outcome": NOT_COMPILED, "reason": library}
    try:
        kernel = getattr(library, record["kernel"])
    except Exception as error:  # where the pipeline of a kernel is made, Apple's compiler may still refuse it
        return {**line, "outcome": NOT_COMPILED, "reason": _first_lines(error)}
    try:
        memory = [restore(each, machine.device) for each in record["memory"]]
        arguments = [bind(argument, memory) for argument in record["arguments"]]
        _call(kernel, arguments, record)
        machine.synchronize()
        compared = [measure(each, tensor.cpu(), bounds) for each, tensor in zip(record["memory"], memory, strict=True)]
        # The median seconds of a launch, each waited for
        spans = []
        for _ in range(_ROUNDS):
            start = time.perf_counter()
            (lambda: _call(kernel, arguments, record))()
            machine.synchronize()
            spans.append(time.perf_counter() - start)
        seconds = statistics.median(spans)
    except Exception as error:
        return {**line, "outcome": FAILED, "reason": _first_lines(error)}
    return {**line, "outcome": RAN, **_add(compared), "seconds": seconds}


def _call(kernel: Any, arguments: Sequence[Any], record: Record) -> None:
    casts = {int(index): cast for index, cast in record["arg_casts"].items()}
    kernel(*arguments, threads=record["threads"], group_size=record["group_size"], arg_casts=casts or None)


def pack(tensor: torch.Tensor) -> str:
    """The bytes of a dense CPU tensor as text."""
    data = tensor.view(torch.uint8).numpy().tobytes() if tensor.numel() else b""
    return base64.b64encode(zlib.compress(data)).decode()


def unpack(text: str, dtype: str) -> torch.Tensor:
    """A dense CPU tensor of the elements whose bytes `pack` wrote."""
    data = bytearray(zlib.decompress(base64.b64decode(text)))
    kind = getattr(torch, dtype)
    return torch.frombuffer(data, dtype=torch.uint8).view(kind) if data else torch.empty(0, dtype=kind)


def restore(memory: Record, device: str) -> torch.Tensor:
    """The memory of a launch before it, as a flat tensor on the device."""
    return unpack(memory["before"], memory["dtype"]).to(device)


def bind(argument: Any, memory: Sequence[torch.Tensor]) -> Any:
    """An argument of a launch: a view of its memory, or numbers."""
    if not isinstance(argument, dict):
        return argument
    whole = memory[argument["memory"]]
    viewed = whole if argument["dtype"] == _name(whole.dtype) else whole.view(getattr(torch, argument["dtype"]))
    return viewed.as_strided(argument["shape"], argument["stride"], argument["offset"])


def measure(memory: Record, result: torch.Tensor, bounds: Mapping[str, float]) -> Record:
    """How far memory lies from what the host's launch left there, where either launch wrote.

    Of the `elements` written, `equal` have the same bits, and `different` lie farther apart than two roundings of their
    type, relative and absolute, as `bounds` has them. `max_ulp` is the largest distance of numbers that do not differ,
    in units in the last place.
    """
    dtype = memory["dtype"]
    before = unpack(memory["before"], dtype)
    wanted = unpack(memory["after"], dtype) if memory["after"] is not None else before
    written = (_bits(result) != _bits(before)) | (_bits(wanted) != _bits(before))
    result, wanted = _real(result)[written], _real(wanted)[written]
    if not written.any():
        return {"elements": 0, "equal": 0, "different": 0, "max_ulp": None, "first": ""}
    same = _bits(result) == _bits(wanted)
    if not result.dtype.is_floating_point:
        return {**_count(same, ~same, result, wanted), "max_ulp": None}
    same = same | (result.isnan() & wanted.isnan())
    bound = bounds.get(dtype, 0.0)
    close = torch.isclose(result.double(), wanted.double(), rtol=bound, atol=bound, equal_nan=True)
    steps = (_ordered(result) - _ordered(wanted)).abs()[close & ~same]
    return {**_count(same, ~close, result, wanted), "max_ulp": int(steps.max()) if steps.numel() else 0}


def _count(same: torch.Tensor, differ: torch.Tensor, result: torch.Tensor, wanted: torch.Tensor) -> Record:
    at = int(differ.nonzero()[0]) if differ.any() else -1
    first = f"{result[at].item()}, not {wanted[at].item()}" if at >= 0 else ""
    return {"elements": same.numel(), "equal": int(same.sum()), "different": int(differ.sum()), "first": first}


def _real(tensor: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(tensor).flatten() if tensor.is_complex() else tensor


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    tensor = _real(tensor)
    return tensor.view(_WORDS[tensor.element_size()])


def _ordered(tensor: torch.Tensor) -> torch.Tensor:
    """Whole numbers in the order of the floating-point ones, a unit in the last place apart; both zeros are 0."""
    bits = _bits(tensor)
    lowest = torch.iinfo(bits.dtype).min
    return torch.where(bits < 0, lowest - bits.long(), bits.long())


def _add(compared: Sequence[Record]) -> Record:
    """The counts of all memory of a launch."""
    measured = [each["max_ulp"] for each in compared if each["max_ulp"] is not None]
    sums = {name: sum(each[name] for each in compared) for name in ("elements", "equal", "different")}
    first = next((each["first"] for each in compared if each["first"]), "")
    return {**sums, "max_ulp": max(measured, default=None), "first": first}


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _first_lines(error: Exception) -> str:
    return "\n".join(str(error).strip().splitlines()[:3])[:500] or type(error).__name__


def main(arguments: Sequence[str] | None = None) -> int:
    """Replays a file of launches. Returns 0 once each was tried, whatever came of it, and 2 without an mps device."""
    folder = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description="Runs recorded launches of Metal kernels on this Mac.")
    parser.add_argument("--launches", type=Path, default=folder / "launches.jsonl", metavar="FILE")
    parser.add_argument("--log", type=Path, default=Path("log.jsonl"), metavar="FILE")
    options = parser.parse_args(arguments)
    if not torch.backends.mps.is_available():
        print("witness.py needs a Mac with an mps device, and torch has none here", file=sys.stderr)
        return 2
    ended: Record = {}
    with options.log.open("w", encoding="utf-8") as log:
        for ended in replay(read_launches(options.launches), find_machine()):
            log.write(json.dumps(ended) + "\n")
            log.flush()  # a launch that ends the process is the one after the last line
    print(f"{options.log}: {', '.join(f'{count} {outcome}' for outcome, count in ended['counts'].items())}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
