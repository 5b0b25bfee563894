"""PyTorch 2.7's kernels that follow tables: of index tensors, of sizes and strides, of edges."""

from __future__ import annotations

from functools import partial

import torch

from replayed.cases import (
    TYPES,
    Argument,
    Case,
    Table,
    make_offsets,
    make_output,
    make_values,
    pack,
    pack_sizes,
    pack_strides,
)
from replayed.family import Family, Match, named

_ROWS, _COLUMNS, _COUNT = 61, 83, 3001
_BITS = {"8bit": torch.int8, "16bit": torch.int16, "32bit": torch.int32, "64bit": torch.int64}


def _make_indices(name: str, distinct: bool) -> Table:
    """Where each of many elements lies in a matrix: rows, some counted from the end, and columns."""
    generator = torch.Generator().manual_seed(len(name))
    order = torch.randperm(_ROWS * _COLUMNS, generator=generator)[:_COUNT]
    places = order if distinct else order % (_ROWS * _COLUMNS // 8)
    rows, columns = places // _COLUMNS, places % _COLUMNS
    return Table((torch.where(rows % 3 == 0, rows - _ROWS, rows).contiguous(), columns.contiguous()), (0, 1))


def index(match: Match, into: bool, distinct: bool = True, serial: bool = False) -> Case:
    """Elements of a matrix to a row of results (`into`: the other way), by byte offsets of 32 or 64 bits."""
    dtype = _BITS[match["types"]] if "kind" not in match.groupdict() else TYPES[match["kind"]]
    size = dtype.itemsize
    matrix = make_values(match[0], dtype, _ROWS, _COLUMNS, low=-99, high=99)
    row = make_values(match[0] + "row", dtype, _COUNT, low=-99, high=99) if into else make_output(dtype, _COUNT)
    offsets = make_offsets(_COUNT, *((0, size, 8) if into else (size, 0, 8)))
    given, taken = (row, matrix) if into else (matrix, row)
    numbers = [pack("2q", _ROWS, _COLUMNS), pack("2q", _COLUMNS * size, size)]
    wide = offsets.to(torch.int64) if match["offsets"] == "64" else offsets
    tail = (pack("I", _COUNT),) if serial else ()
    args: tuple[Argument, ...] = (_make_indices(match[0], distinct), *numbers, wide, given, taken, pack("I", 2), *tail)
    return Case(args, (1,) if serial else (_COUNT,), (1,) if serial else (64,))


def offsets_of(match: Match) -> Case:
    strides = torch.tensor([[4, 8, 40], [20, 56, 0], [300, 8, 800]], dtype=torch.int32)
    wide = torch.int64 if match["bits"] == "64" else torch.int32
    sizes = (5, 7, 11)
    count = 5 * 7 * 11
    return Case((strides, torch.zeros(count, 4, dtype=wide), pack("3I", *sizes), pack("I", 3)), (count,), (64,))


def offset_of(_match: Match) -> Case:
    out = torch.zeros(5 * 7 * 11, dtype=torch.int32)
    return Case((pack("3I", 77, 11, 1), out, pack("3I", 5, 7, 11), pack("I", 3)), (len(out),), (64,))


def fill_strided(match: Match) -> Case:
    dtype = _BITS[match["types"]]
    x = make_values(match[0], dtype, 13, 17, 5)
    view, mask = x.transpose(0, 1), make_values("mask", torch.bool, 17, 1, 5).expand(17, 13, 5)
    value = torch.tensor([42]).to(dtype).view(torch.uint8).numpy().tobytes()
    numbers = (pack_sizes(view), pack_strides(view), pack_strides(mask), pack("I", 3))
    return Case((x, mask[:, 0].contiguous(), value, *numbers), (x.numel(),), (64,))


def histogram(match: Match) -> Case:
    dtype, count, bins = TYPES[match["types"]], 500, (5, 4)
    x = make_values(match[0], dtype, count, 2, low=-1, high=1)
    edges = torch.cat([torch.linspace(-1, 1, each + 1) for each in bins]).to(dtype)
    ends = [torch.full((2,), end).to(dtype) for end in (-1.0, 1.0)]
    offsets = torch.arange(2 * count, dtype=torch.int32)
    out = torch.zeros(count, *bins, dtype=dtype)
    weights = make_values(match[0] + "w", dtype, count)
    numbers = pack("2q", bins[0] + 1, bins[1] + 1)
    given: tuple[Argument, ...] = (x, weights, out, offsets, pack("Q", 2), edges, numbers, *ends)
    return Case((*given, pack_strides(out), pack("B", 2), pack("B", 1)), (count,), (64,))


def unfold_backward(match: Match) -> Case:
    dtype, size, step = TYPES[match["types"]], 4, 3
    out = make_output(dtype, 6, 20, 5)
    given = make_values(match[0], dtype, *torch.empty(6, 20, 5).unfold(1, size, step).shape)
    numbers = (pack_strides(given), pack_sizes(out), pack_strides(out), pack("4I", 1, size, step, 3))
    return Case((given, out, *numbers), (out.numel(),), (64,))


def bicubic_backward(match: Match) -> Case:
    """Gradients that no two results share, so that the order of the atomic sums is of no effect."""
    dtype = TYPES[match["types"]]
    given = torch.zeros(2, 3, 34, 26, dtype=dtype)
    given[:, :, 9::14, 9::8] = make_values(match[0], dtype, 2, 3, 2, 3)
    out = torch.zeros(2, 3, 17, 14, dtype=dtype)  # an even number of elements: two of 16 bits are one atomic
    numbers = [pack_strides(out), pack_strides(given), pack_sizes(out), pack_sizes(given)]
    args: tuple[Argument, ...] = (out, given, *numbers, pack("2f", 14 / 26, 0.5), pack("?", False))
    return Case(args, (given[0, 0].numel(),), (64,))


_FLOATS = "(?P<types>float|half|bfloat)"
_SIZED = r"(?P<types>\d+bit)_idx(?P<offsets>\d+)"
_INDEXING = "Indexing.metal"
INDEXED: tuple[Family, ...] = (
    named("index_select", _INDEXING, f"index_select_{_SIZED}", partial(index, into=False)),
    named("index_put", _INDEXING, f"index_put_{_SIZED}", partial(index, into=True)),
    named("index_put_serial", _INDEXING, f"index_put_serial_{_SIZED}",
          partial(index, into=True, distinct=False, serial=True)),
    named("index_put_accumulate", _INDEXING,
          r"index_put_accumulate_(?P<types>32bit)_(?P<kind>float|int)_idx(?P<offsets>\d+)",
          partial(index, into=True, distinct=False)),
    named("kernel_index_offsets", _INDEXING, r"kernel_index_offsets_(?P<bits>\d+)", offsets_of),
    named("masked_fill_scalar_strided", _INDEXING, r"masked_fill_scalar_strided_(?P<types>\d+bit)", fill_strided),
    named("kernel_index_offset", "HistogramKernel.metal", "kernel_index_offset", offset_of),
    named("histogramdd", "HistogramKernel.metal", f"histogramdd_{_FLOATS}", histogram),
    named("unfold_backward", "UnfoldBackward.metal", f"unfold_backward_{_FLOATS}", unfold_backward),
    named("upsample_bicubic2d_backward", "UpSample.metal", f"upsample_bicubic2d_backward_{_FLOATS}", bicubic_backward),
)  # fmt: skip
