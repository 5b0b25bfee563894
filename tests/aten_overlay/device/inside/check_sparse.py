"""Sparse COO tensors: arranged on the device, computed through copies that are written back."""

from __future__ import annotations

import pytest
import torch

import aten_overlay

device = aten_overlay.start()
DENSE = [[0.0, 0.0, 3.0], [4.0, 0.0, 5.0]]


@pytest.fixture
def sparse() -> torch.Tensor:
    return torch.tensor(DENSE).to_sparse().to("mps")


def test_both_ways(sparse: torch.Tensor) -> None:
    assert sparse.device.type == "mps" and sparse.is_sparse and sparse.to_dense().tolist() == DENSE
    assert torch.equal(sparse.cpu().to_dense(), torch.tensor(DENSE))
    made = torch.sparse_coo_tensor(sparse.indices(), sparse.values(), (2, 3), check_invariants=True)
    assert made.to_dense().tolist() == DENSE


def test_what_is_written_is_written_back(sparse: torch.Tensor) -> None:
    device.reset_fallbacks()
    sparse.mul_(2.0)
    assert sparse.to_dense().tolist() == [[0, 0, 6], [8, 0, 10]]
    sparse.add_(torch.eye(2, 3).to_sparse().to("mps"))
    assert sparse.to_dense().tolist() == [[1, 0, 6], [8, 1, 10]]
    dense = torch.ones(2, 3, device="mps")
    dense.add_(sparse)
    assert dense.tolist() == [[2, 1, 7], [9, 2, 11]]
    assert any(name.startswith("aten::mul_") for name in device.fallbacks())


def test_repeated_indices_are_added() -> None:
    rows = torch.nn.Embedding(4, 2, sparse=True).to("mps")
    rows(torch.tensor([1, 3, 1], device="mps")).sum().backward()
    gradient = rows.weight.grad
    assert gradient is not None and gradient.is_sparse and not gradient.is_coalesced()
    assert gradient.coalesce().to_dense().tolist() == [[0, 0], [2, 2], [0, 0], [1, 1]]


def test_what_the_cpu_does_not_have_is_refused(sparse: torch.Tensor) -> None:
    with pytest.raises(NotImplementedError, match="with arguments from the 'SparseMPS' backend"):
        torch.linalg.qr(sparse)
