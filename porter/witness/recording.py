"""Records launches of kernels that `torch.mps.compile_shader` compiled: their memory before and after, and the grid."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from porter.core.dtypes import name_torch
from porter.witness.replay import FORMAT, Record, pack

MOST_BYTES = 1 << 17  # of a launch's memory
MOST_LAUNCHES = 4  # of a kernel, each with other shapes, strides or numbers
TOO_LARGE, UNKNOWN_ARGUMENT = f"its memory is larger than {MOST_BYTES >> 10} KiB", "an argument is no tensor or number"
# What a kernel of a source needs that the paravirtual GPU of a virtual Mac lacks; "" for nothing.
FindLack = Callable[[str, str], str]


@dataclass
class Recording:
    """Launches as records for `replay`: sources once, then each launch, or that it was left out and why."""

    find_lack: FindLack
    records: list[Record] = field(default_factory=list)
    subject: str = ""
    _libraries: dict[str, int] = field(default_factory=dict)
    _seen: dict[tuple[int, str], set[str]] = field(default_factory=dict)
    _lacks: dict[tuple[int, str], str] = field(default_factory=dict)

    def leave_out(self, reason: str, kernel: str = "", dtype: str = "", case: str = "") -> None:
        """Counts what is not witnessed of the subject: a case of a script, or a kernel."""
        named = {"subject": self.subject, "kernel": kernel, "dtype": dtype, "case": case}
        record = {"record": "left out", **named, "reason": reason}
        if record not in self.records:
            self.records.append(record)

    def lines(self, header: Mapping[str, Any]) -> Iterator[str]:
        """The lines of a file of launches; `header` goes into the first."""
        yield json.dumps({"record": "launches", "format": FORMAT, **header})
        yield from map(json.dumps, self.records)

    @property
    def counts(self) -> Counter[str]:
        """How many records there are of each kind."""
        return Counter(each["record"] for each in self.records)

    def launch(self, kernel: Any, name: str, source: str, arguments: Sequence[Any], options: Mapping[str, Any]) -> None:
        """Runs a kernel, and records the launch unless one like it was recorded, or many of the kernel were."""
        if source not in self._libraries:
            self._libraries[source] = len(self._libraries)
            self.records.append({"record": "library", "library": self._libraries[source], "source": source})
        library = self._libraries[source]
        seen, likeness = self._seen.setdefault((library, name), set()), _describe(arguments, options)
        wanted = likeness not in seen and len(seen) < MOST_LAUNCHES
        tensors = [value for value in arguments if isinstance(value, torch.Tensor)]
        dtype = name_torch(tensors[0].dtype) if tensors else ""
        if not wanted or not self._can_hold(name, dtype, arguments, tensors):
            kernel(*arguments, **options)
            return
        seen.add(likeness)
        memory: dict[int, int] = {}
        whole: list[torch.Tensor] = []
        for tensor in tensors:
            start = tensor.untyped_storage().data_ptr()
            if start not in memory:
                memory[start] = len(whole)
                whole.append(tensor.as_strided((tensor.untyped_storage().nbytes() // tensor.element_size(),), (1,), 0))
        before = [pack(each.cpu()) for each in whole]
        kernel(*arguments, **options)
        after = [pack(each.cpu()) for each in whole]
        written = [each.dtype for each, old, new in zip(whole, before, after, strict=True) if old != new]
        casts = options.get("arg_casts") or {}
        self.records.append({
            "record": "launch", "subject": self.subject, "library": library, "kernel": name,
            "dtype": name_torch(written[0]) if written else dtype, "lacks": self._find_lack(library, name, source),
            "memory": [
                {"dtype": name_torch(storage.dtype), "before": old, "after": new if new != old else None}
                for storage, old, new in zip(whole, before, after, strict=True)
            ],
            "arguments": [_write(value, memory) for value in arguments],
            "threads": list_sizes(options.get("threads")), "group_size": list_sizes(options.get("group_size")),
            "arg_casts": dict.fromkeys(range(len(arguments)), casts) if isinstance(casts, str) else dict(casts),
        })  # fmt: skip

    def _can_hold(self, name: str, dtype: str, arguments: Sequence[Any], tensors: Sequence[torch.Tensor]) -> bool:
        sizes = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}
        holds_values = all(isinstance(v, torch.Tensor | int | float | list | tuple) for v in arguments)
        if holds_values and sum(sizes.values()) <= MOST_BYTES:
            return True
        self.leave_out(TOO_LARGE if holds_values else UNKNOWN_ARGUMENT, name, dtype)
        return False

    def _find_lack(self, library: int, name: str, source: str) -> str:
        if (library, name) not in self._lacks:
            self._lacks[library, name] = self.find_lack(source, name)
        return self._lacks[library, name]


class Recorder(Protocol):
    """What hears of launches."""

    def launch(self, kernel: Any, name: str, source: str, arguments: Sequence[Any], options: Mapping[str, Any]) -> None:
        """Runs a launch, and keeps what it wants of it."""


@contextmanager
def recording(into: Recorder) -> Iterator[None]:
    """Tells a recorder of the launches of every library that a block compiles."""
    compile_shader = torch.mps.compile_shader
    torch.mps.compile_shader = lambda source: _Library(compile_shader(source), source, into)
    try:
        yield
    finally:
        torch.mps.compile_shader = compile_shader


@dataclass
class _Library:
    library: Any
    source: str
    into: Recorder

    def __dir__(self) -> list[str]:
        return dir(self.library)

    def __getattr__(self, name: str) -> _Kernel:
        return _Kernel(getattr(self.library, name), name, self.source, self.into)


@dataclass
class _Kernel:
    kernel: Any
    name: str
    source: str
    into: Recorder

    def __call__(self, *arguments: Any, **options: Any) -> None:
        self.into.launch(self.kernel, self.name, self.source, arguments, options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kernel, name)


def _write(value: Any, memory: Mapping[int, int]) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return {
        "memory": memory[value.untyped_storage().data_ptr()], "dtype": name_torch(value.dtype),
        "shape": list(value.shape), "stride": list(value.stride()), "offset": value.storage_offset(),
    }  # fmt: skip


def _describe(arguments: Sequence[Any], options: Mapping[str, Any]) -> str:
    """What tells launches apart: layouts, numbers and the grid, without the values of tensors."""
    layouts = [(v.shape, v.stride(), v.dtype) if isinstance(v, torch.Tensor) else v for v in arguments]
    return repr((layouts, sorted(options.items(), key=str)))


def list_sizes(sizes: Any) -> list[int] | None:
    """One to three sizes of a grid as a list; None where there are none."""
    if sizes is None:
        return None
    return [sizes] if isinstance(sizes, int) else [int(size) for size in sizes]
