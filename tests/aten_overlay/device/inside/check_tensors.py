"""Making, copying, viewing and resizing tensors."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from typing import Any

import pytest
import torch

import aten_overlay

DTYPES = [
    torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8,
    torch.bool, torch.complex64, torch.complex32,
]  # fmt: skip


def sample(dtype: torch.dtype, *shape: int) -> Any:
    return torch.randint(0, 2 if dtype is torch.bool else 100, shape).to(dtype)


def same(a: torch.Tensor, b: torch.Tensor) -> Any:
    """Whether two CPU tensors hold the same numbers, of any type."""
    if a.dtype is torch.complex32:
        a, b = (torch.view_as_real(t.contiguous()) for t in (a, b))
    return a.dtype == b.dtype and torch.equal(a, b)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_round_trip_keeps_every_bit(dtype: torch.dtype) -> None:
    host = sample(dtype, 3, 5)
    assert same(host.to("mps").cpu(), host)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_strided_copies_in_both_directions(dtype: torch.dtype) -> None:
    host = sample(dtype, 4, 6)
    device = torch.zeros(6, 4, dtype=dtype, device="mps")
    device.t()[:, ::2].copy_(host[:, ::2])
    assert same(device.cpu().t()[:, ::2], host[:, ::2])
    back = torch.zeros(6, 4, dtype=dtype)
    back.t()[:, 1::2].copy_(host.to("mps")[:, 1::2])
    assert same(back.t()[:, 1::2], host[:, 1::2])


@pytest.mark.parametrize("source", DTYPES, ids=str)
def test_copy_converts_as_the_cpu_does(source: torch.dtype) -> None:
    host = sample(source, 7)
    for target in (torch.float32, torch.float16, torch.int32, torch.bool, torch.complex64):
        got = torch.empty(7, dtype=target, device="mps").copy_(host.to("mps")).cpu()
        assert torch.equal(got, torch.empty(7, dtype=target).copy_(host))


@pytest.mark.parametrize("device", ["cpu", "mps"])
def test_copies_within_one_memory_are_none_or_refused(device: str) -> None:
    tensor = torch.ones(6, dtype=torch.int32, device=device)
    expanded = tensor[:1].expand(3)
    assert expanded.copy_(expanded).nan_to_num_().tolist() == [1, 1, 1]
    for target, source in ((tensor[1:], tensor[:-1]), (expanded, tensor[3:])):
        with pytest.raises(RuntimeError, match="memory location"):
            target.copy_(source)


def test_copy_broadcasts() -> None:
    device = torch.zeros(3, 4, device="mps")
    device.copy_(torch.arange(4.0))
    assert torch.equal(device.cpu(), torch.arange(4.0).expand(3, 4))


def test_conjugate_and_negative_views() -> None:
    host = torch.randn(3, 4, dtype=torch.complex64)
    device = host.to("mps")
    assert device.conj().is_conj() and torch.equal(device.conj().cpu(), host.conj())
    assert torch.equal(device.conj().clone().cpu(), host.conj())
    assert device.conj().imag.is_neg() and torch.equal(device.conj().imag.cpu(), host.conj().imag)
    target = torch.zeros(3, 4, dtype=torch.complex64, device="mps")
    target.conj().copy_(device)
    assert torch.equal(target.cpu(), host.conj().resolve_conj())


@pytest.mark.parametrize(
    "view",
    [
        lambda t: t.view(3, 8), lambda t: t.t(), lambda t: t[1:, ::2], lambda t: t.unfold(0, 2, 1),
        lambda t: t.reshape(-1),
        lambda t: t.as_strided((2, 2), (1, 3), 5), lambda t: t.select(1, 2), lambda t: t.expand(2, 4, 6),
        lambda t: t.diagonal(), lambda t: t.unsqueeze(1).squeeze(1), lambda t: t.view(torch.int32),
        lambda t: t.chunk(2)[1],
        lambda t: t.movedim(0, 1), lambda t: t.unflatten(1, (2, 3)), lambda t: t.detach(), lambda t: t.split(2, 1)[2],
    ],
)  # fmt: skip
def test_views_share_the_storage(view: Callable[[torch.Tensor], torch.Tensor]) -> None:
    host = torch.arange(24.0).reshape(4, 6)
    device = host.to("mps")
    seen = view(device)
    assert torch.equal(seen.cpu(), view(host))
    assert seen.untyped_storage().data_ptr() == device.untyped_storage().data_ptr()
    assert (seen.stride(), seen.storage_offset()) == (view(host).stride(), view(host).storage_offset())
    device.add_(1)
    assert torch.equal(seen.cpu(), view(host + 1))


def test_complex_views() -> None:
    device = torch.randn(3, dtype=torch.complex64).to("mps")
    parts = torch.view_as_real(device)
    parts[:, 1] = 7
    assert torch.equal(device.cpu().imag, torch.full((3,), 7.0))
    assert torch.view_as_complex(parts).data_ptr() == device.data_ptr()


def test_resize_keeps_what_fits() -> None:
    device = torch.arange(4.0).to("mps")
    device.resize_(2, 4)
    assert device.shape == (2, 4) and torch.equal(device[0].cpu(), torch.arange(4.0))
    address = device.data_ptr()
    assert device.resize_(3).data_ptr() == address


def test_set_shares_the_storage() -> None:
    source = torch.arange(6.0).to("mps")
    target = torch.empty(0, device="mps").set_(source)  # type: ignore[call-overload]  # torch's stubs lack it
    target.add_(1)
    assert torch.equal(source.cpu(), torch.arange(1.0, 7.0))
    target.set_(source.untyped_storage(), 2, (2, 2), (2, 1))
    assert torch.equal(target.cpu(), torch.tensor([[3.0, 4.0], [5.0, 6.0]]))
    assert target.set_().numel() == 0


def test_storages() -> None:
    storage = torch.UntypedStorage(12, device="mps")
    assert storage.nbytes() == 12 and storage.device.type == "mps"
    storage.copy_(torch.arange(12, dtype=torch.uint8).untyped_storage())
    assert storage.cpu().tolist() == list(range(12))
    assert torch.UntypedStorage([1, 2, 3], device="mps").cpu().tolist() == [1, 2, 3]


def test_save_load_and_deepcopy() -> None:
    device = torch.randn(3).to("mps")
    file = io.BytesIO()
    torch.save(device, file)
    file.seek(0)
    loaded = torch.load(file)
    assert loaded.device.type == "mps" and torch.equal(loaded.cpu(), device.cpu())
    assert torch.equal(copy.deepcopy(device).cpu(), device.cpu())


@pytest.mark.parametrize("make", [
    lambda: torch.zeros(2, dtype=torch.float64, device="mps"),
    lambda: torch.ones(2, dtype=torch.float64).to("mps"),
    lambda: torch.ones(2).to("mps").double(),
    lambda: torch.empty_strided((2,), (1,), dtype=torch.float64, device="mps"),
])  # fmt: skip
def test_float64_is_refused_with_the_message_of_mps(make: Callable[[], object]) -> None:
    with pytest.raises(
        TypeError, match="Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support"
    ):
        make()


def test_complex128_and_sparse_layouts_are_refused() -> None:
    with pytest.raises(TypeError, match="ComplexDouble"):
        torch.zeros(2, dtype=torch.complex128, device="mps")
    with pytest.raises(RuntimeError, match="dimensions <= 16"):
        torch.empty([1] * 17, device="mps")


@pytest.mark.parametrize("value", [3, 2.5, True, 1 + 2j])
def test_item(value: Any) -> None:
    assert torch.tensor(value).to("mps").item() == value


def test_fresh_memory_is_poisoned() -> None:
    address = torch.ones(64, device="mps").data_ptr()
    fresh = torch.empty(64, device="mps")
    assert fresh.data_ptr() == address and not (fresh.cpu() == 1).any()


def test_fresh_memory_is_left_as_it_is_while_something_is_measured() -> None:
    device = aten_overlay.start()
    address = torch.ones(64, device="mps").data_ptr()
    device.fill_memory(False)
    try:
        fresh = torch.empty(64, device="mps")
        assert fresh.data_ptr() == address and (fresh.cpu() == 1).all()
    finally:
        device.fill_memory(True)
    del fresh
    assert device.overruns() == 0
    assert not (torch.empty(64, device="mps").cpu() == 1).any()


def test_memory_is_counted_and_released() -> None:
    before = torch.mps.current_allocated_memory()
    tensor = torch.empty(1000, device="mps")
    assert torch.mps.current_allocated_memory() == before + 4000
    assert torch.mps.driver_allocated_memory() >= torch.mps.current_allocated_memory()
    del tensor
    assert torch.mps.current_allocated_memory() == before
    torch.mps.empty_cache()
    assert torch.mps.recommended_max_memory() > 1 << 30


def test_the_limit_is_enforced() -> None:
    torch.mps.set_per_process_memory_fraction(0.001)
    with pytest.raises(torch.OutOfMemoryError, match="MPS backend out of memory"):
        torch.empty(1 << 30, dtype=torch.uint8, device="mps")
    torch.mps.set_per_process_memory_fraction(1.0)
    assert torch.empty(1 << 30, dtype=torch.uint8, device="mps").numel() == 1 << 30
