"""A kernel that is called with CUDA tensors, as one of `torch.mps.compile_shader` is with those of the mps device.

A call like an earlier one writes its tensors' addresses into a block that is kept, and calls the driver once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeAlias

import torch

from aten_overlay.cuda.driver import Driver, lost_context
from aten_overlay.cuda.grid import MOST_THREADS, read_grid
from aten_overlay.cuda.launch import CONSTANT, TENSOR, Form, Prepared, Request, Value, prepare
from aten_overlay.cuda.modules import Modules
from aten_overlay.cuda.numbers import pack_argument, pack_tensor
from aten_overlay.cuda.torch_side import TorchSide
from aten_overlay.errors import OverlayError
from aten_overlay.metal.cuda.module import Entry

_MOST_PREPARED = 1024  # of a kernel
_ALIGNMENT = 16  # of addresses that are read and written 16 bytes at a time
Indices: TypeAlias = tuple[int, ...]


class CudaKernel:
    """A kernel of a library. `restrict` lets it use what is valid only for buffers that do not overlap;
    `find_variant` gives the kernel that takes some of its references as addresses.
    """

    thread_execution_width = 32

    def __init__(
        self,
        entry: Entry,
        modules: Modules,
        driver: Driver,
        side: TorchSide,
        find_variant: Callable[[str, Indices], CudaKernel],
        restrict: bool = True,
    ) -> None:
        self._entry, self._modules, self._driver, self._side = entry, modules, driver, side
        self._find_variant = find_variant
        self._prepared: dict[Hashable, Prepared] = {}
        self._launch = driver.library.cuLaunchKernel
        self._values = tuple(p.index for p in entry.parameters if p.kind == CONSTANT)
        self._written = frozenset(p.index for p in entry.parameters if p.writable)
        self._restrict = restrict and Form.SEVERAL.value in entry.symbols

    @property
    def max_threads_per_threadgroup(self) -> int:
        """The most threads of a threadgroup."""
        return min(MOST_THREADS, self._entry.thread_limit)

    @property
    def static_thread_group_memory_length(self) -> int:
        """Bytes of threadgroup memory that the kernel declares itself."""
        return self._entry.static_bytes

    def __call__(
        self,
        *args: Any,
        threads: int | Sequence[int] | None = None,
        group_size: int | Sequence[int] | None = None,
        arg_casts: str | Mapping[int, str] | None = None,
        threadgroup_bytes: Sequence[int] = (),
    ) -> None:
        """Launches the kernel with `args` bound in order, in torch's current stream, and does not wait.

        The arguments are those of `torch.mps.compile_shader`'s kernels; `threadgroup_bytes` are the lengths of
        threadgroup arguments. Raises PTR388 for tensors of other devices or of several, and what `prepare` raises.
        """
        if self._values and (by_address := self._find_references(args)):
            variant = self._find_variant(self._entry.name, by_address)
            variant(*args, threads=threads, group_size=group_size, arg_casts=arg_casts,
                    threadgroup_bytes=threadgroup_bytes)  # fmt: skip
            return
        tensors: list[torch.Tensor] = []
        values: list[Value] = []
        for index, argument in enumerate(args):
            if isinstance(argument, torch.Tensor) and argument.is_cuda:
                tensors.append(argument)
                values.append(TENSOR)
            else:
                values.append(self._pack(index, argument, arg_casts))
        if not tensors:
            raise OverlayError("PTR388", f"kernel `{self._entry.name}` gets no CUDA tensor", hint=_MOVE)
        if threads is None:
            threads = _count(args)
        device = tensors[0].get_device()
        apart = self._restrict and self._are_apart(args, tensors)
        shared = tuple(threadgroup_bytes)
        key = (tuple(values), _hashable(threads), _hashable(group_size), apart, device, shared)
        prepared = self._prepared.get(key)
        if prepared is None:
            grid = read_grid(threads, group_size)
            if grid.is_empty:
                return
            prepared = self._prepare(Request(tuple(values), grid, dict(enumerate(shared)), device, apart))
            self._keep(key, prepared)
        self._run(prepared, args, tensors, device)

    def _run(self, prepared: Prepared, args: Sequence[Any], tensors: Sequence[torch.Tensor], device: int) -> None:
        for tensor in tensors:
            if tensor.get_device() != device:
                what = f"kernel `{self._entry.name}` gets tensors on cuda:{device} and on {tensor.device}"
                raise OverlayError("PTR388", what, hint="Move them to one device.")
        words, here = prepared.block.words, self._side.current_device()
        with prepared.lock:
            for argument, word in prepared.slots:
                words[word] = args[argument].data_ptr()
            status = self._enqueue(prepared, device) if here == device else self._enqueue_there(prepared, device, here)
        if status:
            self._driver.refuse_launch(self._entry.name, status)

    def _enqueue(self, prepared: Prepared, device: int) -> int:
        stream = self._side.current_stream(device)
        status = self._launch(*prepared.launch, stream, None, prepared.block.extra)
        if status and lost_context(status):
            self._driver.enter(device)
            status = self._launch(*prepared.launch, stream, None, prepared.block.extra)
        return int(status)

    def _enqueue_there(self, prepared: Prepared, device: int, here: int) -> int:
        """A launch on a device that is not this thread's current one, which stays so."""
        self._driver.enter(device)
        try:
            return self._enqueue(prepared, device)
        finally:
            self._driver.enter(here)

    def _prepare(self, request: Request) -> Prepared:
        here = self._side.current_device()
        try:
            return prepare(self._entry, request, self._modules, self._driver, self._side)
        finally:
            if here != request.device:
                self._driver.enter(here)

    def _keep(self, key: Hashable, prepared: Prepared) -> None:
        if len(self._prepared) >= _MOST_PREPARED:
            self._prepared.clear()
        self._prepared[key] = prepared

    def _find_references(self, args: Sequence[Any]) -> Indices:
        """The arguments that are references in the kernel and tensors on a device in the call."""
        found = (i for i in self._values if i < len(args) and isinstance(args[i], torch.Tensor) and args[i].is_cuda)
        return tuple(found)

    def _pack(self, index: int, argument: Any, casts: str | Mapping[int, str] | None) -> bytes:
        """The bytes of an argument that is no tensor on a device; bytes are passed as they are."""
        if isinstance(argument, bytes):
            return argument
        if isinstance(argument, torch.Tensor):
            if argument.device.type != "cpu" or argument.dim():
                where = f"argument {index} of kernel `{self._entry.name}` is on {argument.device}"
                raise OverlayError("PTR388", where, hint=_MOVE)
            return pack_tensor(argument)
        cast = casts if casts is None or isinstance(casts, str) else casts.get(index)
        return pack_argument(index, argument, cast)

    def _are_apart(self, args: Sequence[Any], tensors: Sequence[torch.Tensor]) -> bool:
        """Whether what is written overlaps nothing else, and every address is aligned for wide loads and stores.

        A kernel may reach all of a storage from any view of it. Tensors without an offset are of one storage only if
        they begin at one address.
        """
        if any(tensor.data_ptr() % _ALIGNMENT for tensor in tensors):
            return False
        starts = [t.untyped_storage().data_ptr() if t.storage_offset() else t.data_ptr() for t in tensors]
        if len(set(starts)) == len(starts):
            return True
        written = {args[i].untyped_storage().data_ptr() for i in self._written if isinstance(args[i], torch.Tensor)}
        return all(starts.count(start) == 1 for start in written)


def _count(args: Sequence[Any]) -> int | tuple[int, ...]:
    """As many threads as the first tensor has elements."""
    counts = [a.numel() for a in args if isinstance(a, torch.Tensor)]
    return counts[0] if counts else ()


def _hashable(sizes: int | Sequence[int] | None) -> Hashable:
    return sizes if sizes is None or isinstance(sizes, int) else tuple(sizes)


_MOVE = 'Move it: tensor.to("cuda").'
