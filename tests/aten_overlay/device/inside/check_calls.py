"""What a repeated launch hands to a kernel, from C++ and through ctypes; the kernel is a function of these tests."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
import torch

import aten_overlay
from aten_overlay.device.calls import Run, bind, find_module
from aten_overlay.device.repeated import RepeatedLaunch, repeat
from aten_overlay.device.shader import MetalKernel, calls
from aten_overlay.errors import OverlayError
from aten_overlay.metal.launch import KernelFields, LaunchFields, Library, limit_threads

device = aten_overlay.start()
NAME = "noted"


@dataclass
class Noted:
    """A kernel that notes its launches. `status` is what it returns, with `message`."""

    status: int = 0
    message: bytes = b""
    limits: list[int] = field(default_factory=list)
    seeds: list[int] = field(default_factory=list)
    sizes: list[tuple[list[int], list[int]]] = field(default_factory=list)
    buffers: list[list[tuple[int, bytes]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.fields = KernelFields(
            NAME.encode(), None, 0, 0, 0, 1024, ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(self)
        )

    def __call__(self, address: int) -> int:
        launch = LaunchFields.from_address(address)
        self.limits.append(launch.max_threads)
        self.seeds.append(launch.seed)
        self.sizes.append((list(launch.grid), list(launch.group)))
        bound = [launch.buffers[i] for i in range(launch.buffer_count)]
        self.buffers.append([(each.length, ctypes.string_at(each.address, each.length)) for each in bound])
        error = ctypes.c_void_p.from_address(address + LaunchFields.error.offset).value or 0
        ctypes.memmove(error, self.message + b"\0", len(self.message) + 1)
        return self.status

    def entry(self, name: str) -> KernelFields:
        assert name == NAME
        return self.fields


def launch_of(noted: Noted, *args: Any, casts: dict[int, str] | None = None) -> RepeatedLaunch:
    kernel = MetalKernel(cast(Library, noted), NAME, device)
    found = repeat(kernel, args, (6, 5, 4), (3, 2, 1), casts or {})
    assert found is not None
    return found


def in_cpp(launch: RepeatedLaunch, tensors: list[int], numbers: list[int]) -> Run:
    found = bind(launch, tensors, numbers, [], None, False)
    assert found is not None
    return found


def in_python(launch: RepeatedLaunch, tensors: list[int], numbers: list[int]) -> Run:
    def run(inputs: Any) -> list[torch.Tensor]:
        launch.run([inputs[i].data_ptr() for i in tensors], [inputs[i] for i in numbers])
        return []

    return run


both = pytest.mark.parametrize("bound", [in_cpp, in_python])


def test_calls_are_compiled_here() -> None:
    assert find_module() is not None


@both
def test_memory_numbers_and_lists_are_bound_in_order(bound: Any) -> None:
    noted, x, y = Noted(), torch.arange(3, device="mps"), torch.tensor([5, 6], dtype=torch.int8, device="mps")
    casts = {1: "int32", 2: "uint8", 4: "int32"}
    run = bound(launch_of(noted, x, 7, True, 1.5, [8, 9], 10, y[1:], casts=casts), [2, 0], [1, 3, 4, 5])
    run([y[1:], 70, x, False, 2.5, 2**40])
    expected = torch.arange(3), torch.tensor(70, dtype=torch.int32), torch.tensor(False), torch.tensor(2.5)
    rest = torch.tensor([8, 9], dtype=torch.int32), torch.tensor(2**40), torch.tensor([6], dtype=torch.int8)
    assert noted.buffers == [[(each.nbytes, each.numpy().tobytes()) for each in (*expected, *rest)]]
    assert noted.sizes == [([6, 5, 4], [3, 2, 1])]


@both
def test_each_launch_has_its_seed_its_limit_and_is_counted(bound: Any) -> None:
    noted, before = Noted(), calls[NAME]
    run = bound(launch_of(noted), [], [])
    for limit in (3, 0):
        with limit_threads(limit):
            run([])
    assert noted.limits == [3, 0] and len(set(noted.seeds)) == 2 and calls[NAME] == before + 2


@both
@pytest.mark.parametrize(
    ("message", "text"),
    [(b"too far", "PTR107 too far"), (b"", "PTR107 kernel `noted` failed (3)"), (b"PTR262: y", "PTR262 y")],
)
def test_a_launch_that_fails_raises_what_the_long_way_does(bound: Any, message: bytes, text: str) -> None:
    with pytest.raises(OverlayError) as error:
        bound(launch_of(Noted(3, message)), [], [])([])
    assert str(error.value) == text


def test_cpp_makes_outputs_and_copies_what_is_not_dense() -> None:
    noted, wide = Noted(), torch.arange(6, device="mps")
    launch = launch_of(noted, wide[:3], torch.zeros(2, device="mps"))
    run = bind(launch, [0, 1], [], [((2,), torch.float32)], 1.5, True)
    assert run is not None
    (output,) = run({"x": wide[::2]})
    assert output.tolist() == [1.5, 1.5] and output.device.type == "mps"
    assert noted.buffers[0][0][1] == torch.tensor([0, 2, 4]).numpy().tobytes()
    assert noted.buffers[0][1][1] == output.cpu().numpy().tobytes()
