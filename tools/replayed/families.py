"""The families of kernels of PyTorch 2.7 that can be called by themselves: by file and name, with their arguments."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F

from replayed.cases import (
    COUNT,
    TYPES,
    VECTORS,
    Case,
    make_offsets,
    make_output,
    make_values,
    pack,
    pack_sizes,
    pack_strides,
    result_of,
)
from replayed.family import Family, Match
from replayed.indexed import INDEXED
from replayed.matrices import MATRICES
from replayed.optimizers import OPTIMIZERS

FLAT, GROUP = (COUNT,), (256,)
_ALL = r"(?P<types>\w+)"


def unary(
    match: Match, low: float = -3, high: float = 3, input_first: bool = False, extra: tuple[bytes, ...] = ()
) -> Case:
    taken, given = result_of(match["types"])
    x, out = make_values(match[0], taken, COUNT, low=low, high=high), make_output(given, COUNT)
    tensors = (x, out) if input_first else (out, x)
    return Case((*tensors, *extra), FLAT, GROUP, (x,), int(input_first))


def complex_unary(match: Match) -> Case:
    x = make_values(match[0], TYPES[match["types"].split("_")[0]], COUNT, 2)
    return Case((make_output(x.dtype, COUNT, 2), x), FLAT, GROUP)


def binary(match: Match, low: float = -3, high: float = 3, shift: float = 0.0) -> Case:
    taken = TYPES[match["types"]]
    floats = taken.is_floating_point or match[0].startswith(("fm", "nextafter"))
    given = taken if floats else torch.float32
    x, y = (make_values(match[0] + each, taken, COUNT, low=low, high=high) for each in "xy")
    x = x + shift if shift else x
    return Case((x, y, make_output(given, COUNT)), FLAT, GROUP, (x, y), 2)


def strided_binary(match: Match, low: float = -3, high: float = 3, shift: float = 0.0) -> Case:
    case = binary(match, low, high, shift)
    x, y, out = (each for each in case.args if isinstance(each, torch.Tensor))
    offsets = make_offsets(COUNT, out.element_size(), x.element_size(), y.element_size())
    return Case((x, y, out, offsets), FLAT, GROUP, case.inputs, 2)


def to_complex(match: Match, strided: bool) -> Case:
    dtype = TYPES[match["types"]]
    x, y = (make_values(match[0] + each, dtype, COUNT) for each in "xy")
    out, size = make_output(dtype, COUNT, 2), dtype.itemsize
    offsets = (make_offsets(COUNT, 2 * size, size, size),) if strided else ()
    return Case((x, y, out, *offsets), FLAT, GROUP)


def complex_product(match: Match) -> Case:
    dtype = TYPES[match["types"]]
    x, y = (make_values(match[0] + each, dtype, COUNT, 2) for each in "xy")
    return Case((x, y, make_output(dtype, COUNT, 2), make_offsets(COUNT, *[2 * dtype.itemsize] * 3)), FLAT, GROUP)


def cross(match: Match) -> Case:
    dtype = TYPES[match["types"]]
    x, y = (make_values(match[0] + each, dtype, COUNT, 3) for each in "xy")
    offsets = make_offsets(COUNT, *[3 * dtype.itemsize] * 3)
    return Case((x, y, make_output(dtype, COUNT, 3), offsets, *[pack("q", 1)] * 3), FLAT, GROUP, (x, y), 2)


def rms_norm(match: Match, columns: int, group: int) -> Case:
    dtype, rows = TYPES[match["types"]], 37
    x, w = make_values(match[0], dtype, rows, columns), make_values(match[0] + "w", dtype, columns)
    numbers = (pack("f", 1e-5), pack("I", columns), pack("I", 1))
    return Case((x, w, make_output(dtype, rows, columns), *numbers), (rows * group,), (group,), (x, w), 2)


def renorm(match: Match) -> Case:
    norm = make_values(match[0], TYPES[match["types"]], COUNT, low=0, high=9)
    return Case((norm, make_output(norm.dtype, COUNT), pack("f", 4.0)), FLAT, GROUP)


def repeat(match: Match) -> Case:
    counts = make_values(match[0], TYPES[match["types"]], 500, low=0, high=9)
    ends = counts.long().cumsum(0)
    return Case((counts, ends, make_output(counts.dtype, int(ends[-1]))), (500,), (64,))


def triangle(match: Match) -> Case:
    rows, columns = 60, 45
    size = columns * (columns + 1) // 2
    numbers = (0, columns, columns, 0, size) if match[0].startswith("triu") else (0, 1, rows, size, size)
    return Case((make_output(TYPES[match["types"]], 2 * size), *(pack("q", n) for n in numbers)), (size,), (64,))


def search(match: Match, sorted_by: bool) -> Case:
    kind, result = match["types"].split("_")
    edges = make_values(match[0] + "e", TYPES[kind], 101, low=-90, high=90)
    order = torch.argsort(edges.float(), stable=True)
    values = make_values(match[0], TYPES[kind], COUNT, low=-99, high=99)
    numbers = [pack("q", n) for n in (COUNT, len(edges), COUNT, 1, 1)]
    tail = (order,) if sorted_by else ()
    given = edges if sorted_by else edges[order].contiguous()
    return Case((values, given, make_output(TYPES[result], COUNT), *numbers, *tail), (256, 1), (256, 1))


def fill(match: Match) -> Case:
    dtype = TYPES[match["types"]]
    mask = make_values("mask", torch.bool, COUNT)
    value = torch.tensor([42]).to(dtype).view(torch.uint8).numpy().tobytes()
    return Case((make_values(match[0], dtype, COUNT), mask, value), FLAT, GROUP)


def fill_broadcast(match: Match) -> Case:
    case = fill(match)
    x, _, value = case.args
    return Case((x, make_values("mask", torch.bool, 101), value, pack("I", 101)), FLAT, GROUP)


def product(match: Match) -> Case:
    dtype = TYPES[match["types"]]
    a, b = make_values(match[0], dtype, 65, 40), make_values(match[0] + "b", dtype, 40, 71)
    out = make_output(dtype, 65, 71)
    strides = pack("6q", *a.stride(), *b.stride(), *out.stride())
    return Case((a, b, out, strides, pack("4I", 65, 40, 71, 0)), (5 * 16, 5 * 16), (16, 16), (a, b), 2)


def batched_product(match: Match) -> Case:
    dtype = TYPES[match["types"]]
    a, b = make_values(match[0], dtype, 3, 33, 40), make_values(match[0] + "b", dtype, 3, 40, 35)
    out = make_output(dtype, 3, 33, 35)
    strides = pack("9q", *a.stride()[::-1], *b.stride()[::-1], *out.stride()[::-1])
    return Case((a, b, out, strides, pack("4I", 33, 40, 35, 3)), (3 * 16, 3 * 16, 3), (16, 16, 1))


def resample(match: Match, ranks: int = 2) -> Case:
    dtype = TYPES[match["types"]]
    x = make_values(match[0], dtype, 2, 3, *[17, 13][-ranks:], low=0, high=200)
    out = make_output(dtype, 2, 3, *[29, 31][-ranks:])
    scales = pack("2f", 13 / 31, 17 / 29)
    room = b"" if ranks == 2 else bytes(8)  # a row of three lies in the room of four
    numbers = [numbers + room for numbers in (pack_strides(x), pack_strides(out), pack_sizes(x), pack_sizes(out))]
    return Case((x, out, *numbers, scales, pack("?", False)), (out[0, 0].numel(),), (64,))


def columns_of(match: Match) -> Case:
    dtype = VECTORS.get(match["types"]) or TYPES[match["types"]]
    parts = (2,) if match["types"] in VECTORS else ()
    positions, block = 7 * 9, 3 * 3
    values = make_values(match[0], dtype, 2, 3, 9, 11, *parts)
    results = make_output(dtype, 2, 3 * block, positions, *parts)
    x, out = (each[..., 0] for each in (values, results)) if parts else (values, results)
    size = len(parts) + 1  # strides are of whole elements
    strides = pack("4Q", *(each // size for each in x.stride()[::-1]))
    into = pack("4Q", 1, positions, out.stride(0) // size, 9)
    given = (pack("4I", 3, 3, 1, 1), pack("4i", 0, 0, 1, 1), strides, into, pack("4q", 11, 9, 3, 2))
    return Case((values, results, *given), (positions, 3, 2), (64, 1, 1))


def _named(name: str, file: str, prefix: str, make: Callable[[Match], Case], torchs: object = None) -> Family:
    return Family(name, file, prefix, re.compile(prefix + _ALL), make, torchs if callable(torchs) else None)


def _of(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """A function of a case's inputs that does not look at the kernel's name."""
    return lambda _match, *inputs: function(*inputs)


_UNARY = ("exp", "sqrt", "tanh", "sinc")
_SPECIAL = ("i0", "i1", "spherical_bessel_j0", "entr")
_BINARY: tuple[tuple[str, float, float, float], ...] = (
    ("copysign", -3, 3, 0), ("fmax", -3, 3, 0), ("fmin", -3, 3, 0), ("nextafter", -3, 3, 0),
    ("xlog1py", 0.01, 3, 0), ("zeta", 1.5, 4, 1.0),
)  # fmt: skip
_ONE = "(float|half|bfloat|bool|char|uchar|short|int|long)"
_TYPED = f"(?P<types>{_ONE}(_{_ONE})?)"


def _elementwise() -> list[Family]:
    found = [
        Family(name, "UnaryKernel.metal", f"{name}_", re.compile(f"{name}_{_TYPED}"), unary, _of(getattr(torch, name)))
        for name in _UNARY
    ]
    found.append(Family("erfinv", "UnaryKernel.metal", "erfinv_", re.compile(f"erfinv_{_TYPED}"),
                        partial(unary, low=-1, high=1), _of(torch.erfinv)))  # fmt: skip
    found.append(Family("round", "UnaryKernel.metal", "round_decimals_", re.compile(f"round_decimals_{_TYPED}"),
                        partial(unary, extra=(pack("q", 2),))))  # fmt: skip
    for name in ("exp", "sqrt", "tanh", "sinc"):
        prefix = f"{name}_complex_"
        found.append(Family(f"{name} complex", "UnaryKernel.metal", prefix,
                            re.compile(rf"{prefix}(?P<types>(float|half|short)_\w+)"), complex_unary))  # fmt: skip
    for name in _SPECIAL:
        low = -3.0 if name != "entr" else 0.0
        found.append(Family(name, "SpecialOps.metal", f"{name}_", re.compile(f"{name}_{_TYPED}"),
                            partial(unary, low=low), _of(getattr(torch.special, name))))  # fmt: skip
    for name, function in (("lgamma", torch.lgamma), ("digamma", torch.digamma)):
        found.append(Family(name, "Gamma.metal", f"{name}_", re.compile(f"{name}_{_TYPED}"),
                            partial(unary, low=0.1, high=9, input_first=True), _of(function)))  # fmt: skip
    found.append(Family("trigamma", "Gamma.metal", "trigamma_", re.compile(f"trigamma_{_TYPED}"),
                        partial(unary, low=0.5, high=9, input_first=True)))  # fmt: skip
    found.append(Family("polygamma", "Gamma.metal", "polygamma_", re.compile(f"polygamma_{_TYPED}"),
                        partial(unary, low=0.5, high=9, input_first=True, extra=(pack("q", 2),))))  # fmt: skip
    for name, low, high, shift in _BINARY:
        function = getattr(torch, name, None) or getattr(torch.special, name)
        for kind, make in (("dense_", binary), ("", strided_binary)):
            prefix = f"{name}_{kind}"
            found.append(Family(f"{name} {kind}".strip("_ "), "BinaryKernel.metal", prefix,
                                re.compile(f"{prefix}{_TYPED}"), partial(make, low=low, high=high, shift=shift),
                                _of(function)))  # fmt: skip
    return found


def _others() -> list[Family]:
    upsample, binary_file = "UpSample.metal", "BinaryKernel.metal"
    return [
        *(Family(name.strip("_"), binary_file, name, re.compile(f"{name}{_TYPED}"),
                 partial(to_complex, strided=strided))
          for name, strided in (("polar_dense_", False), ("polar_", True), ("complex_kernel_", True))),
        Family("complex_mul", binary_file, "complex_mul_", re.compile(f"complex_mul_{_TYPED}"), complex_product),
        Family("cross", "CrossKernel.metal", "cross_", re.compile(f"cross_{_TYPED}"), cross),
        Family("rms_norm", "RMSNorm.metal", "rms_norm_", re.compile(f"rms_norm_{_TYPED}"),
               partial(rms_norm, columns=1000, group=256), _of(lambda x, w: F.rms_norm(x, x.shape[-1:], w, 1e-5))),
        Family("rms_norm_looped", "RMSNorm.metal", "rms_norm_looped_", re.compile(f"rms_norm_looped_{_TYPED}"),
               partial(rms_norm, columns=5000, group=512), _of(lambda x, w: F.rms_norm(x, x.shape[-1:], w, 1e-5))),
        _named("renorm", "RenormKernel.metal", "renorm_", renorm),
        _named("repeat_interleave", "Repeat.metal", "repeat_interleave_", repeat),
        _named("triu_indices", "TriangularOps.metal", "triu_indices_", triangle),
        _named("tril_indices", "TriangularOps.metal", "tril_indices_", triangle),
        Family("searchsorted", "Bucketization.metal", "searchsorted_",
               re.compile(r"searchsorted_(?P<types>[a-z]+_[a-z]+)"), partial(search, sorted_by=False)),
        Family("searchsorted sorter", "Bucketization.metal", "searchsorted_",
               re.compile(r"searchsorted_(?P<types>[a-z]+_[a-z]+)_sorter"), partial(search, sorted_by=True)),
        _named("masked_fill", "Indexing.metal", "masked_fill_scalar_dense_", fill),
        _named("masked_fill broadcast", "Indexing.metal", "masked_fill_scalar_broadcast_", fill_broadcast),
        Family("matmul", "LinearAlgebra.metal", "matmul_", re.compile(f"matmul_{_TYPED}"), product),
        Family("bmm", "LinearAlgebra.metal", "naive_bmm_", re.compile(f"naive_bmm_{_TYPED}"), batched_product),
        *(Family(name.strip("_"), upsample, name, re.compile(f"{name}{_TYPED}"), resample)
          for name in ("upsample_bilinear2d_", "upsample_bilinear2d_aa_", "upsample_bicubic2d_")),
        Family("upsample_linear1d", upsample, "upsample_linear1d_", re.compile(f"upsample_linear1d_{_TYPED}"),
               partial(resample, ranks=1)),
        Family("im2col", "Im2Col.metal", "im2col_", re.compile(r"im2col_(?P<types>[a-z]+2?)"), columns_of),
    ]  # fmt: skip


FAMILIES: tuple[Family, ...] = (*_elementwise(), *_others(), *OPTIMIZERS, *INDEXED, *MATRICES)
