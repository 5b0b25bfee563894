"""The `mps` backend: the same tests on a Mac's own GPU, with the port's kernels compiled by `torch.mps.compile_shader`.

An official wheel has its own host code, so the rows of the operator are overridden on the MPS key by functions that
call the kernels as the fork's `exec_unary_kernel` and `exec_binary_kernel` would. The Metal compiler and the GPU are
Apple's; the fork's host code and its registrations are not exercised. Not yet run on Apple hardware.
"""

# mypy: disable-error-code="no-untyped-call, no-any-return"

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from porter.dtypes import BY_TORCH
from porter.errors import PorterError

# c10::ScalarType of each torch type that kernels with `cast` in their name are told (c10/core/ScalarType.h).
CODES: Mapping[torch.dtype, int] = {
    torch.uint8: 0, torch.int8: 1, torch.int16: 2, torch.int32: 3, torch.int64: 4, torch.float16: 5, torch.float32: 6,
    torch.complex32: 8, torch.complex64: 9, torch.bool: 11, torch.bfloat16: 15,
}  # fmt: skip


@dataclass
class Shaders:
    """A compiled shader library and how often each of its kernels was called."""

    library: Any
    calls: dict[str, int]

    def has(self, name: str) -> bool:
        return name in dir(self.library)

    def run(self, name: str, *args: Any, threads: Sequence[int]) -> None:
        self.calls[name] = self.calls.get(name, 0) + 1
        getattr(self.library, name)(*args, threads=list(threads))


def source(texts: Sequence[str]) -> str:
    """The text of one shader of several `.metal` files: headers stay includes, which torch resolves."""
    return "\n".join(texts)


def override(rows: Sequence[str], functor: str, shaders: Shaders) -> torch.library.Library:
    """Overrides rows (`atan2`, `atan2.out`, `atan2_`) on the MPS key by calls of a functor's kernels."""
    library = torch.library.Library("aten", "IMPL", "MPS")
    for row in rows:
        library.impl(row, implementation(row, functor, shaders), with_keyset=False)
    return library


def implementation(row: str, functor: str, shaders: Shaders) -> Callable[..., torch.Tensor]:
    """A Python kernel for one row: result type and shape are those of the operator's own Meta kernel.

    Raises PTR172 for a row whose arguments are not one or two operands and an alpha.
    """
    base, _, overload = row.partition(".")
    inplace = base.endswith("_") and not base.endswith("__")
    schema = getattr(getattr(torch.ops.aten, base), overload or "default")._schema
    plain = [a for a in schema.arguments if not a.is_out]
    operands = [a.name for a in plain if str(a.type) in ("Tensor", "number", "Scalar")][:2]
    extra = [a.name for a in plain if a.name not in operands]
    if not set(extra) <= {"alpha"}:
        raise PorterError("PTR172", f"{row} takes {', '.join(extra)}, which this backend cannot pass to a kernel")
    names = [a.name for a in plain]

    def call(*args: Any, **kwargs: Any) -> torch.Tensor:
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        out = given.pop("out", None)
        alpha = given.get("alpha", _default(schema, "alpha"))
        natural = _meta(base[:-1] if inplace else base, given)
        target = given["self"] if inplace else out
        if target is not None:
            _check(base, given, out)
        tensors = _operands([given[name] for name in operands if name in given])
        result = launch(functor, tensors, natural.shape, natural.dtype, alpha, shaders)
        if target is None:
            return result
        if not inplace and target.shape != natural.shape:
            target.resize_(natural.shape)
        return target.copy_(result)

    return call


def launch(
    functor: str, operands: Sequence[torch.Tensor], shape: torch.Size, dtype: torch.dtype, alpha: Any, shaders: Shaders
) -> torch.Tensor:
    """Calls the functor's kernel for these operands: dense where they fill their memory, else strided or casting."""
    device = next((t.device for t in operands if t.device.type != "cpu"), operands[0].device)
    out = torch.empty(shape, dtype=dtype, device=device)
    if out.numel() == 0:
        return out
    common = operands[0].dtype if len(operands) == 1 else torch.result_type(*operands)
    inputs = [t.to(device).expand(shape) for t in operands]
    dense = all(t.is_contiguous() and t.dtype == common for t in inputs)
    types = f"{_metal(dtype)}_{_metal(common)}" + (f"_{_metal(common)}" if alpha is not None else "")
    if len(inputs) == 1:
        _unary(f"{functor}_{{}}_{types}", out, inputs[0], dense, shaders)
    else:
        _binary(f"{functor}_{{}}_{types}", out, inputs, dense, common, alpha, shaders)
    return out


def _unary(name: str, out: torch.Tensor, value: torch.Tensor, dense: bool, shaders: Shaders) -> None:
    if dense:
        if shaders.has(name.format("dense_scalar")):
            shaders.run(name.format("dense_scalar"), out, value, threads=[out.numel()])
        else:
            shaders.run(name.format("dense"), out, value, threads=[out.numel()])
        return
    sizes, strides = _layout(out, [out, value])
    rows = out.numel() // sizes[0]
    shaders.run(name.format("strided"), out, value, sizes, strides[1], strides[0], len(sizes), threads=[sizes[0], rows])


def _binary(
    name: str,
    out: torch.Tensor,
    inputs: Sequence[torch.Tensor],
    dense: bool,
    common: torch.dtype,
    alpha: Any,
    shaders: Shaders,
) -> None:
    scalars = [] if alpha is None else [alpha]
    if dense:
        shaders.run(name.format("dense"), out, *inputs, *scalars, threads=[out.numel()])
        return
    sizes, strides = _layout(out, [out, *inputs])
    mixed = alpha is not None or any(t.dtype != common for t in inputs)
    types = [len(sizes), *(CODES[t.dtype] for t in inputs), CODES[out.dtype]]
    flavour = "strided_cast" if mixed else "strided"
    shaders.run(name.format(flavour), out, *inputs, *scalars, sizes, *strides, types, threads=[out.numel()])


def _layout(out: torch.Tensor, tensors: Sequence[torch.Tensor]) -> tuple[list[int], list[list[int]]]:
    """Sizes and byte strides, the fastest dimension first, as `TensorIterator` has them."""
    sizes = list(out.shape)[::-1] or [1]
    return sizes, [[s * t.element_size() for s in list(t.stride())[::-1]] or [0] for t in tensors]


def _operands(values: Sequence[Any]) -> list[torch.Tensor]:
    tensors = [v if isinstance(v, torch.Tensor) else torch.tensor(v) for v in values]
    for i, value in enumerate(values):
        if not isinstance(value, torch.Tensor) and len(tensors) == 2:
            tensors[i] = tensors[i].to(torch.result_type(tensors[1 - i], value))
    return [t.float() if t.dtype == torch.float64 else t for t in tensors]  # the device has no float64


def _meta(base: str, given: Mapping[str, Any]) -> torch.Tensor:
    """The result of the functional form on the Meta key: its shape and type, without data."""
    result: torch.Tensor = getattr(torch.ops.aten, base)(**{k: _to_meta(v) for k, v in given.items()})
    return result


def _check(base: str, given: Mapping[str, Any], out: torch.Tensor | None) -> None:
    """Runs the row itself on the Meta key, which refuses what cannot be written to its target."""
    written = {} if out is None else {"out": torch.empty(0, dtype=out.dtype, device="meta")}
    getattr(torch.ops.aten, base)(**{k: _to_meta(v) for k, v in given.items()}, **written)


def _to_meta(value: Any) -> Any:
    return value.to("meta") if isinstance(value, torch.Tensor) else value


def _default(schema: Any, name: str) -> Any:
    return next((a.default_value for a in schema.arguments if a.name == name), None)


def _metal(dtype: torch.dtype) -> str:
    name = str(dtype).removeprefix("torch.")
    if name not in BY_TORCH:
        raise PorterError("PTR172", f"Metal has no type for {name}")
    return BY_TORCH[name].metal
