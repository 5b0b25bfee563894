"""Which calls of an OpInfo's samples are recorded."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import torch
from torch.testing._internal.common_dtype import _dispatch_dtypes
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.core.dtypes import BY_TORCH
from porter.recording import calls, probe_calls


def _samples(op: OpInfo, device: str, dtype: torch.dtype, requires_grad: bool, **_: object) -> Iterator[SampleInput]:
    for other in (torch.float64, dtype):
        yield SampleInput(torch.ones(2, dtype=dtype), args=(torch.ones(2, dtype=other),))


def test_samples_of_types_the_device_lacks_are_skipped() -> None:
    op = OpInfo("mul", dtypes=_dispatch_dtypes((torch.float32,)), supports_autograd=False, sample_inputs_func=_samples)
    [made] = calls.capture_calls(op, "mul", BY_TORCH["float32"])
    assert [t.dtype for t in made.tensors().values()] == [torch.float32, torch.float32]


def _rolls(op: OpInfo, device: str, dtype: torch.dtype, requires_grad: bool, **_: object) -> Iterator[SampleInput]:
    for shape in ((2, 3), (4,)):
        yield SampleInput(torch.ones(shape, dtype=dtype), args=(1,))


def test_types_after_the_first_begin_with_a_call_of_each_sample() -> None:
    types = _dispatch_dtypes((torch.float32, torch.float16))
    op = OpInfo("roll", dtypes=types, supports_autograd=False, sample_inputs_func=_rolls)
    made = (each.call.arguments["self"] for each in probe_calls.capture_probe_calls(op, "roll") if not each.changed)
    first, second, third = islice(made, 3)
    assert (first.dtype, second.dtype, third.dtype) == (torch.float16, torch.float16, torch.float32)
    assert first.ndim > 1 == second.ndim


def test_what_a_kernel_calls_is_seen_of_an_operator_that_only_a_device_has() -> None:
    def convolve(input: torch.Tensor, weight: torch.Tensor, *_: object) -> torch.Tensor:
        return input.new_zeros(input.shape[0], weight.shape[0], *input.shape[2:])

    op = OpInfo("convolves", op=torch.conv2d, dtypes=_dispatch_dtypes((torch.float32,)), sample_inputs_func=_rolls)
    sample = SampleInput(torch.ones(1, 2, 3, 4, device="mps"), args=(torch.ones(5, 2, 1, 1, device="mps"),))
    with torch.library._scoped_library("aten", "IMPL") as library:
        library.impl("_mps_convolution", convolve, "MPS")
        [call] = calls.capture_calls_in_place(op, "_mps_convolution", sample, False)
    assert call.name == "_mps_convolution" and call.arguments["stride"] == [1, 1]
    assert calls.capture_calls_in_place(op, "zeros", sample, False) == []
