"""A port's kernels as `torch.mps.compile_shader` gives them, behind the rows of an operator."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import torch

from porter.core.dtypes import ALL, BY_TORCH, name_torch
from porter.core.files import read_regular
from porter.core.layout import ATEN_ROOT
from porter.verdict.errors import NoVerdict

# c10::ScalarType of each torch type that kernels with `cast` in their name get (c10/core/ScalarType.h).
CODES: Mapping[torch.dtype, int] = {getattr(torch, dtype.torch): dtype.code for dtype in ALL}

# From here on a dense unary kernel gets several elements per thread; a fork's own threshold is higher.
WIDE = 16
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"](?P<name>[^>"]+)[>"].*$', re.M)

# Gets a functor, operands, the result, alpha and the shaders.
Launch: TypeAlias = "Callable[[str, Sequence[torch.Tensor], torch.Tensor, Any, Shaders], None]"


@dataclass
class Shaders:
    """A compiled shader library, how often each kernel was called, and how many elements a thread of `dense` takes."""

    library: Any
    calls: dict[str, int]
    per_thread: int = 1

    def has(self, name: str) -> bool:
        return name in dir(self.library)

    def run(self, name: str, *args: Any, threads: Sequence[int], narrow: int | None = None) -> None:
        """Calls a kernel over a grid of threads. `narrow` is the argument whose numbers are 32-bit ones."""
        if not self.has(name):
            raise NotImplementedError(f"no kernel is registered as {name}")
        self.calls[name] = self.calls.get(name, 0) + 1
        casts = {} if narrow is None else {narrow: "int32"}
        getattr(self.library, name)(*args, threads=list(threads), arg_casts=casts)


def embed_headers(root: Path, path: str) -> str:
    """A kernel file of the fork at `root` with its headers in place: `compile_shader` embeds none but the wheel's own.

    Each header comes once, from the fork or else from the wheel; Metal's own are left to its compiler.
    """
    folders = (root, root / ATEN_ROOT, Path(torch.__file__).parent / "include")
    seen: set[str] = set()

    def text(file: Path) -> str:
        return _INCLUDE.sub(header, read_regular(file).decode(errors="surrogateescape").replace("#pragma once", ""))

    def header(line: re.Match[str]) -> str:
        name = line["name"]
        found = next((folder / name for folder in folders if (folder / name).is_file()), None)
        if found is None:
            return line[0]
        if name in seen:
            return ""
        seen.add(name)
        return text(found)

    return text(root / path)


def override(rows: Sequence[str], functor: str, shaders: Shaders) -> torch.library.Library:
    """Overrides rows (`atan2`, `atan2.out`, `atan2_`) on the MPS key by calls of a functor's kernels."""
    library = torch.library.Library("aten", "IMPL", "MPS")
    for row in rows:
        library.impl(row, implementation(row, functor, shaders), with_keyset=False)
    return library


def implementation(row: str, functor: str, shaders: Shaders, run: Launch | None = None) -> Callable[..., torch.Tensor]:
    """A Python kernel for one row: result type and shape are those of the operator's own Meta kernel.

    `run` takes the place of `launch`.
    Raises PTR172 for a row whose arguments are not one or two operands and an alpha.
    """
    base, _, overload = row.partition(".")
    inplace = base.endswith("_") and not base.endswith("__")
    schema = getattr(getattr(torch.ops.aten, base), overload or "default")._schema
    plain = [a for a in schema.arguments if not a.is_out]
    operands = [a.name for a in plain if str(a.type) in ("Tensor", "number", "Scalar")][:2]
    extra = [a.name for a in plain if a.name not in operands]
    if not set(extra) <= {"alpha"}:
        raise NoVerdict("PTR172", f"{row} takes {', '.join(extra)}, which this backend cannot pass to a kernel")
    names = [a.name for a in plain]
    start = run or launch

    def call(*args: Any, **kwargs: Any) -> torch.Tensor:
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        out = given.pop("out", None)
        alpha = given.get("alpha", next((a.default_value for a in schema.arguments if a.name == "alpha"), None))
        natural = _meta(base[:-1] if inplace else base, given)
        target = given["self"] if inplace else out
        if target is not None:
            _check(base, given, out)
        tensors = _operands([given[name] for name in operands if name in given])
        if out is not None and out.shape != natural.shape:
            out.resize_(natural.shape)
        if target is not None and target.dtype == natural.dtype:
            start(functor, tensors, target, alpha, shaders)
            return target
        device = next((t.device for t in tensors if t.device.type != "cpu"), tensors[0].device)
        result = torch.empty(natural.shape, dtype=natural.dtype, device=device)
        start(functor, tensors, result, alpha, shaders)
        return result if target is None else target.copy_(result)

    return call


def launch(functor: str, operands: Sequence[torch.Tensor], out: torch.Tensor, alpha: Any, shaders: Shaders) -> None:
    """Calls the functor's kernel that writes `out`: dense where all fill their memory, else strided or casting."""
    if out.numel() == 0:
        return
    common = operands[0].dtype if len(operands) == 1 else torch.result_type(*operands)
    inputs = [t.to(out.device).expand(out.shape) for t in operands]
    dense = out.is_contiguous() and all(t.is_contiguous() and t.dtype == common for t in inputs)
    name = f"{functor}_{{}}_{_metal(out.dtype)}_{_metal(common)}"
    if len(inputs) == 1:
        _unary(name, out, inputs[0], dense, shaders)
    else:
        _binary(name, out, inputs, dense, common, alpha, shaders)


def _unary(name: str, out: torch.Tensor, value: torch.Tensor, dense: bool, shaders: Shaders) -> None:
    if dense and out.numel() < WIDE and shaders.has(name.format("dense_scalar")):
        shaders.run(name.format("dense_scalar"), out, value, threads=[out.numel()])
        return
    if dense:
        threads = -(-out.numel() // shaders.per_thread)
        shaders.run(name.format("dense"), out, value, out.numel(), threads=[threads], narrow=2)
        return
    sizes, strides = _layout(out, [out, value])
    arguments = [out, value, sizes, strides[1], strides[0], len(sizes)]
    shaders.run(name.format("strided"), *arguments, threads=[sizes[0], out.numel() // sizes[0]], narrow=5)


def _binary(
    name: str,
    out: torch.Tensor,
    inputs: Sequence[torch.Tensor],
    dense: bool,
    common: torch.dtype,
    alpha: Any,
    shaders: Shaders,
) -> None:
    scalars = []
    if alpha is not None:
        suffix, value = _alpha(name, alpha, common, shaders)
        name, scalars = name + suffix, [value]
    if dense:
        shaders.run(name.format("dense"), out, *inputs, *scalars, threads=[out.numel()])
        return
    sizes, strides = _layout(out, [out, *inputs])
    mixed = alpha is not None or any(t.dtype != common for t in inputs)
    types = [len(sizes), *(CODES[t.dtype] for t in inputs), CODES[out.dtype]]
    arguments = [out, *inputs, *scalars, sizes, *strides, types]
    variant = "strided_cast" if mixed else "strided"
    shaders.run(name.format(variant), *arguments, threads=[out.numel()], narrow=len(arguments) - 1)


def _alpha(name: str, alpha: Any, common: torch.dtype, shaders: Shaders) -> tuple[str, Any]:
    """The end of the kernel's name and alpha in the type it says: the operands', or float beside 16-bit ones."""
    wide = torch.complex64 if common.is_complex else torch.float32
    taken = common if shaders.has(f"{name}_{_metal(common)}".format("dense")) else wide
    if taken.is_complex:
        return f"_{_metal(taken)}", [complex(alpha).real, complex(alpha).imag]
    return f"_{_metal(taken)}", float(alpha) if taken.is_floating_point else int(alpha)


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
    """Runs the row itself on the Meta key, and on the CPU without elements, which refuse what cannot be written."""
    row = getattr(torch.ops.aten, base)
    written = {} if out is None else {"out": torch.empty(0, dtype=out.dtype, device="meta")}
    row(**{k: _to_meta(v) for k, v in given.items()}, **written)
    written = {} if out is None else {"out": torch.empty(0, dtype=out.dtype)}
    try:
        row(**{k: _without_elements(v) for k, v in given.items()}, **written)
    except RuntimeError as error:  # of which NotImplementedError is one: a type that the CPU has no kernel for
        if isinstance(error, NotImplementedError) or "not implemented for" in str(error):
            return
        raise


def _to_meta(value: Any) -> Any:
    return value.to("meta") if isinstance(value, torch.Tensor) else value


def _without_elements(value: Any) -> Any:
    """A tensor of the same type on the CPU; a single value stays one, for it has another part in the result's type."""
    if not isinstance(value, torch.Tensor):
        return value
    return torch.ones((0,) if value.dim() else (), dtype=value.dtype)


def _metal(dtype: torch.dtype) -> str:
    name = name_torch(dtype)
    if name not in BY_TORCH:
        raise NoVerdict("PTR172", f"Metal has no type for {name}")
    return BY_TORCH[name].metal
