"""What operators return on the device is laid out as the meta functions say, by which torch.compile lays out memory."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional as F
from torch.testing._internal.common_methods_invocations import op_db

from shared.meta_functions import EXCUSED, compare, compare_samples

# A sample of those that `python tools/meta_functions.py` compares: operators of images, and those with several results.
SAMPLED = {
    "nn.functional.max_unpool2d", "nn.functional.max_pool2d",
    "nn.functional.embedding_bag", "nn.functional.interpolate", "linalg.solve", "sort", "svd", "var_mean",
}  # fmt: skip


@pytest.mark.parametrize("op", [op for op in op_db if op.name in SAMPLED], ids=lambda op: op.formatted_name)
def test_results_are_laid_out_as_promised(op: object) -> None:
    results = list(compare_samples(op, 4))
    assert results, "no sample was compared"
    differences = [result for result in results if result is not None and result.name not in EXCUSED]
    assert differences == []


def test_gradients_of_a_convolution_are_laid_out_as_promised() -> None:
    x, weight = torch.randn(2, 3, 6, 5, device="mps"), torch.randn(4, 3, 3, 3, device="mps")
    gradient = torch.randn(2, 4, 4, 3, device="mps")
    rest = ([4], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [True, True, True])
    arguments = (gradient, x, weight, *rest)
    assert compare("convolution_backward", torch.ops.aten.convolution_backward, *arguments) is None


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("name", ["_embedding_bag", "_embedding_bag_forward_only"])
def test_a_bag_of_embeddings_says_which_bag_each_index_is_in(name: str, mode: int) -> None:
    """The CPU leaves that out where it needs it not; with empty bags, and the last offset at the end."""
    indices = torch.tensor([3, 1, 4, 0, 2], device="mps")
    offsets = torch.tensor([0, 2, 2, 5], device="mps")
    function = getattr(torch.ops.aten, name)
    for last in (False, True):
        arguments = (torch.randn(5, 3, device="mps"), indices, offsets, False, mode, False, None, last)
        assert compare(name, function, *arguments) is None
        assert function(*arguments)[1].tolist() == [0, 0, 2, 2, 2]


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_the_gradient_of_a_bag_is_the_cpus(mode: str, last: bool) -> None:
    gradients = []
    for device in ("cpu", "mps"):
        weight = torch.arange(15.0, device=device).reshape(5, 3).requires_grad_()
        indices, offsets = torch.tensor([3, 1, 4, 0], device=device), torch.tensor([0, 2, 2, 4], device=device)
        (F.embedding_bag(indices, weight, offsets, mode=mode, include_last_offset=last) ** 2).sum().backward()
        assert weight.grad is not None
        gradients.append(weight.grad.cpu())
    assert torch.equal(*gradients)


@pytest.mark.parametrize("function", [
    lambda: torch.empty(8, device="mps"),
    lambda: torch.empty_strided((2, 4), (1, 2), device="mps"),
    lambda: torch.ones(2, device="mps").resize_(2, 5)[:, 2:],
])  # fmt: skip
def test_new_memory_is_filled_where_runs_have_to_be_alike(function: Callable[[], torch.Tensor]) -> None:
    torch.use_deterministic_algorithms(True)
    try:
        assert function().isnan().all()
    finally:
        torch.use_deterministic_algorithms(False)
