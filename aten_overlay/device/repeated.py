"""A kernel launched again and again with arguments alike: all but addresses and numbers is laid out once."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from aten_overlay.device.shader import MetalKernel, calls, find_number, measure_extent, pack_numbers
from aten_overlay.metal.launch import LIMIT, SEEDS, BufferFields, LaunchFields, failure, three

_ERROR_BYTES = 1280
_NOWHERE = 64  # where a tensor without elements begins


@dataclass(frozen=True)
class _Buffer:
    """What is bound at one index: `length` bytes that are always `constant`, one number of type `number`, or memory."""

    length: int
    constant: bytes | None = None
    number: type[Any] | None = None


@dataclass(frozen=True)
class _Frame:
    """The memory of one launch, which has to live as long as it runs. `launch` takes `address`, where `fields` lie."""

    launch: Any
    address: int
    fields: LaunchFields
    memories: tuple[Any, ...]
    numbers: tuple[Any, ...]
    constants: tuple[Any, ...]
    bound: Any
    error: Any


@dataclass(frozen=True)
class RepeatedLaunch:
    """A launch of `kernel` over `threads` in groups of `group_size`, on memory that is as `buffers` say.

    The kernel has run so before: nothing is checked. Python's other threads run during a launch: one that finds no
    frame makes another.
    """

    kernel: MetalKernel
    buffers: tuple[_Buffer, ...]
    threads: tuple[int, ...]
    group_size: tuple[int, ...]
    frames: list[_Frame] = field(default_factory=list)

    def run(self, addresses: Sequence[int], numbers: Sequence[object]) -> None:
        """Runs the kernel, and waits. `addresses` are the device's, of its memory, and `numbers` its numbers, in order.

        Raises what `Library.run` raises.
        """
        frame = self.frames.pop() if self.frames else self._make_frame()
        find_address = self.kernel.device.memory.porter_host_address
        for memory, address in zip(frame.memories, addresses, strict=True):
            memory.address = find_address(address) or _NOWHERE
        for cell, number in zip(frame.numbers, numbers, strict=True):
            cell.value = number
        frame.fields.seed, frame.fields.max_threads = next(SEEDS), LIMIT.value
        name = self.kernel.name
        calls[name] += 1
        status = frame.launch(frame.address)
        if status:
            raise failure(status, frame.error.value.decode() or f"kernel `{name}` failed ({status})")
        self.frames.append(frame)

    def _make_frame(self) -> _Frame:
        count = len(self.buffers)
        bound = (BufferFields * max(count, 1))()
        numbers = tuple(each.number() for each in self.buffers if each.number)
        constants = tuple(
            ctypes.create_string_buffer(each.constant, each.length)
            for each in self.buffers
            if each.constant is not None
        )
        rest_of_numbers, rest_of_constants, memories = iter(numbers), iter(constants), []
        for place, each in zip(bound, self.buffers, strict=False):
            place.length = each.length
            if each.number:
                place.address = ctypes.addressof(next(rest_of_numbers))
            elif each.constant is not None:
                place.address = ctypes.addressof(next(rest_of_constants))
            else:
                memories.append(place)
        error = ctypes.create_string_buffer(_ERROR_BYTES)
        entry = self.kernel.library.entry(self.kernel.name)
        fields = LaunchFields(
            ctypes.pointer(entry), bound, count, 0, None, three(self.threads),
            three(self.group_size), None, 0, 0, 0, 0, len(error), ctypes.cast(error, ctypes.c_char_p), None, 0, 0,
        )  # fmt: skip
        return _Frame(entry.launch, ctypes.addressof(fields), fields, tuple(memories), numbers, constants, bound, error)


def repeat(
    kernel: MetalKernel,
    args: Sequence[Any],
    threads: Sequence[int],
    group_size: Sequence[int],
    arg_casts: Mapping[int, str],
) -> RepeatedLaunch | None:
    """What launches `kernel` with arguments like `args`, which it has run with; None where it takes the long way.

    From then on tensors have the shape, strides and type of those in `args`, and numbers the type; lists are the same.
    """
    if not kernel.is_plain:
        return None
    buffers = [_describe(each, arg_casts.get(index)) for index, each in enumerate(args)]
    if any(each is None for each in buffers):
        return None
    return RepeatedLaunch(kernel, tuple(filter(None, buffers)), tuple(threads), tuple(group_size))


def _describe(argument: Any, cast: str | None) -> _Buffer | None:
    if isinstance(argument, torch.Tensor):
        return _Buffer(measure_extent(argument)) if argument.device.type == "mps" else None
    if isinstance(argument, list):
        data = pack_numbers(argument, cast).tobytes()
        return _Buffer(len(data), constant=data)
    number = find_number(argument, cast)
    return _Buffer(ctypes.sizeof(number), number=number) if number else None
