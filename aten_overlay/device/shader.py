"""`torch.mps.compile_shader` over kernels compiled for the host, with the behavior of PyTorch's own binding.

Source: torch/csrc/mps/Module.cpp and MetalKernelFunction in ATen/native/mps/OperationUtils.mm.
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy
import torch

from aten_overlay.device.groups import choose_open, note
from aten_overlay.device.windows import find_window
from aten_overlay.errors import OverlayError
from aten_overlay.lint import Finding, lint, warn, warn_of_launch
from aten_overlay.metal.build import Options, compile_text, preprocess, read_unit
from aten_overlay.metal.launch import Extent, Library
from aten_overlay.metal.sanitizer.checks import NAMES, select
from aten_overlay.runs.journal import note_kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from aten_overlay.device.state import Device

    Bytes: TypeAlias = NDArray[numpy.uint8]

_MOST_THREADS = 1024
_WIDTH = 32
_MOST_DIMENSIONS = 3
_CASTS: Mapping[str, torch.dtype] = {
    "fp16": torch.float16, "bf16": torch.bfloat16, "int32": torch.int32, "int16": torch.int16, "int8": torch.int8,
    "uint8": torch.uint8,
}  # fmt: skip
# What numbers of a type, with a cast, are in C. The others go through torch.
_PLAIN: Mapping[tuple[type, str | None], type[Any]] = {
    (float, None): ctypes.c_float, (bool, "uint8"): ctypes.c_uint8, (int, "int32"): ctypes.c_int32,
    (int, None): ctypes.c_int64,
}  # fmt: skip
_TOO_LARGE = 1 << 63
_MOST_POSITIONS = 1 << 32
_NARROW = {torch.float64: torch.float32, torch.complex128: torch.complex64}
# struct ErrorMessage of c10/metal/error.h: file, func, message, line; its buffer begins with their count.
_MESSAGE = struct.Struct("128s128s250s2xI")
_MESSAGES = 30

calls: Counter[str] = Counter()  # launches by host_name, since the start


@dataclass(frozen=True)
class Bound:
    """Memory bound to a kernel's argument: where the kernel starts, and the whole of the buffer it lies in.

    `extent` are the bytes from the start on that are the tensor's, up to its last element; 0 where it has none.
    """

    address: int
    base: int
    length: int
    owner: object
    extent: int = 0

    def data_ptr(self) -> int:
        return self.address

    def untyped_storage(self) -> Bound:
        return Bound(self.base, self.base, self.length, self.owner)

    def nbytes(self) -> int:
        return self.length


@cache
def _typed(dtype: torch.dtype) -> torch.Tensor:
    return torch.empty(0, dtype=dtype)


class Numbers:
    """A number or a list of them as a kernel gets it; `owner` tells their type."""

    def __init__(self, values: Sequence[int | float], cast: str | None) -> None:
        packed = pack_numbers(values, cast)
        self.__array_interface__, self.ctypes, self.nbytes = packed.__array_interface__, packed.ctypes, packed.nbytes
        self.owner = _typed(_CASTS[cast] if cast else torch.float32 if isinstance(values[0], float) else torch.int64)


class ShaderLibrary:
    """Metal source compiled for the host: each kernel is an attribute, compiled when it is first asked for.

    `checked` makes an access out of bounds an error, `sanitize` all that the sanitizer finds, unless the environment
    says otherwise (see aten_overlay/metal/sanitizer/checks.py); `shuffle` is the seed of a shuffled lane order;
    `traced` tells who writes what (see aten_overlay/metal/tracing.py), one thread after the other; `arithmetic` is
    a key of ARITHMETICS.
    Raises SyntaxError with the compiler's message if none of its kernels compiles.
    """

    def __init__(
        self,
        source: str | Path,
        device: Device,
        *,
        checked: bool = False,
        shuffle: int | None = None,
        traced: bool = False,
        sanitize: bool = False,
        arithmetic: str = "default",
    ) -> None:
        watched = select(NAMES if sanitize else ())
        options = Options(
            include=(device.fork,), checked=checked or traced, traced=traced, sanitize=watched, arithmetic=arithmetic
        )
        self._source, self._options, self._device = source, options, device
        self._text = ""  # of the source, preprocessed once for all of its kernels
        self._shuffle, self._threads = shuffle, int(traced)
        self._libraries: dict[str, Library] = {}
        try:
            self._text = preprocess(source, self._options)
            unit = read_unit(self._text)
            self._names = tuple(instance.host_name for instance in unit.instances)
            self._compile_any()
        except OverlayError as error:
            raise SyntaxError(f"Failed to create metal library, error: {error}") from error
        self._findings = lint(unit)
        warn(self._findings)

    def _compile_any(self) -> None:
        """Compiles a kernel, so that a source in which nothing is right is refused. Raises the first one's error."""
        first: OverlayError | None = None
        for name in self._names:
            try:
                self._compile(name)
                return
            except OverlayError as error:
                first = first or error
        if first is not None:
            raise first
        compile_text(self._text, (), self._options)

    def _compile(self, name: str) -> Library:
        if name not in self._libraries:
            path = compile_text(self._text, [name], self._options)
            note_kernels(path, [name], self._source)
            self._libraries[name] = Library(path)
        return self._libraries[name]

    def __dir__(self) -> list[str]:
        return list(self._names)

    def __getattr__(self, name: str) -> MetalKernel:
        if name.startswith("__") or name not in self._names:
            raise (AttributeError if name.startswith("__") else RuntimeError)(
                f"Failed to create function state object for: {name}"
            )
        try:
            library = self._compile(name)
        except OverlayError as error:
            raise RuntimeError(f"Failed to create function state object for: {name}, error: {error}") from error
        findings = tuple(finding for finding in self._findings if finding.kernel == name)
        watches_writes = "uninitialized" in self._options.sanitize
        return MetalKernel(library, name, self._device, self._shuffle, self._threads, findings, watches_writes)


class MetalKernel:
    """A kernel and the limits of its pipeline."""

    max_threads_per_threadgroup = _MOST_THREADS
    thread_execution_width = _WIDTH

    def __init__(
        self,
        library: Library,
        name: str,
        device: Device,
        shuffle: int | None = None,
        threads: int = 0,
        findings: Sequence[Finding] = (),
        watches_writes: bool = False,
    ) -> None:
        self.library, self.name, self.device = library, name, device
        self._shuffle, self._threads, self._watches_writes = shuffle, threads, watches_writes
        self._findings = findings

    @property
    def is_plain(self) -> bool:
        """Whether lanes run in any order, on all threads of the host."""
        return self._shuffle is None and self._threads == 0

    @property
    def static_thread_group_memory_length(self) -> int:
        """Bytes of threadgroup memory that the kernel declares itself."""
        return int(self.library.entry(self.name).static_threadgroup_bytes)

    def __call__(
        self,
        *args: Any,
        threads: int | Sequence[int] | None = None,
        group_size: int | Sequence[int] | None = None,
        arg_casts: str | Mapping[int, str] | None = None,
        error_buf_idx: int | None = None,
    ) -> None:
        """Runs the kernel with `args` bound in order, and waits.

        `threads` are the threads of the whole grid, up to three dimensions: as many as the first tensor has elements
        unless given. `arg_casts` narrows numbers, all of them or by argument: fp16, bf16, int32, int16, int8, uint8.
        `error_buf_idx` is where the kernel reports errors (c10/metal/error.h).
        """
        resident: list[Bound] = []
        bound: list[Bound | Numbers | Bytes | None] = [
            self._bind(i, a, _cast(arg_casts, i), resident) for i, a in enumerate(args)
        ]
        messages = _bind_messages(bound, error_buf_idx)
        grid = _grid(args, threads)
        group = _group(grid, group_size, self.library.thread_limit(self.name))
        _require_positions(self.name, grid)
        note(self.name, group)
        warn_of_launch(self._findings, group)
        if math.prod(grid) != 0:
            self._launch(bound, grid, group, resident)
        _raise_reported(messages)

    def _launch(
        self,
        bound: Sequence[Bound | Numbers | Bytes | None],
        grid: Sequence[int],
        group: Sequence[int],
        resident: Sequence[Bound],
    ) -> None:
        calls[self.name] += 1
        if self.device.library.porter_current_stream() != 0:
            torch.accelerator.current_stream().query()  # runs what is encoded on it: this kernel runs at once
        try:
            self.library.run(
                self.name,
                bound,
                grid,
                group,
                resident=resident,
                threads=self._threads,
                shuffle=self._shuffle,
                extents=self._find_extents(bound),
                window=find_window(),
            )
        except OverlayError as error:
            raise RuntimeError(str(error)) from error
        watches_writes = self._watches_writes and not find_window()  # part of a grid leaves the rest unwritten
        for index in self.library.written_arguments(self.name) if watches_writes else ():
            if isinstance(argument := bound[index], Bound):
                self.device.note_writer(argument.base, self.name)
        self.device.library.porter_open_encoder()

    def _find_extents(self, bound: Sequence[Bound | Numbers | Bytes | None]) -> list[Extent]:
        """The bytes that hold elements, of tensors in sparse storages."""
        owned = [(b.base, b.owner) for b in bound if isinstance(b, Bound) and isinstance(b.owner, torch.Tensor)]
        tensors = {base: tensor for base, tensor in owned if tensor.device.type == "mps"}
        return [
            Extent(base, low, high)
            for base, tensor in tensors.items()
            for low, high in self.device.extents(tensor.untyped_storage().data_ptr())
        ]

    def _bind(self, index: int, argument: Any, cast: str | None, resident: list[Bound]) -> Bound | Numbers | Bytes:
        if isinstance(argument, Bound):
            return argument
        if isinstance(argument, torch.Tensor):
            if argument.device.type == "cpu" and argument.dim() == 0:
                return _host(argument.detach().to(_NARROW.get(argument.dtype, argument.dtype)).reshape(1).clone())
            return _allocated(argument, self.device)
        if isinstance(argument, list | tuple):
            return self._bind_list(index, argument, cast, resident)
        if not isinstance(argument, int | float):
            raise RuntimeError(f"Unsupported argument type {type(argument).__name__} at index {index}")
        return Numbers([argument], cast)

    def _bind_list(
        self, index: int, values: Sequence[Any], cast: str | None, resident: list[Bound]
    ) -> Bound | Numbers | Bytes:
        if not values:
            raise RuntimeError("Empty list/tuple can not be an argument to metal kernel")
        kinds = {bool: int, int: int, float: float}
        kind = torch.Tensor if isinstance(values[0], torch.Tensor) else kinds.get(type(values[0]))
        if kind is None or not all(isinstance(v, (kind, int) if kind is float else kind) for v in values):
            raise RuntimeError(f"Unexpected argument types in the list at index {index}")
        if kind is not torch.Tensor:
            return Numbers([kind(v) for v in values], cast)
        tensors = [_allocated(v, self.device) for v in values]
        resident += tensors
        return pack_numbers([t.address for t in tensors], None)


def host_alias(storage: torch.UntypedStorage, device: Device) -> torch.UntypedStorage:
    """A CPU storage over the same bytes as an mps storage."""
    if storage.nbytes() == 0:
        return torch.empty(0, dtype=torch.uint8).untyped_storage()
    array = (ctypes.c_uint8 * storage.nbytes()).from_address(device.host_address(storage.data_ptr()))
    array._storage = storage  # type: ignore[attr-defined]
    return torch.frombuffer(array, dtype=torch.uint8).untyped_storage()


def _allocated(tensor: torch.Tensor, device: Device) -> Bound:
    if tensor.device.type != "mps":
        raise RuntimeError("Passed CPU tensor to MPS op")
    storage = tensor.untyped_storage()
    base = device.host_address(storage.data_ptr()) or 64
    offset = int(tensor.storage_offset()) * tensor.element_size()
    return Bound(base + offset, base, storage.nbytes(), tensor, measure_extent(tensor))


def bind_host(tensor: torch.Tensor) -> Bound:
    """A tensor of the host as a kernel reads it where it is, as from a Metal buffer made with bytesNoCopy."""
    extent = measure_extent(tensor)
    address = tensor.data_ptr() or 64
    return Bound(address, address, extent, tensor, extent)


def measure_extent(tensor: torch.Tensor) -> int:
    """The bytes from the first element of a tensor to the end of its last."""
    if tensor.numel() == 0:
        return 0
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return (int(last) + 1) * tensor.element_size()


def find_number(value: object, cast: str | None) -> type[Any] | None:
    """What a number with a cast is in C; None for one that goes through torch."""
    return _PLAIN.get((type(value), cast))


def pack_numbers(values: Sequence[int | float], cast: str | None) -> Bytes:
    """Numbers as the kernel gets them: 64-bit integers or floats unless narrowed."""
    if cast is not None and cast not in _CASTS:
        raise RuntimeError(f"Unsupported cast instruction {cast}")
    if (kind := find_number(values[0], cast)) and all(-_TOO_LARGE <= v < _TOO_LARGE for v in values):
        return numpy.frombuffer((kind * len(values))(*values), numpy.uint8)
    plain = torch.float32 if isinstance(values[0], float) else torch.int64
    wide = torch.tensor(values, dtype=torch.float64 if plain is torch.float32 else torch.int64)
    return _host(wide.to(plain if cast is None else _CASTS[cast]))


def _host(tensor: torch.Tensor) -> Bytes:
    """The bytes of a tensor in host memory, bound as Metal's setBytes binds them."""
    return tensor.view(torch.uint8).numpy()


def _cast(casts: str | Mapping[int, str] | None, index: int) -> str | None:
    if casts is None or isinstance(casts, str):
        return casts
    if not isinstance(casts, Mapping):
        raise RuntimeError(f"Unexpected caster arg type {type(casts).__name__}")
    return casts.get(index)


def _dimensions(sizes: int | Sequence[int]) -> list[int]:
    return [sizes] if isinstance(sizes, int) else [int(size) for size in sizes]


def _grid(args: Sequence[Any], threads: int | Sequence[int] | None) -> list[int]:
    if threads is None:
        counts = [a.numel() for a in args if isinstance(a, torch.Tensor)]
        threads = counts[:1]
    grid = _dimensions(threads)
    if not 1 <= len(grid) <= _MOST_DIMENSIONS:
        raise RuntimeError("Number of threads is undefined or has wrong dimension")
    return grid


def _require_positions(kernel: str, grid: Sequence[int]) -> None:
    """Raises PTR270 for a grid in which some threads have no position of their own: one has 32 bits."""
    if max(grid) > _MOST_POSITIONS:
        raise RuntimeError(
            f"PTR270 kernel `{kernel}`: a grid of {max(grid)} threads along one axis; a thread's position has 32 bits"
        )


def _group(grid: Sequence[int], group_size: int | Sequence[int] | None, limit: int) -> list[int]:
    if group_size is None:
        usual = [max(1, min(grid[0], _MOST_THREADS)), *[1] * (len(grid) - 1)]
        # A kernel that is launched in one threadgroup may count on that.
        return list(choose_open(usual, limit)) if grid[0] > usual[0] else usual
    group = _dimensions(group_size)
    if len(group) != len(grid):
        raise RuntimeError("size and group_size must have same number of dimensions")
    if math.prod(group) > _MOST_THREADS:
        raise ValueError(f"Threadgroup size exceeds {_MOST_THREADS} limit")
    return group


def _bind_messages(bound: list[Bound | Numbers | Bytes | None], index: int | None) -> torch.Tensor | None:
    if index is None:
        return None
    messages = torch.zeros(4 + _MESSAGES * _MESSAGE.size, dtype=torch.uint8)
    bound += [None] * (index + 1 - len(bound))
    bound[index] = _host(messages)
    return messages


def _raise_reported(messages: torch.Tensor | None) -> None:
    if messages is None:
        return
    data = messages.numpy().tobytes()
    if int.from_bytes(data[:4], "little"):
        _, _, text, _ = _MESSAGE.unpack_from(data, 4)
        raise torch.AcceleratorError(text.split(b"\0", 1)[0].decode(errors="replace"))
