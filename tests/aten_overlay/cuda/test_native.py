"""The launcher in C: the same launches as by ctypes, and what it leaves to the long way."""

from __future__ import annotations

import struct
from typing import Any

import pytest
import torch

from aten_overlay.cuda import native
from aten_overlay.cuda.native import load_module
from aten_overlay.errors import OverlayError

from .recording import Bench, make_bench, make_buffer, make_constant, make_entry, on_device

ENTRY = make_entry("scale", make_buffer("out", 0), make_buffer("x", 1, writable=False), make_constant("k", 2))
WHOLE = on_device(torch.zeros(256))
pytestmark = pytest.mark.skipif(load_module() is None, reason="there is no C compiler, or no Python.h")


def make_tensors(count: int = 2) -> list[torch.Tensor]:
    return [on_device(torch.zeros(128)) for _ in range(count)]


OUT, X = make_tensors()
CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((OUT, X, 1.5), {}),
    ((OUT, X, 7), {"threads": 100}),
    ((OUT, X, -0.0), {"threads": 100, "group_size": 32}),
    ((OUT, X, 2.5), {"threads": [4, 5], "group_size": [2, 2]}),
    ((OUT, X, 2.5), {"threads": (4, 5), "group_size": (2, 2)}),
    ((OUT, OUT, 2.5), {}),
    ((OUT, WHOLE[8:136], 2.5), {}),
    ((OUT, WHOLE[1:129], 2.5), {}),
    ((OUT, X, float("nan")), {}),
    ((OUT, X, 1e300), {}),
    ((OUT, X, True), {}),
    ((OUT, X, 3), {"arg_casts": {2: "int32"}}),
]


def launch_twice(in_c: bool, args: tuple[Any, ...], options: dict[str, Any]) -> Bench:
    bench = make_bench(ENTRY, in_c=in_c)
    for _ in range(2):
        bench.library.scale(*args, **options)
    return bench


@pytest.mark.parametrize("args, options", CALLS)
def test_launches_are_those_of_ctypes(args: tuple[Any, ...], options: dict[str, Any]) -> None:
    by_ctypes, in_c = launch_twice(False, args, options), launch_twice(True, args, options)
    assert in_c.recorder.launches == by_ctypes.recorder.launches
    assert len(in_c.recorder.launches) == 2


def test_calls_alike_go_through_it_and_the_others_do_not() -> None:
    counts = [launch_twice(True, args, options).recorder.in_c for args, options in CALLS]
    assert counts == [1, 1, 1, 1, 1, 0, 0, 1, 1, 0, 0, 0]


def test_it_takes_the_addresses_of_each_call() -> None:
    bench = make_bench(ENTRY, in_c=True)
    tensors = [make_tensors() for _ in range(3)]
    for out, x in tensors:
        bench.library.scale(out, x, 1.5)
    wanted = [(out.data_ptr(), x.data_ptr()) for out, x in tensors]
    assert [struct.unpack_from("<2Q", launch[-1], 40) for launch in bench.recorder.launches] == wanted
    assert bench.recorder.in_c == 2


def test_another_stream_or_device_is_that_of_the_call() -> None:
    bench = make_bench(ENTRY, in_c=True)
    for stream in (1, 2, 1 << 63):
        bench.side.stream = stream
        bench.library.scale(OUT, X, 1.5)
    bench.side.device = 1
    bench.library.scale(OUT, X, 1.5)
    assert [launch[3] for launch in bench.recorder.launches] == [1, 2, 1 << 63, 1 << 63]
    assert bench.recorder.in_c == 2


def test_a_fault_is_an_error_and_is_launched_once() -> None:
    bench = make_bench(ENTRY, in_c=True)
    bench.library.scale(OUT, X, 1.5)
    bench.recorder.statuses["cuLaunchKernel"] = [700]
    with pytest.raises(OverlayError, match="a kernel faulted") as error:
        bench.library.scale(OUT, X, 1.5)
    assert (error.value.code, len(bench.recorder.launches)) == ("PTR390", 2)


def test_a_thread_without_a_context_gets_one() -> None:
    bench = make_bench(ENTRY, in_c=True)
    bench.library.scale(OUT, X, 1.5)
    bench.recorder.statuses["cuLaunchKernel"] = [201, 201]
    bench.library.scale(OUT, X, 1.5)
    names = [call[0] for call in bench.recorder.calls[-4:]]
    assert names == ["cuLaunchKernel", "cuLaunchKernel", "cuCtxSetCurrent", "cuLaunchKernel"]


@pytest.mark.parametrize("in_c", [False, True])
def test_repetitions_are_the_same(in_c: bool) -> None:
    bench = make_bench(ENTRY, in_c=in_c)
    repeat = bench.library.scale.repeat((OUT, X, 1.5), (100, 1, 1), (32, 1, 1), {})
    assert repeat is not None
    repeat.run([OUT.data_ptr(), X.data_ptr() + 4], [2.5])
    (launch,) = bench.recorder.launches
    assert launch[0] == "scale_flat"
    assert struct.unpack_from("<QQf", launch[-1], 40) == (OUT.data_ptr(), X.data_ptr() + 4, 2.5)
    assert bench.recorder.in_c == in_c


def test_without_a_compiler_there_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("PORTER_CACHE", str(tmp_path))
    monkeypatch.setattr(native, "_find_compiler", lambda: None)
    assert load_module.__wrapped__() is None


@pytest.mark.parametrize("given", [
    (1, 2, (1, 1, 1), 1, 0, b"x" * 32, (40,), (0,), None), (1, 2, (1, 1, 1), 1, 0, b"x" * 32, (0,), (4,), None),
])  # fmt: skip
def test_offsets_lie_in_the_block(given: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match="an offset lies outside of the block"):
        load_module().Launch(*given)
