"""Launches: the driver's calls in order, with their arguments."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from aten_overlay.cuda.grid import read_grid
from aten_overlay.errors import OverlayError

from .recording import grid_of, make_bench, make_buffer, make_constant, make_entry, make_shared, on_device

ADD = make_entry("add", make_buffer("x", 0, writable=False), make_buffer("y", 1))
SCALE = make_entry("scale", make_buffer("x", 0), make_constant("k", 1), forms=("grid", "flat"))
X, Y = on_device(torch.zeros(1000)), on_device(torch.zeros(1000))
FIRST = 40  # where the first buffer's address lies, after 36 bytes of sizes


@contextmanager
def refused(code: str) -> Iterator[None]:
    with pytest.raises(OverlayError) as error:
        yield
    assert error.value.code == code


def test_the_first_call_loads_and_the_next_only_launches() -> None:
    bench = make_bench(ADD)
    bench.library.add(X, Y)
    names = [call[0] for call in bench.recorder.calls]
    assert names == [
        "cuInit", "cuDeviceGet", "cuDeviceGetAttribute", "cuDeviceGetAttribute", "cuDeviceGet",
        "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuModuleLoadDataEx", "cuCtxSetCurrent", "cuModuleGetFunction",
        "cuLaunchKernel",
    ]  # fmt: skip
    assert ("cuModuleLoadDataEx", b".version 8.0", {6: 8192, 13: 1}) in bench.recorder.calls
    bench.library.add(Y, X)
    assert [call[0] for call in bench.recorder.calls[len(names) :]] == ["cuLaunchKernel"]
    first, second = (struct.unpack_from("<2Q", launch[4], FIRST) for launch in bench.recorder.launches)
    assert first == (X.data_ptr(), Y.data_ptr()) == second[::-1]
    assert bench.recorder.launches[0][3] == bench.side.stream


def test_an_entry_of_several_positions_has_fewer_blocks_and_a_group_of_its_own() -> None:
    bench = make_bench(ADD)
    bench.library.add(X, Y, threads=2000, group_size=1000)
    entry, sizes, _, _, parameters = bench.recorder.launches[0]
    assert (entry, sizes) == ("add_several", (2, 1, 1, 256, 1, 1))
    assert grid_of(parameters) == (2000, 1, 1, 256, 1, 1)


WHOLE = on_device(torch.zeros(16))


@pytest.mark.parametrize(
    "x, y",
    [(X, X), (WHOLE[:4], WHOLE[8:]), (X[1:], Y), (X, Y[1:])],
    ids=["one tensor twice", "views of one storage", "an unaligned input", "an unaligned output"],
)
def test_buffers_that_may_overlap_or_are_not_aligned_get_the_plain_entry(x: torch.Tensor, y: torch.Tensor) -> None:
    bench = make_bench(ADD)
    bench.library.add(x, y, threads=4)
    assert bench.recorder.launches[0][0] == "add_flat"


def test_views_of_different_storages_do_not_overlap_nor_do_inputs_that_are_only_read() -> None:
    bench = make_bench(ADD)
    bench.library.add(X[4:], Y[8:], threads=4)
    both = make_entry("both", make_buffer("x", 0, False), make_buffer("y", 1, False), make_buffer("z", 2))
    other = make_bench(both)
    other.library.both(X, X, Y)
    other.library.both(X, Y, Y)
    forms = [launch[0] for launch in (*bench.recorder.launches, *other.recorder.launches)]
    assert forms == ["add_several", "both_several", "both_flat"]


def test_a_library_may_be_made_for_buffers_that_overlap() -> None:
    bench = make_bench(ADD, restrict=False)
    bench.library.add(X, Y)
    assert bench.recorder.launches[0][0] == "add_flat"


def test_a_grid_of_more_dimensions_is_counted_in_groups() -> None:
    bench = make_bench(ADD)
    bench.library.add(X, Y, threads=[10, 7, 3], group_size=[4, 4, 2])
    entry, sizes, _, _, parameters = bench.recorder.launches[0]
    assert entry == "add_grid"
    assert sizes[0] * sizes[1] * sizes[2] == 3 * 2 * 2
    assert sizes[3:] == (32, 1, 1)
    assert grid_of(parameters) == (10, 7, 3, 4, 4, 2)


def test_an_empty_grid_launches_nothing() -> None:
    bench = make_bench(ADD)
    bench.library.add(X, Y, threads=[0])
    assert bench.recorder.launches == []


def test_numbers_travel_by_value_and_another_number_is_another_block() -> None:
    bench = make_bench(SCALE)
    for number in (1.5, 1, True, -0.0, 0.0):
        bench.library.scale(X, number, arg_casts={} if isinstance(number, float) else "int32")
    values = [launch[4][48:52] for launch in bench.recorder.launches]
    assert values == [struct.pack("<f", 1.5), *[struct.pack("<i", 1)] * 2, struct.pack("<f", -0.0), bytes(4)]


def test_a_number_in_a_tensor_is_read_on_the_host_and_an_address_on_a_device() -> None:
    bench = make_bench(SCALE)
    bench.library.scale(X, torch.tensor(2.5))
    number = on_device(torch.tensor(3.5))
    bench.side.capturing = True
    bench.library.scale(X, number)
    bench.library.scale(X, number)
    values = [launch[4][48:56] for launch in bench.recorder.launches]
    assert values == [struct.pack("<fxxxx", 2.5), *[struct.pack("<Q", number.data_ptr())] * 2]
    assert bench.variants == [("scale", (1,))]


def test_a_list_behind_a_pointer_is_uploaded_once() -> None:
    bench = make_bench(ADD)
    for _ in range(3):
        bench.library.add([1, 2, 3], X, threads=4)
    assert bench.side.uploads == [(struct.pack("<3q", 1, 2, 3), 0)]
    assert len(bench.recorder.launches) == 3
    bench.side.capturing = True
    bench.library.add([1, 2, 3], X, threads=4)
    with refused("PTR392"):
        bench.library.add([1, 2, 4], X, threads=4)


def test_a_row_of_three_fits_the_room_of_four_and_fewer_numbers_do_not() -> None:
    bench = make_bench(make_entry("scale", make_buffer("x", 0), make_constant("k", 1, 16)))
    bench.library.scale(X, [1, 2, 3], arg_casts="int32")
    assert bench.recorder.launches[0][4][48:64] == struct.pack("<4i", 1, 2, 3, 0)
    with refused("PTR393"):
        bench.library.scale(X, [1, 2], arg_casts="int32")


def test_threadgroup_arguments_share_dynamic_memory() -> None:
    bench = make_bench(
        make_entry("sum", make_buffer("x", 0), make_shared("a", 0), make_shared("b", 1), forms=("grid",))
    )
    bench.library.sum(X, threadgroup_bytes=[20, 48 * 1024])
    bench.library.sum(X, threadgroup_bytes=[20, 16])
    _, _, dynamic, _, parameters = bench.recorder.launches[0]
    assert dynamic == 32 + 48 * 1024
    assert struct.unpack_from("<2I", parameters, 48) == (0, 32)
    assert [call for call in bench.recorder.calls if call[0] == "cuFuncSetAttribute"] == [
        ("cuFuncSetAttribute", 8, dynamic)
    ]


def test_a_missing_argument_and_a_group_that_is_too_large_are_refused() -> None:
    bench = make_bench(replace(ADD, thread_limit=512))
    with refused("PTR393"):
        bench.library.add(X)
    with refused("PTR383"):
        bench.library.add(X, X, threads=1000)
    assert bench.library.add.max_threads_per_threadgroup == 512


def test_tensors_of_other_devices_are_refused() -> None:
    bench = make_bench(ADD)
    with refused("PTR388"):
        bench.library.add(X, torch.zeros(3))
    with refused("PTR388"):
        bench.library.add(3, 4, threads=4)
    with refused("PTR388"):
        bench.library.add(X, on_device(torch.zeros(3), 1))
    assert bench.recorder.launches == []


def test_a_launch_on_another_device_leaves_the_current_one() -> None:
    bench = make_bench(ADD)
    bench.library.add(on_device(X, 1), on_device(Y, 1))
    entered = [call[1] for call in bench.recorder.calls if call[0] == "cuCtxSetCurrent"]
    assert entered[-2:] == [0xC001, 0xC000]
    assert bench.recorder.launches[0][3] == bench.side.stream + 1


def test_a_thread_without_a_context_gets_one() -> None:
    bench = make_bench(ADD, statuses={"cuLaunchKernel": [201]})
    bench.library.add(X, Y)
    assert [call[0] for call in bench.recorder.calls[-3:]] == ["cuLaunchKernel", "cuCtxSetCurrent", "cuLaunchKernel"]


@pytest.mark.parametrize("status, code", [(2, "PTR389"), (700, "PTR390"), (1, "PTR390")])
def test_what_a_launch_answers_has_a_code(status: int, code: str) -> None:
    bench = make_bench(ADD, statuses={"cuLaunchKernel": [status]})
    with refused(code):
        bench.library.add(X, Y)


def test_an_old_gpu_none_and_refused_ptx_have_codes() -> None:
    with refused("PTR386"):
        make_bench(ADD, capability=(7, 5)).library.add(X, Y)
    with refused("PTR385"):
        make_bench(ADD, statuses={"cuDeviceGet": [101]}).library.add(X, Y)
    with refused("PTR385"):
        make_bench(ADD, statuses={"cuInit": [100]})
    log = b"ptxas application ptx input, line 3; fatal : Unsupported .version"
    bench = make_bench(ADD, statuses={"cuModuleLoadDataEx": [222]}, log=log)
    with pytest.raises(OverlayError, match=r"line 3; fatal : Unsupported \.version") as error:
        bench.library.add(X, Y)
    assert error.value.code == "PTR387"


def test_an_unknown_name_is_what_torch_says() -> None:
    bench = make_bench(ADD)
    assert dir(bench.library) == ["add"]
    with pytest.raises(RuntimeError, match="Failed to create function state object for: sub"):
        bench.library.sub(X)


SIZES = st.lists(st.integers(1, 2000), min_size=1, max_size=3)


@given(SIZES, st.lists(st.integers(1, 10), min_size=3, max_size=3))
def test_a_grid_keeps_what_was_asked_for(threads: list[int], group: list[int]) -> None:
    grid = read_grid(threads, group[: len(threads)])
    assert grid.threads == (*threads, *[1] * (3 - len(threads)))
    assert grid.group == (*group[: len(threads)], *[1] * (3 - len(threads)))
    assert grid.is_flat == (grid.threads[1:] == (1, 1) == grid.group[1:])
