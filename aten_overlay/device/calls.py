"""Calls of kernels in C++ (calls.cpp), compiled when one is first made: each costs what an operator of torch does.

Without Python's headers calls are described in Python, and launched through ctypes. They do the same.
"""

from __future__ import annotations

import ctypes
import sysconfig
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, TypeAlias

import torch

from aten_overlay.device import libraries, load
from aten_overlay.device.repeated import RepeatedLaunch
from aten_overlay.device.shader import calls
from aten_overlay.errors import OverlayError
from aten_overlay.metal.launch import LIMIT, SEEDS, failure

_NAME = "porter_calls"
Run: TypeAlias = Callable[[Any], list[torch.Tensor]]


@lru_cache(maxsize=1)
def find_module() -> Any | None:
    """calls.cpp as a module of this Python; None without the device, and where it cannot be compiled."""
    include = sysconfig.get_path("include")
    if load.started() is None or not Path(include, "Python.h").is_file():
        return None
    try:
        path = libraries.build_calls(_NAME, include)
    except OverlayError:
        return None
    spec = spec_from_file_location(_NAME, path, loader=ExtensionFileLoader(_NAME, str(path)))
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def bind(
    launch: RepeatedLaunch,
    tensors: Sequence[int],
    numbers: Sequence[int],
    outputs: Sequence[tuple[Sequence[int], torch.dtype]],
    start: bool | float | None,
    copies: bool,
) -> Run | None:
    """A function from inputs to new outputs that runs `launch`; None where calls.cpp is not compiled.

    `tensors` and `numbers` are places among inputs and outputs, in the order in which the launch takes them; `start`
    fills outputs first, and `copies` makes tensors dense. Raises what `Library.run` raises.
    """
    module = find_module()
    if module is None:
        return None
    kernel = launch.kernel
    arguments = [
        (each.length, each.constant or b"", each.number._type_ if each.number else "") for each in launch.buffers
    ]
    prepared = module.prepare(
        ctypes.addressof(kernel.library.entry(kernel.name)), launch.threads, launch.group_size, arguments,
        tensors, numbers, outputs, start, copies, ctypes.addressof(LIMIT), calls, kernel.name, SEEDS,
        lambda status, text: failure(status, text or f"kernel `{kernel.name}` failed ({status})"),
    )  # fmt: skip
    return partial(module.run, prepared)
