"""The cuda backend without a GPU: what it refuses, and what its results are compared with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from aten_overlay.cuda import driver
from aten_overlay.errors import OverlayError
from porter.core.errors import PorterError
from porter.report.verdict import table
from porter.verdict.backends import choice, cuda_shaders
from porter.verdict.backends.beside import FAR, HOST, SCHEDULES, TORCH, Comparisons
from porter.verdict.backends.cuda_shaders import CudaShaders, can_spread, spread_out
from porter.verdict.backends.kernels import NVIDIA_GPU
from porter.verdict.backends.shaders import Shaders
from porter.verdict.errors import NoVerdict
from porter.verdict.result import Verdict

Kernel = Callable[..., None]


def test_it_is_refused_without_a_gpu_and_never_chosen_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> driver.Driver:
        raise OverlayError("PTR385", "there is no CUDA driver")

    monkeypatch.setattr(driver, "find_driver", refuse)
    with pytest.raises(NoVerdict, match=r"the cuda backend has no GPU: PTR385 there is no CUDA driver") as error:
        choice.choose_backend("cuda")
    assert error.value.code == "PTR171"
    assert choice.choose_backend("auto") is not NVIDIA_GPU


def test_a_verdict_has_a_process_of_its_own() -> None:
    assert NVIDIA_GPU.ON_HARDWARE  # of which each request gets one
    assert not NVIDIA_GPU.FLUSHES


@pytest.mark.parametrize("dtype, near, far", [
    (torch.float32, 1e-6, 1e-4), (torch.float16, 1e-3, 1e-2), (torch.bfloat16, 1e-2, 1e-1),
])  # fmt: skip
def test_results_are_equal_or_close_or_different(dtype: torch.dtype, near: float, far: float) -> None:
    found, compared = torch.ones(4, dtype=dtype), Comparisons()
    assert compared.add(TORCH, "exp", found, found.clone()) == ""
    assert compared.add(TORCH, "exp", found, found * (1 + near)) == ""
    assert compared.add(TORCH, "exp", found, found * (1 + far)).startswith("gives 1.0 at element 0, 1.")
    (row,) = compared.list()
    assert (row.dtype, row.calls, row.equal, row.close, row.different) == (str(dtype)[6:], 3, 1, 1, 1)
    assert row.max_ulp and row.first.startswith("exp gives 1.0 at element 0, 1.")


def test_zeros_have_signs_and_nans_are_equal() -> None:
    compared = Comparisons()
    compared.add(HOST, "neg", torch.tensor([0.0, torch.nan]), torch.tensor([0.0, torch.nan]))
    compared.add(HOST, "neg", torch.tensor([0.0]), torch.tensor([-0.0]))
    assert compared.add(HOST, "neg", torch.tensor([torch.nan]), torch.tensor([1.0]))
    assert compared.add(HOST, "add", torch.tensor([3]), torch.tensor([4])) == "gives 3 at element 0, 4"
    assert [(row.equal, row.close, row.different) for row in compared.list()] == [(1, 1, 1), (0, 0, 1)]


def test_another_launch_has_to_give_the_same() -> None:
    compared, one = Comparisons(), torch.ones(3)
    compared.require_same(SCHEDULES, "sum", one, one.clone())
    with pytest.raises(AssertionError, match="sum: other groups and orders change the result's last bits"):
        compared.require_same(SCHEDULES, "sum", one, one + 1e-7)
    compared.require_agreement(FAR, "sum", one, one + 1e-7)
    with pytest.raises(AssertionError, match=r"sum: elements past 2\^32 bytes change the result: it gives 1\.0 at"):
        compared.require_agreement(FAR, "sum", one, one + 1)


def on_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_shaders, "DEVICE", "cpu")
    monkeypatch.setattr(cuda_shaders, "DEVICE", "cpu")


class OneKernel:
    """A library with one kernel, which is a function."""

    max_threads_per_threadgroup = 64

    def __init__(self, run: Kernel) -> None:
        self._run = run

    def __dir__(self) -> list[str]:
        return ["neg_dense_float_float"]

    def __getattr__(self, name: str) -> Any:
        return self

    def __call__(self, *args: Any, **how: Any) -> None:
        self._run(*args, **how)


def negate(out: torch.Tensor, x: torch.Tensor, *_rest: Any, **_how: Any) -> None:
    out.copy_(-x)


def test_a_call_runs_in_other_groups_and_on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    on_cpu(monkeypatch)
    groups: list[Sequence[int]] = []

    def run(out: torch.Tensor, x: torch.Tensor, *, group_size: Sequence[int], **how: Any) -> None:
        groups.append(group_size)
        negate(out, x)

    compared = Comparisons()
    library: Any = OneKernel(run)
    shaders: Any = CudaShaders(library, library, OneKernel(negate), compared)
    out = torch.zeros(1000)
    shaders.neg_dense_float_float(out, torch.ones(1000), threads=[1000], arg_casts={})
    assert torch.equal(out, -torch.ones(1000))
    assert len(groups) == 3 and groups[-1] == [64] and all(1 <= group[0] <= 64 for group in groups)
    assert [(row.other, row.equal) for row in compared.list()] == [(SCHEDULES, 2), (HOST, 1)]


def test_a_kernel_that_depends_on_its_group_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    on_cpu(monkeypatch)

    def run(out: torch.Tensor, x: torch.Tensor, *, group_size: Sequence[int], **how: Any) -> None:
        out.fill_(group_size[0])

    compared = Comparisons()
    library: Any = OneKernel(run)
    shaders: Any = CudaShaders(library, library, None, compared)
    with pytest.raises(AssertionError, match="other groups and orders change the result"):
        shaders.neg_dense_float_float(torch.zeros(1000), torch.ones(1000), threads=[1000], arg_casts={})
    left_out = next(row for row in compared.list() if row.other == HOST)
    assert (left_out.calls, left_out.left_out) == (0, 1)
    assert left_out.reason == "there is no compiler for the host's kernels here"


def test_what_torchs_cuda_refuses_is_counted_and_a_full_gpu_is_an_error() -> None:
    def raising(error: Exception) -> Callable[..., Any]:
        def function(*_args: Any) -> None:
            raise error

        return function

    for error in (NotImplementedError("no such kernel"), RuntimeError('"exp2_cuda" not implemented for \'ComplexHalf\''),
                  TypeError("takes no alpha")):  # fmt: skip
        with pytest.raises(cuda_shaders.NoResult, match=str(error)):
            cuda_shaders.compute(raising(error), (), {})
    with pytest.raises(PorterError, match="torch has no memory left on the GPU: CUDA out of memory") as full:
        cuda_shaders.compute(raising(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9 GiB")), (), {})
    assert full.value.code == "PTR378"
    for failure in ("CUDA error: an illegal memory access was encountered", 'x INTERNAL ASSERT FAILED at "Copy.cpp":3',
                    "CUDA driver: CUBLAS_STATUS_EXECUTION_FAILED when calling cublasSgemm"):  # fmt: skip
        with pytest.raises(RuntimeError, match=failure.split(":")[0]):
            cuda_shaders.compute(raising(RuntimeError(failure)), (), {})


def test_torchs_cuda_stands_beside_a_row_and_the_cpu_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    on_cpu(monkeypatch)
    compared = Comparisons()

    class Library:
        def __dir__(self) -> list[str]:
            return ["neg_dense_float_float"]

        def neg_dense_float_float(self, *args: Any, **_how: Any) -> None:
            negate(*args)

    monkeypatch.setattr(cuda_shaders, "_launch_far", lambda *_args: None)
    shaders = Shaders(Library(), {})
    with cuda_shaders.redirect(["neg"], "neg", shaders, compared):
        torch.neg(torch.ones(8))
        monkeypatch.setattr(cuda_shaders, "compute", lambda *_args: torch.ones(8))
        torch.neg(torch.ones(8))
    (row,) = compared.list()
    assert (row.other, row.equal, row.different) == (TORCH, 1, 1)
    assert row.first == "neg gives -1.0 at element 0, 1.0 on torch's CUDA"


def test_elements_are_spread_over_more_than_four_gibibytes() -> None:
    x = torch.zeros(5, 3, dtype=torch.float16)
    far = spread_out(x, "meta")
    assert far.shape == x.shape and far.stride(1) == 1
    assert far.stride(0) * 4 * x.element_size() > 1 << 32
    assert (
        not can_spread(torch.zeros(1, 7))
        and not can_spread(torch.zeros(65, 7))
        and not can_spread(torch.zeros(()))
        and can_spread(x)
    )


def test_the_report_shows_what_stands_beside() -> None:
    compared = Comparisons()
    compared.add(HOST, "exp", torch.ones(2), torch.ones(2))
    compared.add(TORCH, "exp", torch.ones(2), torch.zeros(2))
    compared.leave_out(TORCH, torch.float16, "torch has none")
    verdict = Verdict("exp", "cuda", "default", 1, 0, 0, 2, None, 0.5)
    assert table(replace(verdict, beside=compared.list())).splitlines()[:-1] == [
        "beside          dtype  calls  equal  close  different  left out  max ULP",
        "the host      float32      1      1      0          0         0         ",
        "torch's CUDA  float16      0      0      0          0         1         ",
        "torch's CUDA  float32      1      0      0          1         0         ",
        "differs (float32): exp gives 1.0 at element 0, 0.0 on torch's CUDA",
        "left out beside torch's CUDA (float16): torch has none",
    ]
    assert "beside" not in table(verdict)
