"""What operators leave in their arguments when the device has no kernel for them: the same as on the CPU.

No fork's code is loaded here, so every operator runs on the CPU for the device.
"""

# mypy: disable-error-code="no-untyped-call, no-untyped-def, misc"

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

MOST_ELEMENTS = 4096
DTYPES = (torch.float32, torch.int64, torch.complex64, torch.bool)


def leaves(*values: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(values) if isinstance(leaf, torch.Tensor)]


def same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors of the CPU are alike, and numbers as close as two runs of one kernel are."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    return torch.allclose(a, b, equal_nan=True) if a.dtype.is_floating_point or a.dtype.is_complex else a.equal(b)


def mirrored(given: Any, device: str) -> Any:
    """The arguments with copies of their storages on `device`: tensors that share one share its copy."""
    storages: dict[int, torch.UntypedStorage] = {}
    tensors: dict[int, torch.Tensor] = {}

    def mirror(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) not in tensors:
            storage = tensor.untyped_storage()
            if storage._cdata not in storages:
                storages[storage._cdata] = torch.UntypedStorage(storage.nbytes(), device=device).copy_(storage)
            made = torch.empty(0, dtype=tensor.dtype, device=device)
            made.set_(storages[storage._cdata], tensor.storage_offset(), tensor.size(), tensor.stride())
            torch._C._set_conj(made, tensor.is_conj())
            torch._C._set_neg(made, tensor.is_neg())
            tensors[id(tensor)] = made
        return tensors[id(tensor)]

    return pytree.tree_map_only(torch.Tensor, mirror, given)


@dataclass(frozen=True)
class Call:
    """The tensors given to an operator: before, after it ran on the CPU, and after it ran for the device."""

    function: Any
    before: list[torch.Tensor]
    host: list[torch.Tensor]
    device: list[torch.Tensor]

    def written(self) -> list[bool]:
        """Which arguments the CPU changes."""
        return [not same(*pair) for pair in zip(self.before, self.host, strict=True)]

    def agrees(self) -> bool:
        """Whether the arguments are left alike: of an operator that draws random numbers, the same ones changed."""
        device = [tensor.cpu() for tensor in self.device]
        if torch.Tag.nondeterministic_seeded in self.function.tags:
            return self.written() == [not same(*pair) for pair in zip(self.before, device, strict=True)]
        return all(same(*pair) for pair in zip(self.host, device, strict=True))


class Doubled(TorchDispatchMode):
    """Runs every operator for the device as well, once for each combination of the types of its arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: dict[tuple[Any, ...], Call] = {}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        given = (list(args), dict(kwargs or {}))
        key = (function, *(getattr(v, "dtype", type(v)) for v in pytree.tree_leaves(given)))
        if key in self.calls or not comparable(function, leaves(given)):
            return function(*args, **(kwargs or {}))
        before, device = mirrored(given, "cpu"), mirrored(given, "mps")
        result = function(*args, **(kwargs or {}))
        try:
            function(*device[0], **device[1])
        except (NotImplementedError, RuntimeError, TypeError):  # not of the device: refused before it runs
            return result
        self.calls[key] = Call(function, *map(leaves, (before, mirrored(given, "cpu"), device)))
        return result


def comparable(function: Any, tensors: list[torch.Tensor]) -> bool:
    """Whether an operator has small plain tensors, and leaves none of their bytes unset."""
    unset = function._schema.name in ("aten::resize_", "aten::set_")
    plain = (t.layout == torch.strided and not t.is_quantized and not t._is_zerotensor() for t in tensors)
    return not unset and bool(tensors) and all(plain) and sum(t.numel() for t in tensors) <= MOST_ELEMENTS


def first_sample(op: OpInfo) -> SampleInput | None:
    dtype = next((d for d in DTYPES if d in op.supported_dtypes("cpu")), None)
    if dtype is None:
        return None
    slopes = op.supports_autograd and dtype.is_floating_point
    try:
        found: SampleInput = next(iter(op.sample_inputs("cpu", dtype, requires_grad=slopes, set_seed=True)))
        return found
    except Exception:  # samples that this machine cannot make
        return None


def run(call: Callable[[], Any], doubled: Doubled) -> None:
    """The call and its gradients, as far as the CPU computes them."""
    with warnings.catch_warnings(), suppress(Exception), doubled:
        warnings.simplefilter("ignore")
        results = [t for t in leaves(call()) if t.requires_grad]
        torch.autograd.backward(results, [torch.ones_like(t) for t in results])


def test_every_operator_that_opinfo_reaches_leaves_its_arguments_as_on_the_cpu():
    doubled = Doubled()
    for op in op_db:
        if sample := first_sample(op):
            run(lambda op=op, s=sample: op(s.input, *s.args, **s.kwargs), doubled)
    calls = doubled.calls.values()
    assert {str(call.function) for call in calls if not call.agrees()} == set()
    assert len({call.function for call in calls}) > 500
    written = {str(call.function) for call in calls if any(call.written())}
    assert {"aten.native_batch_norm.default", "aten.rrelu_with_noise.default", "aten.add_.Tensor"} <= written


def trained(layer: torch.nn.Module, shape: tuple[int, ...], device: str) -> list[torch.Tensor]:
    """A layer's output in evaluation and its state, after two steps of training."""
    torch.manual_seed(0)
    layer = layer.to(device)
    for _ in range(2):
        layer(torch.randn(shape).to(device)).square().sum().backward()
    layer.eval()
    shown = layer(torch.linspace(-2, 2, math.prod(shape)).view(shape).to(device))
    return [t.detach().cpu() for t in (shown, *layer.state_dict().values())]


@pytest.mark.parametrize("norm, momentum", [("BatchNorm", 0.1), ("BatchNorm", None), ("InstanceNorm", 0.1)])
@pytest.mark.parametrize("spaces", [1, 2, 3])
def test_normalization_keeps_running_statistics(norm, spaces, momentum):
    made = [
        getattr(torch.nn, f"{norm}{spaces}d")(3, affine=True, track_running_stats=True, momentum=momentum)
        for _ in range(2)
    ]
    shape = (4, 3, *[3] * spaces)
    mine, theirs = trained(made[0], shape, "mps"), trained(made[1], shape, "cpu")
    assert all(same(*pair) for pair in zip(mine, theirs, strict=True))
    assert mine[3].all()


@pytest.mark.parametrize(
    "statistics",
    [
        lambda: torch.zeros(6)[::2],
        lambda: torch.zeros(9)[4:7],
        lambda: torch.zeros(3, 2).t()[1],
    ],
    ids=["strided", "offset", "transposed"],
)
def test_a_view_that_an_operator_writes_unsaid_is_written_in_place(statistics):
    x = torch.randn(4, 3, 5)
    found: list[torch.Tensor] = []
    for device in ("cpu", "mps"):
        mean = mirrored(statistics(), device)
        torch.nn.functional.batch_norm(x.to(device), mean, torch.ones(3, device=device), training=True)
        whole = mean.as_strided((mean.untyped_storage().nbytes() // 4,), (1,), 0)
        found.append(whole.cpu())
    assert same(*found) and found[0].any()


def both(call: Callable[[str], Any]) -> None:
    """A call of a function of the device comes out, or is refused, as on the CPU."""
    told: list[Any] = []
    for device in ("cpu", "mps"):
        try:
            told.append([(t.cpu().tolist(), t.stride(), t.storage_offset()) for t in leaves(call(device))])
        except RuntimeError as error:
            told.append(str(error))
    assert told[0] == told[1]


def line(device: str) -> torch.Tensor:
    return torch.arange(6.0).to(device)


def test_overlapping_arguments_are_refused():
    def shifted(device: str) -> None:
        x = line(device)
        torch.add(x[:-1], x[1:], out=x[1:])

    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        shifted("mps")
    both(shifted)
    both(lambda device: line(device)[:1].expand(4).mul_(2))


def test_an_output_is_resized_and_restrided():
    def grown(device: str) -> list[torch.Tensor]:
        x, out = line(device).view(2, 3), torch.empty(0, device=device)
        return [torch.add(x.t(), 1, out=out), out]

    def part(device: str) -> list[torch.Tensor]:
        x, room = line(device), torch.zeros(10, device=device)
        torch.mul(x, 2, out=room[2:8])
        return [room]

    both(grown)
    both(part)


def test_lists_are_written():
    def halved(device: str) -> list[torch.Tensor]:
        x = line(device)
        parameters, gradients = [x[:2], x[4:]], [torch.ones(2, device=device)] * 2
        torch._fused_sgd_(
            parameters, gradients, [], weight_decay=0.0, momentum=0.0, lr=0.5, dampening=0.0,
            nesterov=False, maximize=False, is_first_step=True,
        )  # fmt: skip
        return [x]

    both(halved)


def test_indices_may_be_absent_or_on_the_host():
    both(lambda device: line(device).view(2, 3)[:, torch.tensor([2, 0])])
    both(lambda device: line(device).view(2, 3).index_put_((torch.tensor([1]), torch.tensor([0])), line(device)[5]))


def test_a_view_that_only_the_cpu_makes_shares_the_storage():
    x = line("mps")
    x.view(2, 3).diagonal().fill_(9)
    assert x.tolist() == [9.0, 1.0, 2.0, 3.0, 9.0, 5.0]
    both(lambda device: torch.ops.aten.view_as_real(torch.complex(line(device), line(device)))[:, 1].fill_(3))


def test_what_the_device_has_not_is_refused():
    with pytest.raises(TypeError, match="Cannot convert a MPS Tensor to float64"):
        torch.ops.aten.bincount(torch.tensor([1, 2]).to("mps"), torch.tensor([1, 2]).to("mps"))
