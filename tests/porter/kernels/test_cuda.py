"""Kernels on CUDA tensors, as far as that is known without a GPU."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from aten_overlay.cuda.compile import PLAIN
from aten_overlay.errors import OverlayError, Place
from aten_overlay.metal.cuda.target import CudaOptions
from porter.core.errors import PorterError
from porter.kernels import MetalKernel, cuda, functions
from porter.kernels.call import Call, Output, device_of, is_cuda
from porter.kernels.checking import compile_script
from porter.kernels.launch import Mode, Prepared, find_last_source, prepare, running, write_signature
from porter.kernels.repeated import Repetition, describe
from porter.kernels.script import Case, Kind, Script, Stage
from tests.aten_overlay.cuda.recording import Bench, make_bench, make_buffer, make_entry, on_device

TWICE = MetalKernel("twice", ["x"], ["out"], "uint i = thread_position_in_grid.x; out[i] = 2 * x[i];")


def twice(x: torch.Tensor) -> torch.Tensor:
    outputs = TWICE(
        inputs={"x": x}, grid=(x.numel(), 1, 1), output_shapes={"out": x.shape}, output_dtypes={"out": x.dtype}
    )
    return outputs["out"]


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    sources: list[str] = []
    scheduled: list[str] = []

    def compile_kernels(source: str, cuda: CudaOptions = PLAIN) -> None:
        (scheduled if cuda.scheduled else sources).append(source)

    monkeypatch.setattr(cuda, "compile_kernels", compile_kernels)
    yield sources
    assert scheduled == sources  # for --shuffle


def test_a_meta_tensor_of_a_cuda_device_decides_where_a_call_runs() -> None:
    assert device_of([1.0, torch.zeros(3)]) == "cpu"
    assert device_of([1.0]) == "mps"
    assert is_cuda("cuda:1")
    assert not is_cuda("mps")


def test_a_script_is_compiled_without_a_device(compiled: list[str]) -> None:
    script = Script(
        summary="twice", kind=Kind.ELEMENTWISE, stages=(Stage("twice", twice, lambda x: 2 * x, ("x",)),),
        inputs=lambda case: {"x": case.normal(*case.size)}, sizes=((3,), (4, 5)), benchmark=((9,),),
        dtypes=(torch.float32, torch.float16),
    )  # fmt: skip
    assert compile_script(script) == len(compiled)
    # The small size passes its input in another address space.
    assert len(compiled) == 3
    assert all("out[i] = 2 * x[i];" in source for source in compiled)


def test_a_kernel_of_numbers_alone_is_compiled_without_a_device(compiled: list[str]) -> None:
    filled = MetalKernel("filled", ["value"], ["out"], "out[thread_position_in_grid.x] = value;")
    with cuda.compiling_ahead() as sources:
        for value in (1.0, 2.0):  # the second call is like the first
            found = filled(
                inputs={"value": value},
                grid=(4, 1, 1),
                output_shapes={"out": (4,)},
                output_dtypes={"out": torch.float32},
            )
            assert found["out"].tolist() == [0.0] * 4
    assert sources == compiled and len(sources) == 1


def test_a_call_in_an_order_is_launched_by_what_was_compiled_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []

    class Library:
        def __getattr__(self, name: str) -> Any:
            raise PorterError("PTR219", "stop here")

    def compile_scheduled(source: str, seed: int) -> Any:
        asked.append((source, seed))
        return Library()

    monkeypatch.setattr(cuda, "compile_scheduled", compile_scheduled)
    cuda.compiled_in_order.cache_clear()
    monkeypatch.setattr("porter.kernels.launch.device_of", lambda _inputs: "cuda:0")
    monkeypatch.setattr("porter.kernels.launch.check_call", lambda *_: None)
    call = Call((torch.zeros(4),), (Output((4,), torch.float32),), (4, 1, 1), (4, 1, 1))
    with running(Mode(shuffle=7)), pytest.raises(PorterError, match="stop here"):
        prepare(TWICE.kernel, call)
    assert [seed for _, seed in asked] == [7]
    assert "out[i] = 2 * x[i];" in asked[0][0]


def test_what_the_compiler_refuses_names_the_line_of_the_body(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_source: str) -> None:
        what = "the Metal source does not compile: use of undeclared identifier 'y'"
        raise OverlayError("PTR101", what, Place("twice body", 3))

    monkeypatch.setattr(cuda, "compile_kernels", refuse)
    with cuda.compiling_ahead(), pytest.raises(PorterError, match="undeclared identifier 'y'") as error:
        twice(torch.zeros(100))
    assert (error.value.code, str(error.value.place)) == ("PTR219", "twice body:3")


def test_compile_shader_sends_cuda_tensors_to_the_gpu_and_others_to_mps(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, Any]] = []

    class Library:
        def __init__(self, where: str) -> None:
            self.where = where

        def add(self, *args: Any, **how: Any) -> None:
            calls.append((self.where, how))

    monkeypatch.setattr(cuda, "compiled", lambda _source: Library("cuda"))
    monkeypatch.setattr(functions, "compiled", lambda _source, _mode: Library("mps"))
    made = functions.compile_shader("kernel void add() {}")
    made.add(on_device(torch.zeros(3)), 1.0, threads=3)
    made.add(torch.zeros(3))
    assert calls == [("cuda", {"threads": 3}), ("mps", {})]


def test_a_refusal_of_the_launcher_is_porters(monkeypatch: pytest.MonkeyPatch) -> None:
    class Library:
        def add(self, *_args: Any) -> None:
            raise OverlayError("PTR388", "argument 1 of kernel `add` is on cpu", hint="Move it.")

    monkeypatch.setattr(cuda, "compiled", lambda _source: Library())
    with pytest.raises(PorterError) as error:
        functions.compile_shader("").add(on_device(torch.zeros(3)))
    assert (error.value.code, error.value.hint) == ("PTR388", "Move it.")


def test_cases_of_a_device_are_made_there() -> None:
    assert Case((3,), device="cpu").normal(3).device.type == "cpu"


def make_repetition(*statuses: int) -> tuple[Repetition, Bench]:
    """TWICE of 64 numbers, as it is kept once it has run on a CUDA device."""
    entry = make_entry("twice", make_buffer("x", 0, writable=False), make_buffer("out", 1))
    bench = make_bench(entry, statuses={"cuLaunchKernel": list(statuses)})
    tensors = [on_device(torch.zeros(64)), on_device(torch.zeros(64))]
    launch = bench.library.twice.repeat(tensors, (64, 1, 1), (64, 1, 1), {})
    assert launch is not None
    kernel = TWICE.kernel
    generated = write_signature(
        kernel, Call((torch.zeros(64),), (Output((64,), torch.float32),), (64, 1, 1), (64, 1, 1))
    )
    prepared = Prepared(generated, bench.library.twice)
    output = Output((64,), torch.float32)
    return Repetition(kernel, prepared, (output,), None, (0, 1), (), launch, find_last_source(kernel), "cpu"), bench


def test_a_call_that_is_repeated_launches_on_its_inputs_and_new_outputs() -> None:
    repetition, bench = make_repetition()
    x = torch.zeros(64)
    (out,) = repetition.run([x])
    assert struct.unpack_from("<2Q", bench.recorder.launches[0][-1], 40) == (x.data_ptr(), out.data_ptr())
    assert (out.shape, TWICE.source) == ((64,), repetition.prepared.generated.source)


def test_a_fault_of_a_repeated_call_is_porters_error() -> None:
    with pytest.raises(PorterError, match="a kernel faulted") as error:
        make_repetition(700)[0].run([torch.zeros(64)])
    assert error.value.code == "PTR390"


def test_calls_are_alike_by_type_and_device_and_not_by_value() -> None:
    x, rest = torch.zeros(8), ((8, 1, 1), [1.0, -0.0])
    like = describe([x, 2.0], rest, by_value=False)
    assert like == describe([torch.ones(8), 3.0], rest, by_value=False)
    assert like != describe([x, 2.0], ((8, 1, 1), [1.0, 0.0]), by_value=False)
    assert like != describe([x, 2.0], ((8, 1, True), [1.0, -0.0]), by_value=False)
    assert like != describe([x, 2], rest, by_value=False)
    assert like != describe([x, 2.0], rest, by_value=True)
    assert like != describe([torch.empty(8, device="meta"), 2.0], rest, by_value=False)
