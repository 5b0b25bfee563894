"""What a fork's host code launches for each call of calls.yaml: a program that `porter bench` runs with the device.

Runs the fork's own code of some operators on the host, and adds each call's launches to a folder: `launches.json`, the
Metal files that they name, in a folder of the side's name, and the fork's headers, in `inc`. Sides of one folder race
against each other: the checkout's code is `port`, another's is `person`.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import torch

from aten_overlay.device.load import start, started
from aten_overlay.errors import OverlayError
from aten_overlay.metal import compiler
from aten_overlay.metal.build import Options, host_names
from aten_overlay.metal.launch import BufferFields, LaunchFields
from porter.core.errors import Place, PorterError
from porter.core.files import read_regular, write_whole
from porter.core.layout import KERNELS, METAL_HEADERS
from porter.race.calls import BYTES, DTYPES, HEADERS, INDICES, LAUNCHES, MOST_ERROR, RESULT, read_table

FLOATING = [name for name in MOST_ERROR if DTYPES[name].is_floating_point]
LAUNCHED = ctypes.CFUNCTYPE(None, ctypes.POINTER(LaunchFields), ctypes.c_int)


@dataclass(frozen=True)
class LiveCall:
    """A call of an operator in one type: its tensors by name, and the expression that calls it."""

    operator: str
    label: str
    dtype: str
    expression: str
    tensors: Mapping[str, torch.Tensor]
    types: Mapping[str, str]


@dataclass(frozen=True)
class Bound:
    """What is bound at an index: device memory of `length` bytes in all, or bytes that the host copied."""

    address: int
    length: int
    copied: bytes | None


@dataclass(frozen=True)
class BoundLaunch:
    """A kernel and what it is launched with."""

    kernel: str
    buffers: tuple[Bound, ...]
    threads: tuple[int, ...]
    group: tuple[int, ...]
    memory: tuple[int, ...]


@dataclass
class Memory:
    """Names device memory: tensors by where they lie, what else a side binds as scratch memory."""

    tensors: Mapping[int, tuple[str, int]]  # name and bytes, by address
    side: str
    scratch: dict[int, tuple[str, int]] = field(default_factory=dict)

    def name(self, bound: Bound) -> str | dict[str, str | int]:
        """What is bound: a name, or a part of that tensor from a byte on."""
        for address, (name, length) in self.tensors.items():
            if address <= bound.address < address + max(length, 1):
                offset = bound.address - address
                return {"tensor": name, "offset": offset} if offset else name
        name, length = self.scratch.get(bound.address, (f"{self.side}_scratch{len(self.scratch)}", 0))
        self.scratch[bound.address] = name, max(length, bound.length)
        return name


def list_calls(operators: Sequence[str], most: int) -> Iterator[LiveCall]:
    """The calls of the table, with random tensors of at most `most` elements on the device."""
    table = read_table()
    for operator in operators:
        entry = table["operators"][operator]
        sizes = [(shrink(shape, most), dim) for name in entry["shapes"] for shape, dim in table["shapes"][name]]
        expressions = entry["call"] if isinstance(entry["call"], dict) else {"": entry["call"]}
        for shape, dim in dict.fromkeys(sizes):
            for dtype, (computed, expression) in product(entry.get("types", FLOATING), expressions.items()):
                x = torch.randn(shape, dtype=DTYPES[dtype])
                others = {name: make_tensor(kind, x, dim) for name, kind in entry.get("tensors", {}).items()}
                tensors = {"x": x} | others
                types = {name: INDICES for name, tensor in others.items() if tensor.dtype == DTYPES[INDICES]}
                label = f"{'x'.join(map(str, shape))} dim {dim} {computed}".rstrip()
                yield LiveCall(
                    operator, label, dtype, expression.format(dim=dim),
                    {name: tensor.to("mps") for name, tensor in tensors.items()}, types,
                )  # fmt: skip


def make_tensor(kind: str, x: torch.Tensor, dim: int) -> torch.Tensor:
    """Another tensor of a call: indices into a dimension of `x`, a vector as long as one, filters, or as `x` is."""
    if kind in ("indices", "targets", "positions"):
        shapes = {"indices": (x.shape[dim],), "targets": (x.shape[0],), "positions": x.shape}
        return torch.randint(x.shape[dim], tuple(shapes[kind]))
    if kind == "filters":
        return torch.rand(x.shape[1], max(1, x.shape[1] // dim), 3, 3).to(x.dtype)
    vectors = {"rows": x.shape[0], "channels": x.shape[min(1, x.dim() - 1)], "columns": x.shape[-1]}
    return torch.rand(vectors[kind]).to(x.dtype) if kind in vectors else torch.rand_like(x)


def shrink(shape: Sequence[int], most: int) -> tuple[int, ...]:
    """Halves the longest dimension until the shape has at most `most` elements."""
    sizes = list(shape)
    while torch.Size(sizes).numel() > most:
        at = sizes.index(max(sizes))
        sizes[at] //= 2
    return tuple(sizes)


@contextmanager
def recording() -> Iterator[list[BoundLaunch]]:
    """Keeps every launch of this process. Raises RuntimeError for one with textures."""
    launches: list[BoundLaunch] = []

    def keep(launch: Any, _status: int) -> None:
        fields = launch.contents
        buffers = [fields.buffers[index] for index in range(fields.buffer_count)]
        while buffers and not buffers[-1].address:
            buffers.pop()
        name = fields.kernel.contents.host_name.decode()
        memory = fields.threadgroup_bytes[: fields.threadgroup_count]
        while memory and not memory[-1]:
            memory.pop()
        bound = tuple(map(read_bound, buffers))
        launches.append(BoundLaunch(name, bound, tuple(fields.grid), tuple(fields.group), tuple(memory)))

    heard = LAUNCHED(keep)
    hook = ctypes.c_void_p.in_dll(ctypes.CDLL(str(compiler.runtime_library())), "pm_launched")
    before = hook.value
    hook.value = ctypes.cast(heard, ctypes.c_void_p).value
    try:
        yield launches
    finally:
        hook.value = before


def read_bound(buffer: BufferFields) -> Bound:
    """Memory without a base is what the host copied (pm_buffer of aten_overlay/metal/include/porter_metal_abi.h)."""
    is_copied = not buffer.base
    data = ctypes.string_at(buffer.address, buffer.length) if is_copied and buffer.address else b""
    return Bound(buffer.address or 0, buffer.length, data if is_copied else None)


def record(call: LiveCall, side: Path, fork: Path) -> dict[str, Any]:
    """The call's entry of `launches.json`. Copies the Metal files that it names into the folder of its side.

    Raises PTR302 where nothing is launched.
    """
    function = eval(f"lambda {', '.join(call.tensors)}: {call.expression}", {"torch": torch})
    with recording() as launches:
        result = function(**call.tensors)
        torch.mps.synchronize()
    if not launches:
        raise PorterError(
            "PTR302", f"{call.operator} {call.label} {call.dtype} launches no kernel of the checkout", Place(KERNELS),
            hint="Write its port first: porter migrate OP --write.",
        )  # fmt: skip
    device = started() or start()
    tensors = {**call.tensors, RESULT: result}
    places = {device.host_address(tensor.data_ptr()): (name, tensor.nbytes) for name, tensor in tensors.items()}
    memory = Memory(places, side.name)
    written = [write_launch(launch, memory, side, fork) for launch in launches]
    shapes = {name: list(tensor.shape) for name, tensor in tensors.items()}
    scratch = dict(memory.scratch.values())
    return {
        "operator": call.operator, "label": call.label, "dtype": call.dtype,
        "tensors": shapes | {name: [length] for name, length in scratch.items()}, "torch": call.expression,
        "moves": sum(tensor.nbytes for tensor in tensors.values()), "sides": {side.name: written},
        "types": {**call.types, **find_result_type(result, call), **dict.fromkeys(scratch, BYTES)},
        "ends": {name: int(call.tensors[name].max()) + 1 for name in call.types},
    }  # fmt: skip


def find_result_type(result: torch.Tensor, call: LiveCall) -> dict[str, str]:
    names = {dtype: name for name, dtype in DTYPES.items()}
    return {} if names[result.dtype] == call.dtype else {RESULT: names[result.dtype]}


def write_launch(launch: BoundLaunch, memory: Memory, side: Path, fork: Path) -> dict[str, Any]:
    path = find_file(fork, launch.kernel)
    if not (side / path.name).exists():
        side.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, side)
    return {
        "file": f"{side.name}/{path.name}", "kernel": launch.kernel, "threads": launch.threads, "group": launch.group,
        "memory": launch.memory,
        "arguments": [
            memory.name(bound) if bound.copied is None else {"bytes": bound.copied.hex()} for bound in launch.buffers
        ],
    }  # fmt: skip


@cache
def find_file(fork: Path, kernel: str) -> Path:
    """The Metal file of the fork that has a kernel. Raises PTR302 where none has."""
    words = [word for word in kernel.split("_") if len(word) > 2]
    paths = sorted((fork / KERNELS).glob("*.metal"), key=lambda path: -count_words(path, words))
    for path in paths:
        if kernel in names_of(path, fork):
            return path
    raise PorterError(
        "PTR302", f"no kernel file has {kernel}", Place(KERNELS), hint="Build the checkout's own kernels."
    )


def count_words(path: Path, words: Sequence[str]) -> int:
    text = read_regular(path).decode(errors="replace")
    return sum(word in text for word in words)


@cache
def names_of(path: Path, fork: Path) -> frozenset[str]:
    return frozenset(host_names(path, Options(include=(fork,))))


def merge(entries: Sequence[dict[str, Any]], path: Path) -> None:
    """Adds sides to the calls that `path` has, and new calls behind them."""
    calls = {key_of(entry): entry for entry in (json.loads(read_regular(path)) if path.exists() else [])}
    for entry in entries:
        if recorded := calls.get(key_of(entry)):
            entry = {**entry, "sides": recorded["sides"] | entry["sides"]}
            entry |= {name: recorded[name] | entry[name] for name in ("tensors", "types")}
        calls[key_of(entry)] = entry
    write_whole(path, json.dumps(list(calls.values()), indent=1))


def key_of(entry: Mapping[str, Any]) -> tuple[str, str, str]:
    return entry["operator"], entry["label"], entry["dtype"]


def main() -> int:
    """Records for `FOLDER SIDE MOST`: the folder, who wrote the code, and the most elements of a tensor."""
    folder, side, most = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    fork, operators = Path(os.environ["PORTER_CHECKOUT"]), os.environ["PORTER_OPERATORS"].split(",")
    entries = []
    for call in list_calls(operators, most):
        try:
            entries.append(record(call, folder / side, fork))
        except (PorterError, OverlayError) as error:
            print(f"porter: {error}", file=sys.stderr)
            return 1
        kernels = [launch["kernel"] for launch in entries[-1]["sides"][side]]
        print(f"{call.operator} {call.label} {call.dtype}: {', '.join(kernels)}", file=sys.stderr, flush=True)
    shutil.copytree(fork / METAL_HEADERS, folder / HEADERS / METAL_HEADERS, dirs_exist_ok=True)
    merge(entries, folder / LAUNCHES)
    return 0


if __name__ == "__main__":
    sys.exit(main())
