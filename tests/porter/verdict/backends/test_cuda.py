"""The cuda backend without a GPU: what it refuses, and how results are compared with torch's CUDA kernels."""

from __future__ import annotations

import pytest
import torch

from aten_overlay.cuda import driver
from aten_overlay.errors import OverlayError
from porter.verdict.backends import choice, cuda
from porter.verdict.backends.cuda_shaders import require_agreement
from porter.verdict.errors import NoVerdict


def test_it_is_refused_without_a_gpu_and_never_chosen_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> driver.Driver:
        raise OverlayError("PTR385", "there is no CUDA driver")

    monkeypatch.setattr(driver, "find_driver", refuse)
    with pytest.raises(NoVerdict, match=r"the cuda backend has no GPU: PTR385 there is no CUDA driver") as error:
        choice.choose_backend("cuda")
    assert error.value.code == "PTR171"
    assert choice.choose_backend("auto") is not cuda


def test_a_verdict_has_a_process_of_its_own() -> None:
    assert cuda.ON_HARDWARE  # of which each request gets one
    assert not cuda.FLUSHES


@pytest.mark.parametrize("dtype, near, far", [
    (torch.float32, 1e-6, 1e-4), (torch.float16, 1e-3, 1e-2), (torch.bfloat16, 1e-2, 1e-1),
])  # fmt: skip
def test_results_may_differ_by_rounding_alone(dtype: torch.dtype, near: float, far: float) -> None:
    found = torch.ones(4, dtype=dtype)
    require_agreement("exp", found, found * (1 + near), found)
    with pytest.raises(AssertionError, match=r"exp: the kernel gives 1\.0, torch's CUDA kernel .*, at element 0"):
        require_agreement("exp", found, found * (1 + far), found * (1 + far))
    require_agreement("exp", found, found * (1 + far), found)  # torch's own devices differ


def test_integers_and_nans_have_to_be_equal() -> None:
    nan = torch.tensor([1.0, float("nan")])
    require_agreement("exp", nan, nan.clone(), nan)
    with pytest.raises(AssertionError, match="at element 1"):
        require_agreement("exp", nan, torch.ones(2), torch.ones(2))
    with pytest.raises(AssertionError):
        require_agreement("add", torch.tensor([3]), torch.tensor([4]), torch.tensor([4]))
