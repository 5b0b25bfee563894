"""Which Fourier transform an operator is, is found from what its calls return."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch

from porter.core.dtypes import FLOAT, FLOAT2
from porter.metal.forms.convolution import Fourier
from porter.recording.calls import OpCall
from porter.recording.forms import find_form
from porter.recording.forms.algebra import find_fourier
from porter.recording.runs import RecordedRun

aten = torch.ops.aten
COMMON = ("self", "dim", "normalization")
FOUND = {
    "_fft_c2c": Fourier(*COMMON, forward="forward", dtypes=(FLOAT2,)),
    "_fft_r2c": Fourier(*COMMON, one_sided="onesided", dtypes=(FLOAT2,)),
    "_fft_c2r": Fourier(*COMMON, size="last_dim_size", dtypes=(FLOAT,)),
}


def list_runs(name: str) -> Iterator[RecordedRun]:
    """Calls of an operator with each normalization, along one and two dimensions."""
    overload = getattr(aten, name).default
    dtype = torch.float32 if name == "_fft_r2c" else torch.complex64
    for mode, dims, flag in product(range(3), ([1], [1, 0]), (True, False)):
        last: Any = (6 if flag else 7) if name == "_fft_c2r" else flag
        shape = (4, 4) if name == "_fft_c2r" else (5, 6)
        values = (torch.randn(shape, dtype=dtype), dims, mode, last)
        call = OpCall(overload, dict(zip((each.name for each in overload._schema.arguments), values, strict=True)))
        yield RecordedRun(call, call.tensors(), (), (call.run(),), False)


@pytest.mark.parametrize("name", FOUND)
def test_found(name: str) -> None:
    assert find_fourier(list(list_runs(name))) == FOUND[name]


@pytest.mark.parametrize("name", FOUND)
def test_results_of_another_scale_are_no_transform(name: str) -> None:
    runs = [replace(run, results=(run.results[0] * 1.001,)) for run in list_runs(name)]
    assert find_fourier(runs) is None


def test_calls_of_other_sizes_than_half_of_a_spectrum_do_not_tell() -> None:
    runs = list(list_runs("_fft_c2r"))
    call = runs[0].call.with_arguments({"last_dim_size": 20})  # which the CPU refuses
    wrong = RecordedRun(call, call.tensors(), (), (torch.zeros(4, 20),), False)
    assert find_fourier([wrong, *runs]) == FOUND["_fft_c2r"]


def test_a_type_that_a_torch_does_not_sort_is_no_order(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise TypeError("Sort does not support complex dtypes on CPU")

    monkeypatch.setattr(torch, "sort", refuse)
    assert find_form(list(list_runs("_fft_c2c"))) == FOUND["_fft_c2c"]


def test_what_is_printed() -> None:
    assert list(FOUND["_fft_r2c"].describe()) == [
        "result[k] = scale * sum over m of self[m] * exp(- 2 pi i k m / n)",
        "along the dimensions dim, with the scale of normalization",
        "real self; with onesided, n / 2 + 1 elements of the last dimension",
    ]
