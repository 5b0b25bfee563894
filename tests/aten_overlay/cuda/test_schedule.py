"""Orders of threadgroups made of a seed, and barriers that threads miss."""

from __future__ import annotations

import struct
from random import Random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from aten_overlay.cuda.grid import Grid
from aten_overlay.cuda.schedule import ScheduledLibrary, write_schedule
from aten_overlay.cuda.seed import read_seed
from aten_overlay.errors import OverlayError

from .recording import VARIABLE, Bench, make_bench, make_buffer, make_entry, on_device

ENTRY = make_entry("add", make_buffer("x", 0, writable=False), make_buffer("y", 1), forms=("grid",))
X, Y = on_device(torch.zeros(1000)), on_device(torch.zeros(1000))
sizes = st.tuples(*[st.integers(1, 40)] * 3)


@given(sizes, sizes, st.integers(0, 1000))
def test_an_order_has_each_threadgroup_once(
    threads: tuple[int, int, int], group: tuple[int, int, int], seed: int
) -> None:
    fields = struct.unpack("<16I96s", write_schedule(Grid(threads, group), Random(seed)))
    assert (fields[:3], fields[3:6]) == (threads, group)
    total = fields[6] * fields[7] * fields[8]
    order = [(block * fields[10] + fields[11]) % total for block in range(total)]
    assert sorted(order) == list(range(total))
    assert not any(fields[12:16]) and not any(fields[16])


def test_orders_differ_by_seed_and_by_call() -> None:
    grid, random = Grid((1000, 1, 1), (10, 1, 1)), Random(7)
    first, second = (write_schedule(grid, random) for _ in range(2))
    assert first != second
    assert first == write_schedule(grid, Random(7)) != write_schedule(grid, Random(8))


def test_more_threadgroups_than_32_bits_count_keep_their_order() -> None:
    fields = struct.unpack("<16I96s", write_schedule(Grid((1 << 31, 1 << 4, 1), (1, 1, 1)), Random(1)))
    assert fields[10:12] == (1, 0)


def schedule(bench: Bench, seed: int = 3) -> ScheduledLibrary:
    return ScheduledLibrary(bench.library, bench.library._driver, seed)


def test_a_call_writes_its_order_launches_and_waits() -> None:
    bench = make_bench(ENTRY)
    schedule(bench).add(X, Y, group_size=100)
    names = [call[0] for call in bench.recorder.calls]
    at = names.index("cuMemcpyHtoD_v2")
    assert names[at - 1 :] == [
        "cuCtxSynchronize", "cuMemcpyHtoD_v2", "cuLaunchKernel", "cuCtxSynchronize", "cuMemcpyDtoH_v2",
    ]  # fmt: skip
    assert bench.recorder.memory[VARIABLE] == write_schedule(Grid((1000, 1, 1), (100, 1, 1)), Random(3))
    assert bench.recorder.launches[0][:2] == ("add_grid", (10, 1, 1, 100, 1, 1))


def test_an_empty_grid_runs_nothing_and_a_call_without_a_tensor_is_refused() -> None:
    bench = make_bench(ENTRY)
    schedule(bench).add(X, Y, threads=0)
    assert bench.recorder.launches == []
    with pytest.raises(OverlayError, match="gets no CUDA tensor"):
        schedule(bench).add(1.0, 2.0, threads=4)


def test_a_barrier_that_threads_missed_is_an_error_at_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = make_bench(ENTRY)

    def fault(*_: object, **__: object) -> None:
        noted = struct.pack("<16I96s", *[0] * 12, 1, 17, 200, 256, b"add.metal\0rest")
        bench.recorder.memory = {VARIABLE: noted}

    kernel = schedule(bench).add
    monkeypatch.setattr(type(kernel._kernel), "__call__", fault)
    with pytest.raises(OverlayError) as error:
        kernel(X, Y)
    assert error.value.code == "PTR397"
    assert error.value.what == "kernel `add`: 200 of 256 threads of a threadgroup reach a barrier"
    assert str(error.value.place) == "add.metal:17"


def test_the_seed_is_that_of_the_environment() -> None:
    assert read_seed({}) is None
    assert read_seed({"PORTER_SHUFFLE": "12"}) == 12
    with pytest.raises(OverlayError, match=r"\$PORTER_SHUFFLE is `often`") as error:
        read_seed({"PORTER_SHUFFLE": "often"})
    assert error.value.code == "PTR396"
