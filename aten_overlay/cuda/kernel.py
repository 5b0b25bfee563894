"""A kernel that is called with CUDA tensors, as one of `torch.mps.compile_shader` is with those of the mps device.

A call like an earlier one writes its tensors' addresses into a block that is kept, and calls the driver once: in C
where there is that launcher (native.py).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeAlias

from torch import SymInt, Tensor

from aten_overlay.cuda.driver import Driver, as_pointer, lost_context
from aten_overlay.cuda.grid import MOST_THREADS, read_grid
from aten_overlay.cuda.launch import (
    CONSTANT,
    TENSOR,
    Form,
    Prepared,
    Request,
    Value,
    place_parameters,
    prepare,
)
from aten_overlay.cuda.modules import Modules
from aten_overlay.cuda.numbers import pack_argument, pack_float, pack_tensor
from aten_overlay.cuda.repeated import ALIGNMENT, Number, Piece, RepeatedLaunch
from aten_overlay.cuda.torch_side import TorchSide
from aten_overlay.errors import OverlayError
from aten_overlay.metal.cuda.module import Entry

_MOST_PREPARED = 1024  # of a kernel
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
        self._current_device, self._current_stream = side.current_device, side.current_stream
        self._references = tuple(p.index for p in entry.parameters if p.kind == CONSTANT)
        self._written = frozenset(p.index for p in entry.parameters if p.writable)
        self._restrict = restrict and Form.SEVERAL.value in entry.symbols
        self._native: dict[Hashable, Any] = {}  # launches by what calls are like
        self._calls = self._make_calls()

    @property
    def max_threads_per_threadgroup(self) -> int:
        """The most threads of a threadgroup."""
        return min(MOST_THREADS, self._entry.thread_limit)

    @property
    def static_thread_group_memory_length(self) -> int:
        """Bytes of threadgroup memory that the kernel declares itself."""
        return self._entry.static_bytes

    def takes_value(self, index: int) -> bool:
        """Whether argument `index` is passed by its value."""
        return index in self._references

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
        if self._calls is not None and arg_casts is None and not threadgroup_bytes:
            status = self._calls(args, threads, group_size)
            if not status:
                return
            if status > 0 and not lost_context(status):
                self._driver.refuse_launch(self._entry.name, status)
        values: list[Value] = []
        starts: list[int] = []
        device, unaligned = -1, 0
        offset: int | SymInt = 0
        for index, argument in enumerate(args):
            if isinstance(argument, Tensor) and argument.is_cuda:
                if index in self._references:
                    self._find_for(args)(
                        *args, threads=threads, group_size=group_size, arg_casts=arg_casts,
                        threadgroup_bytes=threadgroup_bytes,
                    )  # fmt: skip
                    return
                start = argument.data_ptr()
                starts.append(start)
                unaligned |= start
                offset = offset or argument.storage_offset()
                if threads is None:
                    threads = argument.numel()
                here = argument.get_device()
                if device not in (-1, here):
                    raise self._mixed(argument, device)
                device = here
                values.append(TENSOR)
            elif argument.__class__ is float and arg_casts is None:
                values.append(pack_float(argument))
            else:
                values.append(self._pack(index, argument, arg_casts))
        if device < 0:
            raise OverlayError("PTR388", f"kernel `{self._entry.name}` gets no CUDA tensor", hint=_MOVE)
        if threads is None:
            threads = ()
        apart = self._restrict and not unaligned % ALIGNMENT and self._are_apart(args, starts, offset)
        if threads.__class__ is not int:
            threads = tuple(threads)  # type: ignore[arg-type]
        if group_size.__class__ is list:
            group_size = tuple(group_size)
        key = (*values, threads, group_size, apart, device, *threadgroup_bytes)
        prepared = self._prepared.get(key)
        if prepared is None:
            grid = read_grid(threads, group_size)
            if grid.is_empty:
                return
            prepared = self._prepare(Request(tuple(values), grid, dict(enumerate(threadgroup_bytes)), device, apart))
            self._keep(key, prepared)
        words, block = prepared.words, prepared.block
        with prepared.lock:
            for word, start in zip(words, starts, strict=True):
                block[word] = start
            status = self._enqueue(prepared, device)
        if status:
            self._driver.refuse_launch(self._entry.name, status)

    def repeat(
        self, args: Sequence[Any], threads: Sequence[int], group_size: Sequence[int], arg_casts: Mapping[int, str]
    ) -> RepeatedLaunch | None:
        """What launches the kernel with arguments like these, which it has run with; None for an empty grid.

        From then on tensors have the same device and numbers the same type, and lists are the same.
        """
        if any(_is_on_device(args[i]) for i in self._references if i < len(args)):
            return self._find_for(args).repeat(args, threads, group_size, arg_casts)
        grid = read_grid(threads, group_size)
        device = next((each.get_device() for each in args if _is_on_device(each)), -1)
        if grid.is_empty or device < 0:
            return None
        values = [TENSOR if _is_on_device(each) else self._pack(i, each, arg_casts) for i, each in enumerate(args)]
        apart, plain = (
            self._prepare(Request(tuple(values), grid, {}, device, each)) for each in (self._restrict, False)
        )
        numbers = self._find_numbers(args, arg_casts)
        return (
            RepeatedLaunch(
                self._entry.name, self._driver, self._enqueue_native, self._enqueue, device, apart, plain, numbers
            )
            if numbers is not None
            else None
        )

    def load(self, args: Sequence[Any]) -> tuple[Modules, int]:
        """The modules of what runs these arguments, with it loaded, and the device."""
        if any(_is_on_device(args[i]) for i in self._references if i < len(args)):
            return self._find_for(args).load(args)
        device = next((each.get_device() for each in args if _is_on_device(each)), -1)
        if device < 0:
            raise OverlayError("PTR388", f"kernel `{self._entry.name}` gets no CUDA tensor", hint=_MOVE)
        self._modules.find_function(next(iter(self._entry.symbols.values())), device)
        return self._modules, device

    def _find_for(self, args: Sequence[Any]) -> CudaKernel:
        """The kernel that takes as addresses those references for which there are tensors."""
        by_address = tuple(i for i in self._references if i < len(args) and _is_on_device(args[i]))
        return self._find_variant(self._entry.name, by_address)

    def _find_numbers(self, args: Sequence[Any], casts: Mapping[int, str]) -> tuple[Number, ...] | None:
        """Where a launch has its numbers; None if one of them lies behind a pointer."""
        places = {
            parameter.index: (parameter.kind, offset, parameter.size)
            for parameter, offset in zip(self._entry.parameters, place_parameters(self._entry)[0], strict=True)
        }
        found = []
        for index, argument in enumerate(args):
            if not isinstance(argument, int | float) or index not in places:
                continue
            kind, offset, size = places[index]
            if kind != CONSTANT:
                return None
            found.append(Number(index, casts.get(index), offset, size))
        return tuple(found)

    def _make_calls(self) -> Any:
        """What launches calls like earlier ones in C; None without that launcher."""
        if self._driver.launcher is None:
            return None
        return self._driver.launcher.module.Calls(
            self._side.tensor_types, frozenset(self._references), self._native, self._restrict,
            self._current_device, self._current_stream,
        )  # fmt: skip

    def _enqueue_native(self, prepared: Prepared, device: int, addresses: list[int], pieces: list[Piece]) -> int:
        """The status of a launch by the launcher in C; -1 where it takes `_enqueue`."""
        if prepared.native is None or self._current_device() != device:
            return -1
        status: int = prepared.native.run(self._current_stream(device), addresses, pieces)
        return -1 if lost_context(status) else status

    def _enqueue(self, prepared: Prepared, device: int) -> int:
        here = self._current_device()
        if here != device:
            return self._enqueue_there(prepared, device, here)
        stream = as_pointer(self._current_stream(device))
        status = self._launch(*prepared.launch, stream, prepared.addresses, None)
        if status and lost_context(status):
            self._driver.enter(device)
            status = self._launch(*prepared.launch, stream, prepared.addresses, None)
        return int(status)

    def _enqueue_there(self, prepared: Prepared, device: int, here: int) -> int:
        """A launch on a device that is not this thread's current one, which stays so."""
        self._driver.enter(device)
        try:
            return int(
                self._launch(*prepared.launch, as_pointer(self._current_stream(device)), prepared.addresses, None)
            )
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
            self._native.clear()
        self._prepared[key] = prepared
        if prepared.native is not None:
            self._native[key] = prepared.native

    def _pack(self, index: int, argument: Any, casts: str | Mapping[int, str] | None) -> bytes:
        """The bytes of an argument that is no tensor on a device; bytes are passed as they are."""
        if isinstance(argument, bytes):
            return argument
        if isinstance(argument, Tensor):
            if argument.device.type != "cpu" or argument.dim():
                where = f"argument {index} of kernel `{self._entry.name}` is on {argument.device}"
                raise OverlayError("PTR388", where, hint=_MOVE)
            return pack_tensor(argument)
        cast = casts if casts is None or isinstance(casts, str) else casts.get(index)
        return pack_argument(index, argument, cast)

    def _are_apart(self, args: Sequence[Any], starts: Sequence[int], offset: int | SymInt) -> bool:
        """Whether what is written overlaps nothing else.

        A kernel may reach all of a storage from any view of it. Tensors without an offset are of one storage only if
        they begin at one address.
        """
        if not offset and len(set(starts)) == len(starts):
            return True
        tensors = [(i, a.untyped_storage().data_ptr()) for i, a in enumerate(args) if _is_on_device(a)]
        begins = [begin for _, begin in tensors]
        return all(begins.count(begin) == 1 for index, begin in tensors if index in self._written)

    def _mixed(self, tensor: Tensor, device: int) -> OverlayError:
        what = f"kernel `{self._entry.name}` gets tensors on cuda:{device} and on {tensor.device}"
        return OverlayError("PTR388", what, hint="Move them to one device.")


def _is_on_device(argument: Any) -> bool:
    return isinstance(argument, Tensor) and argument.is_cuda


_MOVE = 'Move it: tensor.to("cuda").'
