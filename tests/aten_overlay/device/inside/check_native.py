"""What ATen/native/mps declares, as an extension that no fork stands behind uses it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from tests.aten_overlay.device.programs.loading import load_program


@pytest.fixture(scope="module", autouse=True)
def extension(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    load_program("native", tmp_path_factory.mktemp("native"))
    yield


def test_kernels_from_source_are_launched() -> None:
    x = torch.arange(6.0, device="mps").view(2, 3)
    assert torch.ops.native_test.scale(x, 2).tolist() == [6, 10, 14]


def test_a_source_takes_parameters() -> None:
    for value in ("4.5", "7"):
        filled = torch.ops.native_test.fill_with_parameter(torch.zeros(3, device="mps"), value)
        assert filled.tolist() == [float(value)] * 3


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int32, torch.int64])
def test_a_graph_runs(dtype: torch.dtype) -> None:
    x = torch.arange(6, device="mps").to(dtype)
    seen = torch.ops.native_test.add_by_graph(x.view(2, 3).T, 2)
    assert seen.tolist() == (x.cpu().view(2, 3).T + 2).tolist()


def test_tensors_are_described() -> None:
    x = torch.zeros(2, 3, 4, 10, dtype=torch.uint8, device="mps")[..., ::2]
    expected = ["uchar", "2,3,4,5", "2 3 4 5 ", "2 4 5 3 ", "0 1 2 3 ", "239", "sparse"]
    assert torch.ops.native_test.describe(x) == expected


def test_what_needs_a_fork_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="PTR149: MetalShaderLibrary::getBundledLibrary"):
        torch.ops.native_test.uses_bundled()
