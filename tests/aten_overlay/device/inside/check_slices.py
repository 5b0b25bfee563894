"""Host code that binds a buffer and an offset: the bounds are those of the tensor that it means."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from aten_overlay.device import frameworks
from aten_overlay.device.load import started
from aten_overlay.metal.build import Options
from tests.aten_overlay.device.programs.loading import load_program

PAST = r"reads 4 bytes out of bounds of argument `in` \(buffer 1\): byte {}, where bytes 0 to {} are the tensor"


@pytest.fixture(scope="module", autouse=True)
def extension(tmp_path_factory: pytest.TempPathFactory) -> None:
    load_program("slices", tmp_path_factory.mktemp("slices"))
    device = started()
    assert device
    loaded = frameworks.load(device)
    loaded.compiler.options = Options(sanitize=("bounds",))
    loaded.watch_slices(device)


def call(name: str, x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    getattr(torch.ops.slices_test, name)(x, out)
    return out


def whole() -> torch.Tensor:
    return torch.arange(16.0).to("mps")


@pytest.mark.parametrize("name", ["copies", "passes_its_offset"])
@pytest.mark.parametrize("take", [lambda x: x, lambda x: x[4:8], lambda x: x[:4], lambda x: x[8:]])
def test_a_tensor_is_read_wherever_it_starts(name: str, take: Callable[[torch.Tensor], torch.Tensor]) -> None:
    part = take(whole())
    assert torch.equal(call(name, part, torch.zeros_like(part)).cpu(), part.cpu())


@pytest.mark.parametrize("name", ["copies", "passes_its_offset"])
def test_two_parts_of_one_storage(name: str) -> None:
    both = whole()
    assert call(name, both[8:12], both[:4]).tolist() == [8, 9, 10, 11]
    assert call(name, both[:4], both[12:]).tolist() == [8, 9, 10, 11]


@pytest.mark.parametrize("low", [0, 4])
def test_what_lies_behind_a_slice_is_not_its_own(low: int) -> None:
    part = whole()[low : low + 4]
    with pytest.raises(RuntimeError, match=PAST.format(16, 16)):
        call("reads_further", part, torch.zeros(4, device="mps"))
    call("reads_further", part, torch.zeros(3, device="mps"))


def test_a_neighbor_that_is_bound_too() -> None:
    both = whole()
    with pytest.raises(RuntimeError, match=PAST.format(16, 16)):
        call("reads_further", both[:4], both[4:8])


def test_a_tensor_that_the_operator_made() -> None:
    with pytest.raises(RuntimeError, match=PAST.format(56, 56)):
        call("reads_past_its_own", whole(), torch.zeros(15, device="mps"))
    assert call("reads_past_its_own", whole(), torch.zeros(14, device="mps")).tolist() == list(range(1, 15))


def test_a_tensor_with_strides_ends_at_its_last_element() -> None:
    spread = whole()[1:8:3]
    assert call("copies", spread, torch.zeros(7, device="mps")).tolist() == list(range(1, 8))
    with pytest.raises(RuntimeError, match=PAST.format(28, 28)):
        call("copies", spread, torch.zeros(8, device="mps"))
