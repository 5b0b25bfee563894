"""Loads a compiled Metal library and runs its kernels on arrays: numpy, torch CPU tensors, or ctypes values."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from aten_overlay.errors import OverlayError

FIRST_TEXTURE, FIRST_SAMPLER = 32, 160
_FORMATS: Mapping[tuple[str, bool], int] = {
    ("u1", True): 0, ("i1", True): 1, ("u1", False): 2, ("i1", False): 3, ("u2", True): 4, ("i2", True): 5,
    ("u2", False): 6, ("i2", False): 7, ("f2", False): 8, ("u4", False): 9, ("i4", False): 10, ("f4", False): 11,
}  # fmt: skip
_ADDRESSES = ("clamp_to_edge", "clamp_to_zero", "repeat", "mirrored_repeat", "clamp_to_border")
_BORDERS = ("transparent_black", "opaque_black", "opaque_white")
_COMPARISONS = ("never", "less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "always")


class _Texture(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        *((name, ctypes.c_uint32) for name in ("width", "height", "depth", "layers", "texel", "channels")),
        ("row_bytes", ctypes.c_uint64),
        ("slice_bytes", ctypes.c_uint64),
    ]


class _Sampler(ctypes.Structure):
    _fields_ = [
        ("coord", ctypes.c_uint32),
        ("filter", ctypes.c_uint32),
        ("address", ctypes.c_uint32 * 3),
        ("border", ctypes.c_uint32),
        ("compare", ctypes.c_uint32),
    ]


@dataclass(frozen=True)
class Texture:
    """A texture whose texels are those of a contiguous numpy array: (layers or depth, height, width, channels).

    `layered` tells an array of 2D textures, or the faces of cubes, from a 3D texture or the samples of a multisampled
    one; `normalized` reads integers as floats up to 1.
    """

    array: Any
    normalized: bool = False
    layered: bool = False

    def describe(self) -> ctypes.Structure:
        """As a launch takes it. Raises PTR106 for an array that no texture has."""
        array = self.array
        texel = _FORMATS.get((array.dtype.str[1:], self.normalized))
        if texel is None or array.ndim != 4 or array.shape[3] not in (1, 2, 4) or not array.flags.c_contiguous:
            what = f"a texture cannot be over an array of {array.dtype} of shape {array.shape}"
            raise OverlayError("PTR106", what, hint="Give (depth, height, width, 1, 2 or 4 channels), contiguous.")
        slices, height, width, channels = array.shape
        depth, layers = (1, slices) if self.layered else (slices, 1)
        rows = array.strides[1], array.strides[0]
        return _Texture(array.ctypes.data, width, height, depth, layers, texel, channels, *rows)


@dataclass(frozen=True)
class Sampler:
    """A sampler, in the words of the language."""

    normalized: bool = True
    linear: bool = False
    address: str = "clamp_to_edge"
    border: str = "transparent_black"
    compare: str = "never"

    def describe(self) -> ctypes.Structure:
        """As a launch takes it."""
        modes = (ctypes.c_uint32 * 3)(*[_ADDRESSES.index(self.address)] * 3)
        border, compare = _BORDERS.index(self.border), _COMPARISONS.index(self.compare)
        return _Sampler(int(not self.normalized), int(self.linear), modes, border, compare)


SHUFFLE_LANES, FORCE_FIBERS, WITHOUT_CELLS = 1, 2, 4
_THREADGROUP, _TEXTURE, _SAMPLER = 2, 3, 4
_STATUS = {3: "PTR107"}
SEEDS = count()  # of launches that name none
LIMIT = ctypes.c_uint32(0)  # how many threads of the host a launch takes that says nothing else; 0: one a core
# Torch's names of the types of enum pm_value_type, in its order.
_TYPES = [
    "bool",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "float32",
    "bfloat16",
]
_FINDING = re.compile(r"(PTR\d{3}): (.*)", re.S)


class _Argument(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("kind", ctypes.c_uint32),
        ("index", ctypes.c_uint32),
        ("element_size", ctypes.c_uint32),
        ("alignment", ctypes.c_uint32),
        ("writable", ctypes.c_uint32),
        ("type", ctypes.c_uint32),
    ]


class BufferFields(ctypes.Structure):
    """pm_buffer of include/porter_metal_abi.h."""

    _fields_ = [
        ("address", ctypes.c_void_p),
        ("base", ctypes.c_void_p),
        ("length", ctypes.c_uint64),
        ("extent", ctypes.c_uint64),
        ("type", ctypes.c_uint64),
        ("left_over", ctypes.c_uint64),
    ]


class _Extent(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


class KernelFields(ctypes.Structure):
    """pm_kernel."""

    _fields_ = [
        ("host_name", ctypes.c_char_p),
        ("arguments", ctypes.POINTER(_Argument)),
        ("argument_count", ctypes.c_uint32),
        ("synchronizes", ctypes.c_uint32),
        ("static_threadgroup_bytes", ctypes.c_uint32),
        ("max_threads_per_group", ctypes.c_uint32),
        ("launch", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)),
        ("internal", ctypes.c_void_p),
    ]


class _Library(ctypes.Structure):
    _fields_ = [
        ("abi_version", ctypes.c_uint32),
        ("kernel_count", ctypes.c_uint32),
        ("kernels", ctypes.POINTER(KernelFields)),
        ("constant_count", ctypes.c_uint32),
        ("constants", ctypes.c_void_p),
    ]


class LaunchFields(ctypes.Structure):
    """pm_launch."""

    _fields_ = [
        ("kernel", ctypes.POINTER(KernelFields)),
        ("buffers", ctypes.POINTER(BufferFields)),
        ("buffer_count", ctypes.c_uint32),
        ("threadgroup_count", ctypes.c_uint32),
        ("threadgroup_bytes", ctypes.POINTER(ctypes.c_uint32)),
        ("grid", ctypes.c_uint32 * 3),
        ("group", ctypes.c_uint32 * 3),
        ("resident", ctypes.POINTER(BufferFields)),
        ("resident_count", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("seed", ctypes.c_uint64),
        ("max_threads", ctypes.c_uint32),
        ("error_size", ctypes.c_uint32),
        ("error", ctypes.c_char_p),
        ("extents", ctypes.POINTER(_Extent)),
        ("extent_count", ctypes.c_uint32),
        ("window", ctypes.c_uint32),
    ]


@dataclass(frozen=True)
class Extent:
    """Bytes of a buffer, from its base, that hold elements."""

    base: int
    low: int
    high: int


class Library:
    """A compiled library, which stays loaded. `names` are the kernels it holds."""

    def __init__(self, path: Path) -> None:
        self._handle = ctypes.CDLL(str(path))
        entry = self._handle.pm_library
        entry.restype = ctypes.POINTER(_Library)
        self._library = entry().contents
        kernels = (self._library.kernels[i] for i in range(self._library.kernel_count))
        self._kernels = {k.host_name.decode(): k for k in kernels}
        self.names = tuple(self._kernels)

    def argument_sizes(self, name: str) -> dict[str, int]:
        """The size in bytes of one element of each bound argument of kernel `name`."""
        kernel = self.entry(name)
        found = (kernel.arguments[i] for i in range(kernel.argument_count))
        return {a.name.decode(): a.element_size for a in found}

    def synchronizes(self, name: str) -> bool:
        """Whether kernel `name` uses barriers or simdgroup functions."""
        return bool(self.entry(name).synchronizes)

    def runs_in_lockstep(self, name: str) -> bool:
        """Whether threadgroups run kernel `name` in lockstep unless a lane order is requested."""
        entry = ctypes.cast(self.entry(name).internal, ctypes.POINTER(ctypes.c_void_p))
        return bool(entry and entry[1])

    def threadgroup_bytes(self, name: str) -> int:
        """The bytes of threadgroup memory that kernel `name` declares; those of its arguments are the launch's."""
        return int(self.entry(name).static_threadgroup_bytes)

    def threadgroup_arguments(self, name: str) -> tuple[int, ...]:
        """The indices of kernel `name`'s threadgroup arguments, whose lengths are the launch's."""
        return self._indices(name, _THREADGROUP)

    def texture_arguments(self, name: str) -> tuple[int, ...]:
        """The indices of kernel `name`'s textures."""
        return tuple(i - FIRST_TEXTURE for i in self._indices(name, _TEXTURE))

    def written_arguments(self, name: str) -> tuple[int, ...]:
        """The indices of the buffers that kernel `name` may write to."""
        kernel = self.entry(name)
        listed = (kernel.arguments[i] for i in range(kernel.argument_count))
        return tuple(a.index for a in listed if a.writable and a.kind != _THREADGROUP and a.index < FIRST_TEXTURE)

    def sampler_arguments(self, name: str) -> tuple[int, ...]:
        """The indices of kernel `name`'s samplers."""
        return tuple(i - FIRST_SAMPLER for i in self._indices(name, _SAMPLER))

    def thread_limit(self, name: str) -> int:
        """The most threads a threadgroup of kernel `name` may have."""
        return int(self.entry(name).max_threads_per_group)

    def run(
        self,
        name: str,
        buffers: Sequence[Any],
        grid: Sequence[int],
        group: Sequence[int] = (256,),
        *,
        threadgroup_bytes: Sequence[int] = (),
        resident: Sequence[Any] = (),
        textures: Sequence[Texture | None] = (),
        samplers: Sequence[Sampler | None] = (),
        threads: int = 0,
        shuffle: int | None = None,
        fibers: bool = False,
        extents: Sequence[Extent] = (),
        window: int = 0,
    ) -> None:
        """Runs kernel `name` over `grid` threads in groups of `group`, and waits.

        `buffers[i]` is bound at index i: an array, or None for nothing; `textures[i]` and `samplers[i]` likewise.
        `threadgroup_bytes[i]` is the length of threadgroup argument i. `threads` limits the host threads (0: what
        `limit_threads` says, or all cores). `shuffle` is the seed of a shuffled lane order and of the values that Metal
        leaves open; without one these change with every launch. `fibers` runs the lanes of a synchronizing kernel one
        by one. `extents` are the bytes that hold elements, of buffers of which that is known. Of a grid much larger
        than `window`, parts run.

        Raises PTR102 (unknown kernel), PTR106 (refused), PTR107 (out of bounds), or what the sanitizer finds.
        """
        bindings = _place_resources(buffers, textures, samplers)  # alive while the kernel runs
        bound = (BufferFields * max(len(bindings), 1))(*(_buffer(b) for b in bindings))
        reachable = (BufferFields * max(len(resident), 1))(*(_buffer(b) for b in resident))
        shared = (ctypes.c_uint32 * max(len(threadgroup_bytes), 1))(*threadgroup_bytes)
        limits = (_Extent * max(len(extents), 1))(*(_Extent(e.base, e.low, e.high) for e in extents))
        error = ctypes.create_string_buffer(1280)
        kernel = self.entry(name)
        flags = (0 if shuffle is None else SHUFFLE_LANES) | (FORCE_FIBERS if fibers else 0)
        launch = LaunchFields(
            ctypes.pointer(kernel), bound, len(bindings), len(threadgroup_bytes), shared, three(grid), three(group),
            reachable, len(resident), flags, next(SEEDS) if shuffle is None else shuffle, threads or LIMIT.value,
            len(error), ctypes.cast(error, ctypes.c_char_p), limits, len(extents), window,
        )  # fmt: skip
        status = kernel.launch(ctypes.addressof(launch))
        if status:
            raise failure(status, error.value.decode() or f"kernel `{name}` failed ({status})")

    def _indices(self, name: str, kind: int) -> tuple[int, ...]:
        kernel = self.entry(name)
        found = (kernel.arguments[i] for i in range(kernel.argument_count))
        return tuple(a.index for a in found if a.kind == kind)

    def entry(self, name: str) -> KernelFields:
        """What the library says of kernel `name`. Raises PTR102 for an unknown name."""
        if name not in self._kernels:
            raise OverlayError("PTR102", f"there is no kernel named `{name}` in this library", hint="Compile it in.")
        found: KernelFields = self._kernels[name]
        return found


@contextmanager
def limit_threads(most: int) -> Iterator[None]:
    """Runs kernels on at most so many threads of the host, in launches that say nothing else; 0 for one a core."""
    before, LIMIT.value = LIMIT.value, most
    try:
        yield
    finally:
        LIMIT.value = before


def failure(status: int, text: str) -> OverlayError:
    """The error of a status; what the sanitizer finds names its code itself."""
    found = _FINDING.match(text)
    return OverlayError(found[1], found[2]) if found else OverlayError(_STATUS.get(status, "PTR106"), text)


def _place_resources(
    buffers: Sequence[Any], textures: Sequence[Texture | None], samplers: Sequence[Sampler | None]
) -> list[Any]:
    """What is bound, by its place in the launch: buffers first, then textures, then samplers."""
    if not textures and not samplers:
        return list(buffers)
    placed = [*buffers, *[None] * (FIRST_TEXTURE - len(buffers)), *(t and t.describe() for t in textures)]
    return [*placed, *[None] * (FIRST_SAMPLER - len(placed)), *(s and s.describe() for s in samplers)]


def three(numbers: Sequence[int]) -> Any:
    """One to three sizes as the three of C."""
    return (ctypes.c_uint32 * 3)(*numbers, *([1] * (3 - len(numbers))))


def _buffer(array: Any) -> BufferFields:
    if array is None:
        return BufferFields(None, None, 0, 0, 0)
    if hasattr(array, "data_ptr"):
        storage = array.untyped_storage()
        return BufferFields(
            array.data_ptr() or 64,
            storage.data_ptr() or 64,
            storage.nbytes(),
            getattr(array, "extent", 0),
            _number_type(getattr(array, "owner", array)),
        )
    if hasattr(array, "__array_interface__"):
        return BufferFields(array.ctypes.data, None, array.nbytes, 0, _number_type(getattr(array, "owner", None)))
    return BufferFields(ctypes.addressof(array), None, ctypes.sizeof(array), 0, 0)


def _number_type(owner: Any) -> int:
    """What a pm_buffer says of the elements of a tensor; 0 for what is none, or of a type that Metal has not."""
    name = str(getattr(owner, "dtype", "")).removeprefix("torch.")
    return _TYPES.index(name) + 1 if name in _TYPES else 0
