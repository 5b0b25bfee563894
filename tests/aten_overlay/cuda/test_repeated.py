"""Launches that are repeated: the same as a call's, with other addresses and numbers."""

from __future__ import annotations

import struct
from typing import Any

import pytest
import torch

from aten_overlay.errors import OverlayError
from tests.aten_overlay.cuda.recording import Bench, make_bench, make_buffer, make_constant, make_entry, on_device

ENTRY = make_entry("scale", make_buffer("out", 0), make_buffer("x", 1, writable=False), make_constant("k", 2))
GRID: Any = {"threads": (100, 1, 1), "group_size": (32, 1, 1)}


def make_tensors(count: int = 2) -> list[torch.Tensor]:
    return [on_device(torch.zeros(128)) for _ in range(count)]


def repeat(bench: Bench, *args: object) -> Any:
    return bench.library.scale.repeat(args, (100, 1, 1), (32, 1, 1), {})


def test_a_repetition_launches_what_a_call_does() -> None:
    bench = make_bench(ENTRY)
    out, x = make_tensors()
    launch = repeat(bench, out, x, 1.5)
    launch.run([out.data_ptr(), x.data_ptr()], [2.5])
    bench.library.scale(out, x, 2.5, **GRID)
    repeated, called = bench.recorder.launches
    assert repeated == called
    assert repeated[0] == "scale_several"
    assert struct.unpack_from("<QQf", repeated[-1], 40) == (out.data_ptr(), x.data_ptr(), 2.5)


def test_memory_that_is_not_aligned_is_read_one_element_at_a_time() -> None:
    bench = make_bench(ENTRY)
    out, x = make_tensors()
    launch = repeat(bench, out, x, 1.5)
    launch.run([out.data_ptr(), x.data_ptr() + 4], [1.5])
    launch.run([out.data_ptr(), x.data_ptr()], [1.5])
    assert [each[0] for each in bench.recorder.launches] == ["scale_flat", "scale_several"]


def test_a_kernel_prepares_its_launches_once() -> None:
    bench = make_bench(ENTRY)
    out, x = make_tensors()
    launch = repeat(bench, out, x, 1.5)
    before = len(bench.recorder.calls)
    for number in (1.0, -0.0, 1e300):
        launch.run([out.data_ptr(), x.data_ptr()], [number])
    assert [call[0] for call in bench.recorder.calls[before:]] == ["cuLaunchKernel"] * 3
    last = [struct.unpack_from("<f", each[-1], 56)[0] for each in bench.recorder.launches]
    assert [str(value) for value in last] == ["1.0", "-0.0", "inf"]


def test_a_tensor_in_the_place_of_a_number_is_passed_by_its_address() -> None:
    bench = make_bench(ENTRY)
    out, x, k = make_tensors(3)
    repeat(bench, out, x, k).run([each.data_ptr() for each in (out, x, k)], [])
    assert bench.variants == [("scale", (2,))]
    assert struct.unpack_from("<3Q", bench.recorder.launches[0][-1], 40) == tuple(t.data_ptr() for t in (out, x, k))


def test_a_number_behind_a_pointer_and_an_empty_grid_take_the_long_way() -> None:
    bench = make_bench(make_entry("scale", make_buffer("out", 0), make_buffer("k", 1, writable=False)))
    out = on_device(torch.zeros(128))
    assert repeat(bench, out, 2.0) is None
    assert bench.library.scale.repeat([out, out], (0, 1, 1), (1, 1, 1), {}) is None
    assert bench.library.scale.repeat([1.0, 2.0], (4, 1, 1), (1, 1, 1), {}) is None


def test_a_fault_is_an_error() -> None:
    bench = make_bench(ENTRY, statuses={"cuLaunchKernel": [700]})
    out, x = make_tensors()
    with pytest.raises(OverlayError, match=r"a kernel faulted: a launch of `scale`") as error:
        repeat(bench, out, x, 1.5).run([out.data_ptr(), x.data_ptr()], [1.5])
    assert error.value.code == "PTR390"
