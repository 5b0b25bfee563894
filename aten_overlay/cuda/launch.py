"""One launch, prepared: a function, its grid, and its parameters but for the addresses of tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from threading import Lock
from typing import Any, TypeAlias

from aten_overlay.cuda.driver import Block, Driver
from aten_overlay.cuda.grid import Grid
from aten_overlay.cuda.modules import PLAIN_BYTES, Modules
from aten_overlay.cuda.native import Launcher
from aten_overlay.cuda.numbers import fit
from aten_overlay.cuda.torch_side import TorchSide
from aten_overlay.errors import OverlayError
from aten_overlay.metal.cuda.launching import Launch, plan_launch
from aten_overlay.metal.cuda.module import Entry, Parameter

BUFFER, CONSTANT, THREADGROUP = "buffer", "constant", "threadgroup"
SIZES_BYTES = 36  # of the parameter that every entry begins with
_MOST_FOR_SEVERAL = 1 << 31
# A tensor in a call; everything else is its bytes.
TENSOR = None
Value: TypeAlias = "bytes | None"


class Form(Enum):
    """The entries of a kernel, by what a launch has to be to use them."""

    GRID = "grid"
    FLAT = "flat"
    SEVERAL = "several"


@dataclass(frozen=True)
class Request:
    """What one launch depends on, but for addresses: the values of a call, its grid, the lengths of threadgroup
    arguments, the device, and whether the buffers it writes overlap no others and all are aligned."""

    values: tuple[Value, ...]
    grid: Grid
    threadgroup: Mapping[int, int]
    device: int
    apart: bool


@dataclass(frozen=True)
class Prepared:
    """A launch that lacks the addresses of its tensors: those of the call's n-th goes into word `words[n]` of `block`.

    `addresses` are where the driver finds the parameters, and `kept` is what has to live as long. The lock makes
    filling the block and launching one step. `native` is the same for the launcher in C, with a block of its own; None
    without that launcher.
    """

    launch: tuple[Any, ...]
    block: memoryview
    addresses: Any
    words: tuple[int, ...]
    kept: tuple[Any, ...]
    lock: Any
    native: Any = None

    def put(self, at: int, data: bytes) -> None:
        """Writes the bytes of a parameter that is no address."""
        self.kept[0].put(at, data)


def prepare(entry: Entry, request: Request, modules: Modules, driver: Driver, side: TorchSide) -> Prepared:
    """What launches a request. Raises PTR383, PTR385-PTR387 and PTR389-PTR393."""
    form = _choose_form(entry, request)
    grid = request.grid.regroup() if form is Form.SEVERAL else request.grid
    plan = plan_launch(entry, form.value, grid.threads, grid.group, request.threadgroup)
    function = modules.find_function(plan.symbol, request.device)
    if plan.dynamic_bytes + entry.static_bytes > PLAIN_BYTES:
        modules.allow_dynamic(function, plan.dynamic_bytes)
    block, slots, kept = _fill(entry, request, plan, side)
    bound = [index for index, value in enumerate(request.values) if value is TENSOR]
    words = tuple(slots.get(index, block.spare) for index in bound)  # no parameter may want one of the tensors
    launch = (function, *plan.blocks, plan.threads, 1, 1, plan.dynamic_bytes)
    native = _bind(driver.launcher, function, plan, block, words, kept)
    return Prepared(launch, block.words, block.addresses, words, (block, *kept), Lock(), native)


def _bind(
    launcher: Launcher | None, function: Any, plan: Launch, block: Block, words: tuple[int, ...], kept: tuple[Any, ...]
) -> Any:
    if launcher is None:
        return None
    return launcher.module.Launch(
        launcher.address, function.value, plan.blocks, plan.threads, plan.dynamic_bytes, block.data.raw,
        block.offsets, words, kept,
    )  # fmt: skip


def _choose_form(entry: Entry, request: Request) -> Form:
    if not request.grid.is_flat or Form.FLAT.value not in entry.symbols:
        return Form.GRID
    fits = request.apart and request.grid.threads[0] < _MOST_FOR_SEVERAL
    return Form.SEVERAL if fits and Form.SEVERAL.value in entry.symbols else Form.FLAT


def place_parameters(entry: Entry, first: int = SIZES_BYTES) -> tuple[list[int], int]:
    """The offset of each parameter after the first, which has so many bytes, as C places them; and the bytes of all."""
    offsets, at = [], first
    for parameter in entry.parameters:
        at = -(-at // parameter.alignment) * parameter.alignment
        offsets.append(at)
        at += parameter.size
    return offsets, at


def _fill(
    entry: Entry, request: Request, plan: Launch, side: TorchSide
) -> tuple[Block, dict[int, int], tuple[Any, ...]]:
    """The parameters but for the addresses of tensors, the word of each, and the constants that have addresses."""
    offsets, size = place_parameters(entry, len(plan.sizes))
    block = Block((0, *offsets), size)
    slots: dict[int, int] = {}
    kept: list[Any] = []
    block.put(0, plan.sizes)
    for parameter, offset in zip(entry.parameters, offsets, strict=True):
        if parameter.kind == THREADGROUP:
            block.put(offset, plan.offsets.get(parameter.index, 0).to_bytes(parameter.size, "little"))
            continue
        value = _find_value(entry, parameter, request.values)
        if value is TENSOR:
            slots[parameter.index] = offset // 8
        elif parameter.kind == CONSTANT:
            block.put(offset, _fit(entry, parameter, value))
        else:
            constant = _upload(entry, parameter, value, request.device, side)
            kept.append(constant)
            block.put(offset, constant.data_ptr().to_bytes(8, "little"))
    return block, slots, tuple(kept)


def _find_value(entry: Entry, parameter: Parameter, values: Sequence[Value]) -> Value:
    if parameter.index >= len(values):
        what = f"kernel `{entry.name}` gets nothing for `{parameter.name}`, its argument {parameter.index}"
        raise OverlayError("PTR393", what, hint="Give it one argument for each of its buffers.")
    return values[parameter.index]


def _fit(entry: Entry, parameter: Parameter, value: bytes) -> bytes:
    fitting = fit(value, parameter.size)
    if fitting is None:
        what = f"kernel `{entry.name}` reads {parameter.size} bytes of `{parameter.name}`, and gets {len(value)}"
        raise OverlayError("PTR393", what, hint="Give as many numbers as the argument's type has.")
    return fitting


def _upload(entry: Entry, parameter: Parameter, value: bytes, device: int, side: TorchSide) -> Any:
    if side.is_capturing():
        what = f"kernel `{entry.name}` gets numbers for `{parameter.name}` that it never had, while a graph is captured"
        raise OverlayError("PTR392", what, hint="Make the same call once before the capture, as a warm-up.")
    return side.upload(value, device)
