"""Which operators of PyTorch's OpInfo database run on the stand-in device and agree with the CPU.

    python tools/device.py [--backward] [--samples N] [-k NAME]

Every operator runs through the counted CPU fallback unless a kernel is loaded. Results of operators that draw random
numbers, or leave memory as it was, are compared by shape and type alone. Exit code 1 if an operator fails for a reason
that is not MPS's own, or none is chosen.
"""

from __future__ import annotations

import math
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import aten_overlay
from shared.arguments import parser

device = aten_overlay.start()

import torch  # noqa: E402
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402
from torch.utils._pytree import tree_leaves  # noqa: E402

# What MPS itself refuses, or what only CUDA has: the beginning of the message, and the name of the row in the table.
EXPECTED = {
    "Cannot convert a MPS Tensor to float64": "float64, refused as on MPS",
    "Trying to convert ComplexDouble to the MPS backend": "complex128, refused as on MPS",
    "Jiterator is only supported on CUDA": "CUDA only",
    "Could not run 'new_compressed_tensor'": "sparse, not on MPS",
    "Could not run 'aten::_sparse_": "sparse, not on MPS",
}

UNINITIALISED = ("empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided")


@dataclass(frozen=True)
class Outcome:
    """How one operator fared: `kind` is "ok", "failed", "no samples", or why MPS would not run it either."""

    name: str
    kind: str
    samples: int
    told: str = ""


def host_twin(value: Any) -> Any:
    """A tensor's copy on the CPU over a copy of its whole storage: same offset, strides and gradient flag."""
    if not isinstance(value, torch.Tensor):
        return value
    plain = value.detach()
    flipped, negated = plain.is_conj(), plain.is_neg()
    plain = plain.conj() if flipped else plain
    plain = torch._neg_view(plain) if negated else plain
    twin = torch.empty(0, dtype=plain.dtype)
    twin.set_(plain.untyped_storage().cpu(), plain.storage_offset(), plain.size(), plain.stride())
    twin = torch._neg_view(twin) if negated else twin
    return (twin.conj() if flipped else twin).requires_grad_(value.requires_grad)


def drew_random_numbers() -> bool:
    """Whether an operator that fell back since the last reset draws random numbers."""
    return any(torch.Tag.nondeterministic_seeded in _overload(name).tags for name in device.fallbacks())


def _overload(name: str) -> Any:
    base, _, overload = name.removeprefix("aten::").partition(".")
    return getattr(getattr(torch.ops.aten, base), overload or "default")


def compare(got: Any, expected: Any, shapes_only: bool) -> None:
    """Raises AssertionError unless every tensor agrees."""
    pairs = zip(tree_leaves(got), tree_leaves(expected), strict=True)
    for left, right in pairs:
        if not isinstance(left, torch.Tensor):
            assert shapes_only or same_value(left, right), f"{left!r}, not {right!r}"
            continue
        assert (left.shape, left.dtype) == (right.shape, right.dtype), (
            f"{left.shape} {left.dtype}, not {right.shape} {right.dtype}"
        )
        if not shapes_only:
            torch.testing.assert_close(left.detach().cpu(), right.detach(), rtol=1e-4, atol=1e-4, equal_nan=True)


def same_value(left: Any, right: Any) -> bool:
    """Whether two results that are no tensors agree; floats as closely as elements of tensors."""
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=1e-4, abs_tol=1e-4) or (math.isnan(left) and math.isnan(right))
    return bool(left == right)


def on_host(sample: Any) -> Any:
    """The same sample for the CPU: tensors copied, and a `device` argument changed."""
    twin = sample.transform(host_twin)
    twin.kwargs = {name: "cpu" if name == "device" else value for name, value in twin.kwargs.items()}
    return twin


def run_sample(op: Any, sample: Any, backward: bool) -> None:
    """Runs one sample on both devices. Raises what either raises, and AssertionError if they differ."""
    twin = on_host(sample)
    device.reset_fallbacks()
    got = op(sample.input, *sample.args, **sample.kwargs)
    expected = op(twin.input, *twin.args, **twin.kwargs)
    compare(got, expected, op.name in UNINITIALISED or drew_random_numbers())
    if backward:
        compare(gradients(got, sample), gradients(expected, twin), drew_random_numbers())


def gradients(result: Any, sample: Any) -> Sequence[torch.Tensor | None]:
    """The gradients of the sum of all differentiable results by every input that asks for one."""
    inputs = [t for t in tree_leaves((sample.input, sample.args, sample.kwargs)) if _differentiable(t)]
    sums = [t.abs().sum() for t in tree_leaves(result) if _differentiable(t)]
    if not inputs or not sums:
        return []
    return torch.autograd.grad(torch.stack(sums).sum(), inputs, allow_unused=True)


def _differentiable(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad


def outcome(op: Any, most: int, backward: bool) -> Outcome:
    """Runs up to `most` float32 samples of an operator."""
    done = 0
    try:
        for sample in _first(op.sample_inputs("mps", torch.float32, requires_grad=backward), most):
            run_sample(op, sample, backward)
            done += 1
    except Exception as error:
        told = (str(error) or type(error).__name__).splitlines()[0]
        kind = next((kind for start, kind in EXPECTED.items() if str(error).startswith(start)), "failed")
        return Outcome(op.full_name, kind, done, f"{type(error).__name__}: {told[:150]}")
    return Outcome(op.full_name, "ok" if done else "no samples", done)


def _first(samples: Iterator[Any], most: int) -> Iterator[Any]:
    for index, sample in enumerate(samples):
        if index == most:
            return
        yield sample


def chosen(name: str, backward: bool) -> list[Any]:
    """The operators with float32 samples on the CPU, those that are differentiable if `backward`."""
    able = (op for op in op_db if torch.float32 in op.supported_dtypes("cpu") and name in op.full_name)
    return [
        op
        for op in able
        if not backward or (op.supports_autograd and torch.float32 in op.supported_backward_dtypes("cpu"))
    ]


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--backward", action="store_true")
    options.add_argument("--samples", type=int, default=3)
    options.add_argument("-k", dest="name", default="")
    arguments = options.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    began = time.monotonic()
    outcomes = [outcome(op, arguments.samples, arguments.backward) for op in chosen(arguments.name, arguments.backward)]
    print(f"{len(outcomes)} operators, {sum(o.samples for o in outcomes)} samples, {time.monotonic() - began:.0f} s")
    for kind, count in Counter(o.kind for o in outcomes).most_common():
        print(f"{count:5}  {kind}")
    for found in outcomes:
        if found.told:
            print(f"  {found.name}: {found.told}")
    return int(not any(o.samples for o in outcomes) or any(o.kind == "failed" for o in outcomes))


if __name__ == "__main__":
    raise SystemExit(main())
