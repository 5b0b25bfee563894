"""Every public function of torch.mps and torch.accelerator: a table, so that a new one shows."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch

GRAPHS = "Graph is not supported on device type: mps"


def megabyte() -> Any:
    return torch.empty(1 << 18, device="mps")


def freed_memory_is_given_back() -> None:
    torch.mps.empty_cache()
    before = torch.mps.driver_allocated_memory()
    held = megabyte()
    assert torch.mps.driver_allocated_memory() > before
    del held
    torch.mps.empty_cache()
    assert torch.mps.driver_allocated_memory() <= before
    assert megabyte().fill_(2).sum().item() == 2 << 18


def live_tensors_are_counted(read: Callable[[], int]) -> None:
    gc.collect()
    before = read()
    held = megabyte()
    assert read() - before == held.nbytes
    del held
    assert read() == before


def the_peak_stays(read: Callable[[], int]) -> None:
    torch.accelerator.reset_peak_memory_stats()
    before = read()
    held = torch.empty(1 << 24, device="mps")
    assert read() >= before + held.nbytes
    del held
    torch.accelerator.empty_cache()
    assert read() >= before + (1 << 24)
    torch.accelerator.reset_peak_memory_stats()
    assert read() <= before


def a_limit_is_kept() -> None:
    try:
        torch.mps.set_per_process_memory_fraction(1e-6)
        with pytest.raises(torch.OutOfMemoryError, match="MPS backend out of memory"):
            torch.empty(1 << 26, device="mps")
    finally:
        torch.mps.set_per_process_memory_fraction(0.0)
    assert torch.empty(1 << 26, device="mps").numel() == 1 << 26


def the_state_repeats() -> None:
    torch.mps.manual_seed(3)
    state = torch.mps.get_rng_state()
    first = torch.rand(4, device="mps")
    torch.mps.set_rng_state(state)
    assert torch.equal(first, torch.rand(4, device="mps"))


def a_new_seed_is_another() -> None:
    torch.mps.manual_seed(3)
    first = torch.mps.get_rng_state()
    torch.mps.seed()
    assert not torch.equal(first, torch.mps.get_rng_state())


def memory_is_free() -> None:
    free, total = torch.accelerator.get_memory_info()
    assert total == torch.mps.recommended_max_memory() and free == total - torch.mps.driver_allocated_memory()


def totals_begin_again() -> None:
    megabyte()
    assert torch.accelerator.memory_stats()["allocated_bytes.all.freed"] >= 1 << 20
    torch.accelerator.reset_accumulated_memory_stats()
    stats = torch.accelerator.memory_stats()
    assert (stats["allocated_bytes.all.allocated"], stats["allocated_bytes.all.freed"]) == (0, 0)


def types_are_those_of_apple() -> None:
    types = torch.accelerator.get_device_capability()["supported_dtypes"]
    assert torch.bfloat16 in types and not types & {torch.float64, torch.complex128}
    assert all(torch.zeros(1, dtype=each, device="mps").dtype == each for each in types)


def streams_are_one() -> None:
    stream = torch.accelerator.current_stream()
    torch.accelerator.set_stream(stream)
    assert torch.accelerator.current_stream() == stream and stream.device.type == "mps" and stream.query()


def there_is_one_device() -> None:
    torch.accelerator.set_device_index(0)
    with torch.accelerator.device_index(0):
        assert torch.accelerator.current_device_index() == 0
    with pytest.raises(RuntimeError, match="there is one mps device, not mps:1"):
        torch.accelerator.set_device_index(1)


def graphs_are_refused() -> None:
    with pytest.raises(RuntimeError, match=GRAPHS):
        torch.accelerator.Graph()


def pinned_memory_is_pinned() -> None:
    assert torch.ones(3).pin_memory().is_pinned() and torch.empty(3, pin_memory=True)[1:].is_pinned()
    assert not torch.ones(3).is_pinned()
    assert torch.ones(3).pin_memory().to("mps", non_blocking=True).tolist() == [1, 1, 1]
    torch.accelerator.empty_host_cache()


def libraries_need_their_source() -> None:
    with pytest.raises(RuntimeError, match="PTR186 a Metal library given as bytes"):
        torch.mps.load_metallib(b"MTLB")
    with pytest.raises(TypeError, match="expected bytes or path"):
        torch.mps.load_metallib(3)


def traces_are_checked_and_go_nowhere() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        torch.mps.profiler.start("interval,event")
        with pytest.raises(RuntimeError, match="already enabled"):
            torch.mps.profiler.start()
        torch.mps.profiler.stop()
    assert not seen or "nothing is recorded" in str(seen[0].message)
    with pytest.raises(RuntimeError, match="Invalid Signpost trace mode: loud"), torch.mps.profiler.profile("loud"):  # type: ignore[arg-type]
        pass


def captures_are_refused() -> None:
    with pytest.raises(RuntimeError, match="Failed to start capture: PTR188"), torch.mps.profiler.metal_capture("a"):
        pass
    assert not torch.mps.profiler.is_capturing_metal() and not torch.mps.profiler.is_metal_capture_enabled()


def event_is_recorded() -> None:
    event = torch.mps.Event()
    assert not event.query()
    event.wait()
    event.record()
    event.synchronize()
    assert event.query()


def events_have_an_order() -> None:
    first, second = (torch.mps.Event(enable_timing=True) for _ in range(2))
    first.record()
    torch.ones(1000, device="mps").sort()
    second.record()
    assert first.elapsed_time(second) > 0
    with pytest.raises(RuntimeError, match="was not recorded after start event"):
        second.elapsed_time(first)


def is_true(call: Callable[[], object]) -> Callable[[], None]:
    def check() -> None:
        assert call()

    return check


def returns(call: Callable[[], object]) -> Callable[[], None]:
    def check() -> None:
        assert call() is None

    return check


def example_of_pytorch() -> None:
    x = torch.zeros(4, device="mps")
    torch.mps.compile_shader("kernel void f(device float* o, uint i [[thread_position_in_grid]]) { o[i] = i; }").f(x)
    assert x.tolist() == [0, 1, 2, 3]


A, M, P = torch.accelerator, torch.mps, torch.mps.profiler
CHECKS: Mapping[str, Mapping[str, Callable[[], None]]] = {
    "torch.mps": {
        "Event": event_is_recorded,
        "compile_shader": example_of_pytorch,
        "current_allocated_memory": lambda: live_tensors_are_counted(M.current_allocated_memory),
        "device_count": is_true(lambda: M.device_count() == 1),
        "driver_allocated_memory": freed_memory_is_given_back,
        "empty_cache": freed_memory_is_given_back,
        "get_rng_state": the_state_repeats,
        "is_available": is_true(M.is_available),
        "load_metallib": libraries_need_their_source,
        "manual_seed": the_state_repeats,
        "profiler": is_true(lambda: P is M.profiler),
        "recommended_max_memory": is_true(lambda: M.recommended_max_memory() > 1 << 30),
        "seed": a_new_seed_is_another,
        "set_per_process_memory_fraction": a_limit_is_kept,
        "set_rng_state": the_state_repeats,
        "synchronize": returns(M.synchronize),
    },
    "torch.mps.event.Event": {
        "elapsed_time": events_have_an_order,
        "query": event_is_recorded,
        "record": event_is_recorded,
        "synchronize": event_is_recorded,
        "wait": event_is_recorded,
    },
    "torch.mps.profiler": {
        "is_capturing_metal": captures_are_refused,
        "is_metal_capture_enabled": captures_are_refused,
        "metal_capture": captures_are_refused,
        "profile": traces_are_checked_and_go_nowhere,
        "start": traces_are_checked_and_go_nowhere,
        "stop": traces_are_checked_and_go_nowhere,
    },
    "torch.accelerator": {
        "Graph": graphs_are_refused,
        "current_accelerator": is_true(lambda: A.current_accelerator() == torch.device("mps")),
        "current_device_idx": is_true(lambda: A.current_device_idx() == 0),
        "current_device_index": there_is_one_device,
        "current_stream": streams_are_one,
        "device_count": is_true(lambda: A.device_count() == 1),
        "device_index": there_is_one_device,
        "empty_cache": lambda: the_peak_stays(A.max_memory_reserved),
        "empty_host_cache": pinned_memory_is_pinned,
        "get_device_capability": types_are_those_of_apple,
        "get_memory_info": memory_is_free,
        "is_available": is_true(A.is_available),
        "max_memory_allocated": lambda: the_peak_stays(A.max_memory_allocated),
        "max_memory_reserved": lambda: the_peak_stays(A.max_memory_reserved),
        "memory_allocated": lambda: live_tensors_are_counted(A.memory_allocated),
        "memory_reserved": is_true(lambda: A.memory_reserved() == M.driver_allocated_memory()),
        "memory_stats": totals_begin_again,
        "reset_accumulated_memory_stats": totals_begin_again,
        "reset_peak_memory_stats": lambda: the_peak_stays(A.max_memory_allocated),
        "set_device_idx": returns(lambda: A.set_device_idx(0)),
        "set_device_index": there_is_one_device,
        "set_stream": streams_are_one,
        "synchronize": returns(A.synchronize),
    },
}
# What a newer torch has besides: streams of its own, which check_torch_mps.py tests.
NEWER = {"torch.mps": {"Stream", "StreamContext", "current_stream", "default_stream", "set_stream", "stream"}}
PUBLIC = {
    "torch.mps": set(M.__all__),
    "torch.mps.event.Event": {name for name in vars(M.Event) if not name.startswith("_")},
    "torch.mps.profiler": set(P.__all__),
    "torch.accelerator": {*A.__all__, *A.memory.__all__},
}


@pytest.mark.parametrize("module", PUBLIC)
def test_the_table_has_every_public_name(module: str) -> None:
    assert PUBLIC[module] - NEWER.get(module, set()) == set(CHECKS[module])


@pytest.mark.parametrize(("module", "name"), [(module, name) for module, checks in CHECKS.items() for name in checks])
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore:ComplexHalf")
def test_a_public_function(module: str, name: str) -> None:
    CHECKS[module][name]()
