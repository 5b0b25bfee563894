"""Compiled PTX, and what a launcher has to know of each kernel: read back from the text."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from aten_overlay.errors import OverlayError
from aten_overlay.metal.build import Options, find_instance
from aten_overlay.metal.cuda.target import INFO, CudaOptions, name_symbols
from aten_overlay.metal.source.declarations import Unit
from aten_overlay.metal.source.table import Row, make_row

STATIC_LIMIT = 48 * 1024  # of shared memory that a module may declare
NARROW = 256  # threads of a threadgroup up to which a kernel that needs many registers has an entry with more of them
_MANY = 250  # values of 32 bits in the text of such a kernel
_BOUND = ("buffer", "threadgroup")
_INFO = re.compile(rf"^\.visible [^\n]*\.b8 {INFO}(\d+)\[(\d+)\] = \{{([\d, ]+)\}};\n", re.M)
_ENTRY = re.compile(r"^\.visible \.entry (\w+)\(\n(.*?)\n\)(.*?)^\}", re.M | re.S)
_PARAMETER = re.compile(
    r"^\s*\.param (?:\.align (?P<align>\d+) )?\.(?P<type>\w+)(?: \.ptr[^\n]*?)? \w+(?:\[(?P<size>\d+)\])?,?$", re.M
)
_REGISTERS = re.compile(r"^\s*\.reg \.[bf](32|64)\s+%\w+<(\d+)>;", re.M)
_SHARED = re.compile(r"^\s*(?:\.\w+ )*\.shared \.align \d+ \.(\w+) (\w+)(?:\[(\d+)\])?;", re.M)
_FUNCTION = re.compile(r"^(?:\.\w+ )*\.func [^;]*?\n\{.*?^\}", re.M | re.S)
_WIDTHS = {"u8": 1, "b8": 1, "u16": 2, "b16": 2, "u32": 4, "b32": 4, "f32": 4, "u64": 8, "b64": 8, "f64": 8}


@dataclass(frozen=True)
class Parameter:
    """A parameter of an entry, after the sizes that come first.

    `kind` is "buffer" (an address), "constant" (`size` bytes by value) or "threadgroup" (the offset of its memory);
    `index` is that of the kernel's argument; an element is what is pointed or referred to.
    """

    name: str
    kind: str
    index: int
    size: int
    alignment: int
    element_size: int
    element_alignment: int
    writable: bool


@dataclass(frozen=True)
class Entry:
    """A kernel. `symbols` has the name in PTX of each form; a thread of form "several" has `positions` of the grid.
    `narrow` has names for threadgroups of at most NARROW threads, where those have others."""

    name: str
    symbols: Mapping[str, str]
    positions: int
    parameters: tuple[Parameter, ...]
    thread_limit: int
    static_bytes: int
    synchronizes: bool
    narrow: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PtxModule:
    """PTX as the driver loads it, with its kernels by host name."""

    text: str
    entries: Mapping[str, Entry]


def read_module(text: str, unit: Unit, names: Sequence[str], options: Options, cuda: CudaOptions) -> PtxModule:
    """The module of PTX that was made of `unit`. Raises PTR381 for a kernel with too much threadgroup memory."""
    info = {int(number): _read_numbers(int(size), values) for number, size, values in _INFO.findall(text)}
    text = _INFO.sub("", text)
    bodies = {m[1]: (m[2], m[3]) for m in _ENTRY.finditer(text)}
    shared = {name: _WIDTHS[kind] * int(count or 1) for kind, name, count in _SHARED.findall(text)}
    functions = "".join(_FUNCTION.findall(text))  # any of which a kernel may call
    constants = dict(options.constants)
    values = {c.name: constants.get(c.index, constants.get(c.name)) for c in unit.constants}
    entries = {}
    for number, (name, symbol) in enumerate(zip(names, name_symbols(names), strict=True)):
        row = make_row(unit, find_instance(unit, name), values)
        symbols = {form: f"{symbol}__{form}" for form in cuda.forms if f"{symbol}__{form}" in bodies}
        head, body = bodies[next(iter(symbols.values()))]
        static = sum(size for variable, size in shared.items() if re.search(rf"\b{variable}\b", body + functions))
        if static > STATIC_LIMIT:
            raise _too_large(name, static)
        limit = min(cuda.threads or row.limit, row.limit)
        parameters = tuple(_read_parameters(row, head, info[number][1:]))
        narrow = {form: f"{s}_{NARROW}" for form, s in symbols.items() if limit > NARROW and _needs_many(bodies[s][1])}
        entries[name] = Entry(name, symbols, info[number][0], parameters, limit, static, row.synchronizes, narrow)
    return PtxModule(text + "".join(_write_narrow(text, entry) for entry in entries.values()), entries)


def _needs_many(body: str) -> bool:
    """Whether a kernel may need more registers than a threadgroup of the largest size leaves it."""
    return sum(int(count) * (int(bits) // 32) for bits, count in _REGISTERS.findall(body)) > _MANY


def _write_narrow(text: str, entry: Entry) -> str:
    """A kernel's entries once more, for fewer threads: these may have more registers."""
    copies = []
    for form, narrow in entry.narrow.items():
        symbol = entry.symbols[form]
        start = text.index(f".visible .entry {symbol}(")
        end = text.index("\n}", start) + 2
        copy = re.sub(rf"\b{symbol}(?=\b|_param_)", narrow, text[start:end])
        copies.append(re.sub(r"^\.maxntid \d+", f".maxntid {NARROW}", copy, flags=re.M))
    return "".join(f"{copy}\n" for copy in copies)


def _read_numbers(size: int, values: str) -> tuple[int, ...]:
    """The numbers of an array that is written as bytes, without the zeros at its end."""
    data = bytes(map(int, values.split(","))).ljust(size, b"\0")
    return struct.unpack(f"<{size // 4}I", data)


def _too_large(name: str, static: int) -> OverlayError:
    return OverlayError(
        "PTR381",
        f"kernel `{name}` declares {static} bytes of threadgroup memory; Metal has 32768, an NVIDIA GPU {STATIC_LIMIT}",
        hint="Declare less, or take it as a threadgroup argument.",
    )


def _read_parameters(row: Row, head: str, info: Sequence[int]) -> Iterator[Parameter]:
    found = list(_PARAMETER.finditer(head))[1:]
    bound = [a for a in row.arguments if a.kind in _BOUND]
    for number, (argument, match) in enumerate(zip(bound, found, strict=True)):
        element, alignment, writable = info[3 * number : 3 * number + 3]
        width = _WIDTHS[match["type"]]
        size = int(match["size"]) * width if match["size"] else width
        kind = "constant" if match["size"] and argument.kind == "buffer" else argument.kind
        is_written = bool(writable) and kind != "constant"
        own = int(match["align"] or size)
        yield Parameter(argument.name, kind, argument.index, size, own, element, alignment, is_written)
