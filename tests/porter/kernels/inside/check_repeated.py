"""A call like one that ran before takes a shorter way: it has to give, and refuse, what the long way does."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch

from aten_overlay.device.repeated import RepeatedLaunch
from aten_overlay.metal.launch import limit_threads
from porter.core.errors import PorterError
from porter.kernels import MetalKernel
from porter.kernels.launch import Mode, observing, running

SCALE = """
uint i = thread_position_in_grid.x;
out[i] = x[i * x_strides[0]] * T(factor) + T(x_shape[0]) + (FLAG ? 100 : 0) + T(x_ndim);
"""


def make(**more: Any) -> MetalKernel:
    return MetalKernel("scale", ["x", "factor"], ["out"], SCALE, ensure_row_contiguous=False, **more)


def call(kernel: MetalKernel, x: torch.Tensor, factor: float, flag: int = 0, **more: Any) -> torch.Tensor:
    given: dict[str, Any] = {
        "inputs": {"x": x, "factor": factor}, "template": {"T": x.dtype, "FLAG": flag},
        "grid": (x.numel(), 1, 1), "threadgroup": (32, 1, 1),
        "output_shapes": {"out": x.shape}, "output_dtypes": {"out": x.dtype}, **more,
    }  # fmt: skip
    outputs: dict[str, torch.Tensor] = kernel(**given)
    return outputs["out"]


def expected(x: torch.Tensor, factor: float, flag: int = 0) -> torch.Tensor:
    return x.cpu() * factor + x.shape[0] + (100 if flag else 0) + 1


def numbers(count: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.arange(count).to(dtype).to("mps")


def repeats(kernel: MetalKernel) -> int:
    return len(kernel._repetitions)


def test_other_tensors_and_numbers_repeat_a_call() -> None:
    kernel = make()
    for start in range(4):
        x, factor = numbers(33) + start, 0.5 + start
        assert torch.equal(call(kernel, x, factor).cpu(), expected(x, factor))
    assert repeats(kernel) == 1


def test_each_kind_of_call_is_kept_by_itself() -> None:
    kernel = make()
    wide = numbers(66)
    for _ in range(3):
        for x in (numbers(33), numbers(7), numbers(33, torch.float16), wide[::2], wide[33:]):
            for factor in (2, 2.0):
                for flag in (1, True):
                    assert torch.equal(call(kernel, x, factor, flag).cpu(), expected(x, factor, flag))
    assert repeats(kernel) == 4 * 2 * 2


def test_outputs_do_not_share_memory() -> None:
    kernel = make()
    first, second, third = (call(kernel, numbers(8), factor) for factor in (1.0, 2.0, 3.0))
    assert [t[1].item() for t in (first, second, third)] == [10.0, 11.0, 12.0]


def test_start_values_are_filled_in_again() -> None:
    kernel = MetalKernel("add_one", ["x"], ["out"], "out[thread_position_in_grid.x] += x[0];")
    given: dict[str, Any] = {
        "inputs": {"x": numbers(3) + 1}, "grid": (2, 1, 1), "output_shapes": [(4,)], "output_dtypes": [torch.float32],
    }  # fmt: skip
    for start in (5, 5, 7.0, 7, -0.0, 0.0):
        assert kernel(**given, init_value=start)[0].tolist() == [start + 1, start + 1, start, start]


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"grid": (8.0, 1, 1)}, "PTR211"),
        ({"grid": (True, 1, 1)}, "PTR211"),
        ({"threadgroup": (32.0, 1, 1)}, "PTR211"),
        ({"template": {"T": torch.float32, "FLAG": 0.0}}, "PTR210"),
        ({"output_dtypes": {"out": "float32"}}, "PTR209"),
        ({"inputs": {"x": torch.zeros(8, device="mps"), "factor": 2**40}}, "PTR215"),
        ({"inputs": {"x": torch.zeros(8), "factor": 2.0}}, "PTR221"),
    ],
)
def test_what_is_refused_first_is_refused_again(more: dict[str, Any], code: str) -> None:
    kernel = make()
    for _ in range(2):
        call(kernel, numbers(8), 2.0)
    with pytest.raises(PorterError) as error:
        call(kernel, numbers(8), 2.0, **more)
    assert error.value.code == code


def test_source_is_that_of_the_last_call() -> None:
    kernel = make()
    for _ in range(2):
        for dtype, name in ((torch.float32, "float"), (torch.float16, "half")):
            call(kernel, numbers(8, dtype), 2.0)
            assert f"<{name}, 0>" in kernel.source


def test_what_watches_calls_sees_each(capsys: pytest.CaptureFixture[str]) -> None:
    kernel, seen = make(), []
    call(kernel, numbers(8), 2.0)
    with observing(lambda kernel, call, outputs: seen.append(kernel.name)):
        call(kernel, numbers(8), 2.0)
    assert seen == ["scale"]
    with running(Mode(checked=True)), pytest.raises(RuntimeError, match="PTR107"):
        call(kernel, numbers(8), 2.0, grid=(9, 1, 1))
    call(kernel, numbers(8), 2.0, verbose=True)
    assert "[[kernel]] void" in capsys.readouterr().out


def test_a_gradient_is_made_after_a_repeated_call() -> None:
    kernel = make(vjp=lambda inputs, gradient, output: [gradient * inputs[1], None])
    for _ in range(2):
        call(kernel, numbers(8), 3.0)
    x = numbers(8).requires_grad_()
    call(kernel, x, 3.0).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [3.0] * 8


def test_threads_repeat_a_call_side_by_side() -> None:
    kernel = make()
    xs = [numbers(100_000) + i for i in range(8)]
    call(kernel, xs[0], 1.0)
    with ThreadPoolExecutor(4) as pool:
        for x, out in zip(xs, pool.map(lambda x: call(kernel, x, float(x[0]) + 1), xs), strict=True):
            assert torch.equal(out.cpu(), expected(x, float(x[0]) + 1))
    assert repeats(kernel) == 1


def test_a_length_of_another_type_is_refused_after_one_that_is_right() -> None:
    kernel = make()
    for _ in range(2):
        call(kernel, numbers(33), 2.0)
    for grid in ((33.0, 1, 1), (33, True, 1)):
        with pytest.raises(PorterError):
            call(kernel, numbers(33), 2.0, grid=grid)


def test_repeated_calls_keep_to_the_threads_allowed() -> None:
    kernel, x = make(), numbers(33)
    call(kernel, x, 2.0)
    (repetition,) = kernel._repetitions.values()
    for limit in (3, 0):
        with limit_threads(limit):
            call(kernel, x, 2.0)
        assert isinstance(repetition.launch, RepeatedLaunch)
        assert [frame.fields.max_threads for frame in repetition.launch.frames] == [limit]
