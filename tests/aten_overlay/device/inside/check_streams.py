"""Streams, events, errors that kernels report and pinned memory, as host code and torch see them.

Every test runs on every wheel. Where the wheel's headers declare no pool of streams, the streams are still there by
number: what they lack is checked in place of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from torch.utils._cpp_embed_headers import _embed_headers

from tests.aten_overlay.device.programs.loading import load_program

HEADERS = Path(torch.__file__).parent / "include" / "ATen" / "mps"
# What the wheel's headers declare, by the macro that says so to streams.mm.
DECLARED = {
    "POOL": "getStreamFromPool" in (HEADERS / "MPSStream.h").read_text(),
    "EVENT_STREAMS": "class MPSEventPtrTarget" in (HEADERS / "MPSEvent.h").read_text(),
    "GUARD_POOL": "getStreamFromPool" in (HEADERS / "MPSGuardImpl.h").read_text(),
}
SIZE = 8
REPORT = """
#include <c10/metal/error.h>
kernel void report(device const long* index, constant long& size, device c10::metal::ErrorMessages* errors,
                   uint i [[thread_position_in_grid]]) {
  if (index[i] < 0 || index[i] >= size) {
    TORCH_REPORT_ERROR(errors, "index ", index[i], " is out of range for size ", size);
  }
}
"""


@pytest.fixture(scope="module", autouse=True)
def extension(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    flags = [f"-D{name}" for name, declared in DECLARED.items() if declared]
    load_program("streams", tmp_path_factory.mktemp("streams"), flags)
    yield


@pytest.fixture(autouse=True)
def leaves_nothing() -> Iterator[None]:
    yield
    torch.mps.synchronize()
    assert torch.accelerator.current_stream().stream_id == 0


@contextmanager
def on_stream(number: int) -> Iterator[None]:
    before = torch.accelerator.current_stream()
    torch.accelerator.set_stream(torch.Stream(stream_id=number, device_index=0, device_type=13))
    try:
        yield
    finally:
        torch.accelerator.set_stream(before)


def zeros() -> torch.Tensor:
    return torch.zeros(SIZE, dtype=torch.uint8, device="mps")


def test_host_code_and_torch_name_the_same_stream() -> None:
    ops = torch.ops.streams_test
    assert ops.current() == 0
    with on_stream(3):
        assert ops.current() == torch.accelerator.current_stream().stream_id == 3
    assert ops.current() == 0
    with pytest.raises(RuntimeError, match="MPS has streams 0 to 32, not 33"), on_stream(33):
        pass


@pytest.mark.parametrize("finish", ["commit", "synchronize"])
def test_other_streams_see_nothing_before_a_commit(finish: str) -> None:
    ops, x = torch.ops.streams_test, zeros()
    with on_stream(1):
        ops.fill(x, 1)
    assert x.tolist() == [0] * SIZE
    with on_stream(1):
        getattr(ops, finish)()
    assert x.tolist() == [1] * SIZE


def test_a_stream_sees_its_own_work() -> None:
    ops, x, y = torch.ops.streams_test, zeros(), zeros()
    with on_stream(1):
        ops.fill(x, 1)
        assert (x + 1).tolist() == [2] * SIZE
        ops.fill(x, 3)
        ops.copy_by_kernel(x, y)
        assert y.tolist() == [3] * SIZE


def test_torch_synchronizes_every_stream() -> None:
    ops, x, y = torch.ops.streams_test, zeros(), zeros()
    for number, tensor in ((1, x), (2, y)):
        with on_stream(number):
            ops.fill(tensor, number)
    torch.mps.synchronize()
    assert (x.tolist(), y.tolist()) == ([1] * SIZE, [2] * SIZE)


def test_without_an_event_the_reader_may_come_first() -> None:
    ops, x, y = torch.ops.streams_test, zeros(), zeros()
    with on_stream(1):
        ops.fill(x, 1)
    with on_stream(2):
        ops.copy(x, y, SIZE)
        ops.synchronize()
    assert y.tolist() == [0] * SIZE


@pytest.mark.parametrize("reader_first", [False, True])
def test_an_event_orders_two_streams(reader_first: bool) -> None:
    ops, x, y = torch.ops.streams_test, zeros(), zeros()
    value = 1 + reader_first
    with on_stream(1):
        ops.fill(x, value)
        ops.signal(value)
    with on_stream(2):
        ops.wait_for(value)
        ops.copy(x, y, SIZE)
    for number in (2, 1) if reader_first else (1, 2):
        with on_stream(number):
            ops.commit()
    assert y.tolist() == [value] * SIZE


def test_a_wait_that_nothing_ends_is_a_deadlock() -> None:
    ops = torch.ops.streams_test
    with on_stream(1):
        ops.wait_for(90)
        with pytest.raises(RuntimeError, match="PTR122: a command buffer waits for an event that no committed command"):
            ops.synchronize()
    with on_stream(2):
        ops.signal(90)
        ops.synchronize()


def test_memory_stays_until_the_work_that_uses_it_is_done() -> None:
    ops, x, y = torch.ops.streams_test, torch.full((SIZE,), 5, dtype=torch.uint8, device="mps"), zeros()
    with on_stream(1):
        ops.copy(x, y, SIZE)
    del x
    others = [torch.full((SIZE,), 9, dtype=torch.uint8, device="mps") for _ in range(4)]
    torch.mps.synchronize()
    assert y.tolist() == [5] * SIZE and len(others) == 4


@pytest.mark.parametrize("number", [0, 1])
def test_an_index_out_of_range_is_raised_at_the_next_synchronization(number: int) -> None:
    ops, index = torch.ops.streams_test, torch.tensor([1, 7, 2], device="mps")
    report = _embed_headers(REPORT.splitlines(keepends=True), [HEADERS.parents[1]], set())
    with on_stream(number):
        ops.check_index(index, 5, report)
        with pytest.raises(torch.AcceleratorError, match="index 7 is out of range for size 5"):
            ops.synchronize()
        ops.check_index(index, 8, report)
        ops.synchronize()
        ops.check_index(index, 2, report)
    with pytest.raises(torch.AcceleratorError, match="is out of range for size 2"):
        torch.mps.synchronize()


def test_what_a_command_buffer_fails_of_is_raised() -> None:
    ops, x, y = torch.ops.streams_test, zeros(), zeros()
    with on_stream(1):
        ops.copy(x, y, 4096)
        with pytest.raises(RuntimeError, match="PTR124"):
            ops.synchronize()
        ops.synchronize()


def test_events_have_times() -> None:
    ops = torch.ops.streams_test
    assert ops.time_events(True, True) >= 0
    with pytest.raises(RuntimeError, match="enable_timing=True"):
        ops.time_events(False, True)
    with pytest.raises(RuntimeError, match="recorded"):
        ops.time_events(True, False)


def test_events_of_torch_order_streams() -> None:
    ops, x, y = torch.ops.streams_test, zeros(), zeros()
    event = torch.Event("mps")
    with on_stream(1):
        ops.fill(x, 1)
        event.record()
    with on_stream(2):
        event.wait()
        ops.copy(x, y, SIZE)
        ops.commit()
    assert y.tolist() == [1] * SIZE


def test_pinned_memory_is_known_to_host_code() -> None:
    ops = torch.ops.streams_test
    assert ops.is_pinned(torch.ones(3).pin_memory()) and not ops.is_pinned(torch.ones(3))


def test_the_pool_of_at_mps() -> None:
    ops = torch.ops.streams_test
    assert hasattr(ops, "pool_turns") == DECLARED["POOL"]
    if DECLARED["POOL"]:
        assert 1 <= ops.pool_turns() <= 32 and 1 <= ops.follow_pool() <= 32
        out = zeros()
        ops.copies_from_pinned(torch.full((SIZE,), 3, dtype=torch.uint8).pin_memory(), out)
        assert out.tolist() == [3] * SIZE


def test_events_of_at_mps_order_streams() -> None:
    ops, x, y = torch.ops.streams_test, zeros(), zeros()
    assert hasattr(ops, "event_orders") == DECLARED["EVENT_STREAMS"]
    if DECLARED["EVENT_STREAMS"]:
        ops.event_orders(x, y)
        assert y.tolist() == [1] * SIZE


def test_new_streams_of_torch() -> None:
    ops, mps = torch.ops.streams_test, cast(Any, torch.mps)
    if not DECLARED["GUARD_POOL"]:
        assert torch.Stream(device="mps").stream_id == 0
        return
    stream = mps.Stream()
    with mps.stream(stream):
        assert ops.current() == ops.torch_stream() == stream.stream_id != 0
    with torch.Stream(device="mps") as generic:
        assert ops.current() == mps.current_stream().stream_id == generic.stream_id != stream.stream_id
    assert mps.current_stream() == mps.default_stream()
