"""torch.mps, torch.backends.mps, torch.accelerator, random numbers, fallback counts and whole programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import aten_overlay

device = aten_overlay.start()


def test_torch_names_the_device_everywhere() -> None:
    assert torch.backends.mps.is_available() and torch.backends.mps.is_built()
    assert torch.mps.device_count() == 1 and torch.backends.mps.is_macos_or_newer(14, 0)
    assert torch.accelerator.current_accelerator() == torch.device("mps")
    assert torch.get_device_module("mps") is torch.mps
    torch.mps.synchronize()
    torch.accelerator.synchronize()


def test_seeds_repeat() -> None:
    torch.mps.manual_seed(5)
    first = torch.rand(4, device="mps"), torch.randn(4, device="mps"), torch.randperm(9, device="mps")
    torch.manual_seed(5)
    again = torch.rand(4, device="mps"), torch.randn(4, device="mps"), torch.randperm(9, device="mps")
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not torch.equal(first[0], torch.rand(4, device="mps"))


def test_state_repeats() -> None:
    torch.mps.manual_seed(1)
    torch.rand(3, device="mps")
    state = torch.mps.get_rng_state()
    first = [torch.rand(3, device="mps") for _ in range(3)]
    torch.mps.set_rng_state(state)
    assert torch.equal(torch.mps.get_rng_state(), state)
    assert all(torch.equal(t, torch.rand(3, device="mps")) for t in first)
    with pytest.raises(RuntimeError, match="wrong size"):
        torch.mps.set_rng_state(torch.zeros(8, dtype=torch.uint8))


def test_device_and_cpu_generators_are_independent() -> None:
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    torch.rand(100, device="mps")
    torch.nn.functional.dropout(torch.ones(100, device="mps"))
    torch.native_dropout(torch.ones(100, device="mps"), 0.5, True)
    assert torch.equal(torch.rand(4), expected)


def test_operators_without_a_generator_follow_the_device_seed() -> None:
    def drop() -> Any:
        torch.mps.manual_seed(8)
        return torch.native_dropout(torch.ones(100, device="mps"), 0.5, True)[0]

    assert torch.equal(drop(), drop())


def test_generators() -> None:
    generator = torch.Generator("mps").manual_seed(7)
    assert generator.device.type == "mps" and generator.initial_seed() == 7
    first = torch.rand(3, generator=generator, device="mps")
    assert torch.equal(first, torch.rand(3, generator=torch.Generator("mps").manual_seed(7), device="mps"))
    with pytest.raises(RuntimeError, match="Expected a 'mps' device type for generator but found 'cpu'"):
        torch.rand(3, generator=torch.Generator(), device="mps")


def test_events() -> None:
    start, end = torch.mps.Event(enable_timing=True), torch.mps.Event(enable_timing=True)
    start.record()
    torch.rand(10, device="mps")
    end.record()
    end.synchronize()
    assert start.query() and start.elapsed_time(end) >= 0
    with pytest.raises(RuntimeError, match="not recorded"):
        start.elapsed_time(torch.mps.Event(enable_timing=True))
    with pytest.raises(RuntimeError, match="enable_timing=True"):
        start.elapsed_time(torch.mps.Event())


def test_generic_events_and_streams() -> None:
    start, end = torch.Event("mps", enable_timing=True), torch.Event("mps", enable_timing=True)
    start.record()
    end.record()
    assert start.elapsed_time(end) >= 0
    assert torch.accelerator.current_stream().device.type == "mps"


def test_fallbacks_are_counted_and_forgotten() -> None:
    tensor = torch.ones(3, device="mps")
    device.reset_fallbacks()
    torch.erfinv(tensor)
    torch.erfinv(tensor)
    assert device.fallbacks() == {"aten::erfinv.out": 2}
    device.reset_fallbacks()
    assert device.fallbacks() == {}


def test_fallbacks_can_be_refused() -> None:
    tensor = torch.ones(3, device="mps")
    device.refuse_fallbacks()
    try:
        with pytest.raises(
            NotImplementedError, match=r"aten::erfinv.out.*not currently implemented for the MPS device"
        ):
            torch.erfinv(tensor)
        assert tensor.view(3, 1).cpu().sum() == 3
    finally:
        device.refuse_fallbacks(False)


def test_training_matches_the_cpu() -> None:
    def losses(where: str) -> Any:
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 1)
        )
        inputs, targets = torch.randn(16, 4).to(where), torch.randn(16, 1).to(where)
        model.to(where)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
        seen = []
        for _ in range(5):
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(inputs), targets)
            loss.backward()
            optimizer.step()
            seen.append(loss.item())
        return seen

    assert losses("mps") == pytest.approx(losses("cpu"), rel=1e-4)
    assert losses("mps")[-1] < losses("mps")[0]


@pytest.mark.parametrize(
    "mix",
    [
        lambda d, h: torch.addmm(h, d, h), lambda d, h: d + h, lambda d, h: torch.cat([d, h]),
        lambda d, h: torch.sin(d, out=h),
    ],
)  # fmt: skip
def test_mixed_devices_are_refused(mix: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> None:
    with pytest.raises(RuntimeError, match="on the same device"):
        mix(torch.ones(2, 2, device="mps"), torch.ones(2, 2))


def test_host_scalars_and_indices_are_accepted() -> None:
    tensor = torch.arange(4.0).to("mps")
    assert (tensor + torch.tensor(1.0)).tolist() == [1, 2, 3, 4]
    assert tensor[torch.tensor([2, 0])].tolist() == [2, 0]


def test_convolution_and_attention_with_gradients() -> None:
    def run(where: str) -> Any:
        torch.manual_seed(0)
        image, weight, bias = (torch.randn(*s).to(where).requires_grad_() for s in ((1, 4, 6, 6), (4, 2, 3, 3), (4,)))
        image.retain_grad()
        seen = torch.nn.functional.conv2d(image, weight, bias, padding=1, groups=2)
        query = seen.flatten(2)
        torch.nn.functional.scaled_dot_product_attention(query, query, query).sum().backward()
        with torch.no_grad():
            plain = torch.nn.functional.scaled_dot_product_attention(query, query, query)
        return [t.detach().cpu() for t in (seen, plain, image.grad, weight.grad, bias.grad) if t is not None]

    device.reset_fallbacks()
    for got, expected in zip(run("mps"), run("cpu"), strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)
    assert device.fallbacks()["aten::convolution_overrideable"] == 1


def test_nothing_wrote_past_an_allocation() -> None:
    assert device.overruns() == 0
