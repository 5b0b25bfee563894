"""The kernels as functions: what they are called with, shapes for fake tensors, the CPU, gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from $name import references

_TYPES = {
    torch.float32: "float", torch.float16: "half", torch.bfloat16: "bfloat", torch.bool: "bool", torch.int8: "char",
    torch.uint8: "uchar", torch.int16: "short", torch.uint16: "ushort", torch.int32: "int", torch.uint32: "uint",
    torch.int64: "long", torch.uint64: "ulong", torch.complex64: "float2",
}
_REST = 7  # arguments of an operator behind its inputs
_NUMBERS = {bool: torch.bool, int: torch.int32, float: torch.float32}


class MetalKernel:
    """One kernel of this package.

    `inputs` are tensors or numbers; `grid` are all threads, `threadgroup` those of a group. `template` gives types,
    whole numbers and bools to template parameters. `init_value` fills the outputs before the kernel runs.
    """

    def __init__(
        self, name: str, inputs: Sequence[str], outputs: Sequence[str], reference: Callable[..., Any] | None
    ) -> None:
        self.name, self.inputs, self.outputs = name, tuple(inputs), tuple(outputs)
        self._op = getattr(torch.ops.$name, name).default
        register(f"$name::{name}", reference)

    def __call__(
        self,
        inputs: Mapping[str, Any] | Sequence[Any],
        template: Mapping[str, Any] | Sequence[tuple[str, Any]] = (),
        grid: Sequence[int] = (1, 1, 1),
        threadgroup: Sequence[int] = (1, 1, 1),
        output_shapes: Any = (),
        output_dtypes: Any = (),
        init_value: float | None = None,
    ) -> Any:
        given = self._ordered("inputs", inputs, self.inputs)
        shapes = [tuple(s) for s in self._ordered("output_shapes", output_shapes, self.outputs)]
        types = [_TYPES[t] for t in self._ordered("output_dtypes", output_dtypes, self.outputs)]
        device = next((v.device for v in given if isinstance(v, torch.Tensor) and v.dim()), torch.device("mps"))
        made = self._op(
            [_tensor(v, device) for v in given],
            [*grid, *[1] * (3 - len(grid))],
            [*threadgroup, *[1] * (3 - len(threadgroup))],
            [n for shape in shapes for n in shape],
            [len(shape) for shape in shapes],
            types,
            [_define(name, value) for name, value in dict(template).items()],
            init_value,
        )
        return dict(zip(self.outputs, made, strict=True)) if isinstance(output_shapes, Mapping) else made

    def _ordered(self, what: str, given: Any, names: Sequence[str]) -> list[Any]:
        values = [given[name] for name in names] if isinstance(given, Mapping) else list(given)
        if len(values) != len(names):
            raise ValueError(f"`{what}` of {self.name} has {len(values)} entries, one is needed for each of {names}")
        return values


def _tensor(value: Any, device: torch.device) -> torch.Tensor:
    if isinstance(value, torch.Tensor):
        return value if value.dim() else value.to(device)
    return torch.tensor(value, dtype=_NUMBERS[type(value)], device=device)


def _define(name: str, value: Any) -> str:
    if isinstance(value, torch.dtype):
        return f"using {name} = {_TYPES[value]};"
    kind = "bool" if isinstance(value, bool) else "int"
    return f"constant constexpr {kind} {name} = {str(value).lower()};"


def register(op: str, reference: Callable[..., Any] | None) -> None:
    """Registers what the operator does without data and, by the reference, on the CPU and for gradients."""
    by_name = {name: dtype for dtype, name in _TYPES.items()}

    @torch.library.register_fake(op)
    def _(inputs: Any, grid: Any, group: Any, sizes: Any, ranks: Any, types: Any, definitions: Any, init: Any = None) -> Any:
        rest = iter(sizes)
        shapes = [[next(rest) for _ in range(rank)] for rank in ranks]
        made = zip(shapes, types, strict=True)
        return [torch.empty(s, dtype=by_name[t], device=inputs[0].device) for s, t in made]

    if reference is None:
        return

    def compute(inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        found = reference(*inputs)
        return [t.clone() for t in (found if isinstance(found, (tuple, list)) else [found])]

    @torch.library.impl(op, "CPU")
    def _(inputs: Any, *call: Any) -> Any:
        return compute(inputs)

    def save(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs[0])

    def differentiate(ctx: Any, gradients: Sequence[torch.Tensor]) -> Any:
        with torch.enable_grad():
            inputs = [t.detach().requires_grad_(t.is_floating_point()) for t in ctx.saved_tensors]
            wanted = [t for t in inputs if t.requires_grad]
            results = compute(inputs)
            found = iter(torch.autograd.grad(results, wanted, list(gradients), allow_unused=True))
        return [next(found) if t.requires_grad else None for t in inputs], *[None] * _REST

    torch.library.register_autograd(op, differentiate, setup_context=save)


$kernels
