"""Compares the Metal functor of a CUDA kernel with the kernel itself, both compiled for the host, value by value.

The kernel computed in double is the reference. The functor may be off by as much as computing in float explains.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from aten_overlay.metal.launch import Library
from porter.core.checkout import LARGEST_LEXED, Checkout
from porter.core.dtypes import BOOL, DType, Kind
from porter.core.files import read_named
from porter.cuda.own import OwnKernel
from porter.metal.own_functor import OwnFunctor
from porter.verdict.errors import raising_porter_errors
from porter.verdict.own.functor_library import compile_functor, kernel_name
from porter.verdict.own.reference import Program, compile_reference
from porter.verdict.own.result import SLACK, Comparison, Difference

Array = NDArray[Any]

_RANDOM = 4096
_FLOAT_EPSILON = 2.0**-23
_EDGES = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -3.0, 1e-20, -1e-20, 30.0, -80.0, float("inf"), -float("inf"), np.nan)
_NUMBERS = ((0.75, 1.25, 0.5, 2.0), (2.0, -0.5, 3.0, 0.25), (-1.5, 0.125, -2.0, 1.0))
_WHOLE_NUMBERS = ((3, 5, 2, 7), (1, 2, 9, 4))


def compare_functor(fork: Checkout, own: OwnKernel, functor: OwnFunctor, path: Path) -> tuple[Comparison, ...]:
    """Compiles and runs both sides for each type of element. Raises PTR338, PTR339, and what compiling Metal raises."""
    text = read_named(path, "PTR340", most=LARGEST_LEXED)
    with raising_porter_errors(), TemporaryDirectory(prefix="porter-own-") as folder:
        library = compile_functor(fork, own, functor)
        found = []
        for dtype, result in functor.dtypes:
            reals = ("double", "float") if dtype.kind is Kind.FLOATING else ("double",)
            exact, *plain = [compile_reference(own, path, text, dtype, real, Path(folder)) for real in reals]
            found.append(_compare(library, own, dtype, result, exact, plain[0] if plain else exact))
    return tuple(found)


def _compare(
    library: Library, own: OwnKernel, dtype: DType, result: DType, exact: Program, plain: Program
) -> Comparison:
    inputs = _make_inputs(dtype, len(own.elements))
    whole = dtype.kind is not Kind.FLOATING
    choices = (_WHOLE_NUMBERS if whole else _NUMBERS) if own.scalars else ((),)
    largest, values, wrong = 0.0, 0, None
    for numbers in choices:
        scalars = tuple(itertools.islice(itertools.cycle(numbers), len(own.scalars)))
        out = torch.zeros(inputs[0].numel(), dtype=getattr(torch, result.torch))
        given = torch.tensor(scalars or (0.0,), dtype=torch.float32)
        library.run(kernel_name(own, dtype), [out, given, *inputs], [out.numel()])
        arrays = [each.double().numpy() if not whole else each.numpy() for each in inputs]
        meant, rounded = (torch.from_numpy(program.run(arrays, scalars, own.name).copy()) for program in (exact, plain))
        moved = [_move(arrays, at) for at in range(len(arrays))] if not whole else []
        nearby = [torch.from_numpy(exact.run(each, scalars, own.name).copy()) for each in moved]
        errors = measure(out, meant, rounded, nearby)
        values += out.numel()
        worst = int(errors.argmax())
        if float(errors[worst]) > largest:
            largest = float(errors[worst])
            at = tuple(float(each[worst]) for each in inputs)
            wrong = Difference(at, scalars, float(out[worst]), float(meant[worst]), largest)
    return Comparison(dtype, values, largest, wrong if largest > SLACK else None)


def _move(arrays: Sequence[Array], moved: int) -> list[Array]:
    """Returns the inputs with one of them changed by as little as float can tell."""
    return [each * (1 + _FLOAT_EPSILON) if at == moved else each for at, each in enumerate(arrays)]


def measure(out: Tensor, meant: Tensor, rounded: Tensor, nearby: Sequence[Tensor] = ()) -> Tensor:
    """Returns how far each value is off, in units of the spacing of its type, beyond what computing in float explains.

    That is twice what the kernel itself loses in float, and four times what the last bit of each input changes.
    """
    if not out.dtype.is_floating_point or out.dtype == getattr(torch, BOOL.torch):
        return torch.where(out == meant.to(out.dtype), 0.0, float("inf")).double()
    own, loss = (_off(each, meant.to(out.dtype)) for each in (out, rounded.to(out.dtype)))
    same = (out == rounded.to(out.dtype)) | (out.isnan() & rounded.isnan())
    change = sum((_finite(_off(each, meant)) for each in nearby), torch.zeros_like(own))
    change = change * torch.finfo(torch.float64).eps / torch.finfo(out.dtype).eps
    return torch.where(same, 0.0, (own - 2 * _finite(loss) - 4 * change).clamp(min=0.0))


def _finite(values: Tensor) -> Tensor:
    return values.nan_to_num(0.0, 0.0, 0.0)


def _off(found: Tensor, meant: Tensor) -> Tensor:
    """Returns the distance in units of the spacing of the type; infinite where only one of them is finite."""
    info = torch.finfo(meant.dtype)
    size = meant.double().abs().clamp(min=info.tiny)
    spacing = torch.exp2(torch.floor(torch.log2(size))) * info.eps
    far = (found.double() - meant.double()).abs() / spacing
    both = (found.isnan() & meant.isnan()) | (found == meant)
    return torch.where(both, 0.0, torch.where(far.isnan(), float("inf"), far))


def _make_inputs(dtype: DType, arity: int) -> Sequence[Tensor]:
    """Returns edge values in every combination, then random ones; integers leave out 0, by which C++ may not divide."""
    generator = torch.Generator().manual_seed(0)
    kind = getattr(torch, dtype.torch)
    if dtype.kind is not Kind.FLOATING:
        low, high = (0, 2) if dtype == BOOL else (1, 100)
        whole = [torch.randint(low, high, (_RANDOM,), generator=generator) for _ in range(arity)]
        signs = torch.randint(0, 2, (_RANDOM,), generator=generator) * 2 - 1
        return [each.to(kind) for each in ((whole[0] * signs if dtype.is_signed else whole[0]), *whole[1:])]
    grids = torch.meshgrid(*[torch.tensor(_EDGES)] * arity, indexing="ij")
    near = [torch.randn(_RANDOM, generator=generator) * 3 for _ in range(arity)]
    return [torch.cat([grid.flatten(), more]).to(kind).contiguous() for grid, more in zip(grids, near, strict=True)]
