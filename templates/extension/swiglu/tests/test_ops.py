"""The operators against torch: on the mps device where there is one, and on the CPU."""

import pytest
import torch

import $name

DEVICES = ["cpu", "mps"] if torch.backends.mps.is_available() else ["cpu"]
TYPES = [torch.float32, torch.float16, torch.bfloat16]
SHAPES = [(), (0,), (1,), (33,), (3, 1025), (2, 3, 5)]

on_each_device = pytest.mark.parametrize("device", DEVICES)


def make(shape, dtype, device, seed):
    made = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    return made.to(dtype).to(device)


def reference(gate, up):
    exact = torch.nn.functional.silu(gate.cpu().double()) * up.cpu().double()
    return exact.to(gate.dtype)


@on_each_device
@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values(shape, dtype, device):
    gate, up = make(shape, dtype, device, 0), make(shape, dtype, device, 1)
    found = $name.swiglu(gate, up)
    assert (found.device, found.dtype) == (gate.device, dtype)
    torch.testing.assert_close(found.cpu(), reference(gate, up))


@on_each_device
def test_a_slice_starts_within_its_buffer(device):
    gate, up = make((6, 8), torch.float32, device, 0)[2:5], make((6, 8), torch.float32, device, 1)[1:4]
    assert gate.storage_offset() != 0
    torch.testing.assert_close($name.swiglu(gate, up).cpu(), reference(gate, up))


@on_each_device
def test_strides(device):
    gate, up = make((6, 8), torch.float32, device, 0).t(), make((8, 12), torch.float32, device, 1)[:, ::2]
    torch.testing.assert_close($name.swiglu(gate, up).cpu(), reference(gate, up))


@on_each_device
def test_extreme_values(device):
    gate = torch.tensor([-1e4, -90.0, 0.0, 90.0, 1e4, float("inf"), float("nan")], device=device)
    up = torch.ones_like(gate)
    torch.testing.assert_close($name.swiglu(gate, up).cpu(), reference(gate, up), equal_nan=True)


@on_each_device
def test_between_other_operators(device):
    gate, up = make((4, 7), torch.float32, device, 0), make((4, 7), torch.float32, device, 1)
    found = ($name.swiglu(gate + 1, up) * 2).sum()
    torch.testing.assert_close(found.cpu(), (reference(gate + 1, up) * 2).sum())


@on_each_device
def test_gradients(device):
    gate, up = (make((3, 5), torch.float32, device, seed).requires_grad_() for seed in (0, 1))
    weights = make((3, 5), torch.float32, device, 2)
    found = torch.autograd.grad(($name.swiglu(gate, up) * weights).sum(), (gate, up))
    exact = (torch.nn.functional.silu(gate) * up * weights).sum()
    for mine, torchs in zip(found, torch.autograd.grad(exact, (gate, up)), strict=True):
        torch.testing.assert_close(mine, torchs)


def test_gradients_in_double_precision():
    inputs = [torch.randn(3, 4, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    assert torch.autograd.gradcheck($name.swiglu, inputs)


@on_each_device
def test_the_operator_is_registered_as_pytorch_expects(device):
    gate, up = (make((3, 5), torch.float32, device, seed).requires_grad_() for seed in (0, 1))
    checks = ["test_schema", "test_faketensor", "test_aot_dispatch_dynamic"]
    if device == "cpu":  # where torch has this one
        checks.append("test_autograd_registration")
    torch.library.opcheck(torch.ops.$name.swiglu.default, (gate, up), test_utils=checks)


@on_each_device
def test_compiles_without_a_graph_break(device):
    compiled = torch.compile(lambda a, b: $name.swiglu(a, b) + 1, fullgraph=True, backend="aot_eager")
    gate, up = make((3, 5), torch.float32, device, 0), make((3, 5), torch.float32, device, 1)
    torch.testing.assert_close(compiled(gate, up), $name.swiglu(gate, up) + 1)


@on_each_device
def test_wrong_arguments_are_refused(device):
    a, b = torch.ones(3, device=device), torch.ones(4, device=device)
    with pytest.raises(RuntimeError, match="gate has shape"):
        $name.swiglu(a, b)
    with pytest.raises(RuntimeError, match="gate is"):
        $name.swiglu(a, a.half())


@pytest.mark.skipif("mps" not in DEVICES, reason="no mps device")
def test_types_without_a_kernel_are_refused():
    with pytest.raises(TypeError, match="no kernel takes Int"):
        $name.swiglu(*[torch.ones(3, dtype=torch.int32, device="mps")] * 2)
