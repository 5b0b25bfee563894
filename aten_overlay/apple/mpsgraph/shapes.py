"""Constants and operations on shapes. Source: Apple's documentation of MPSGraph (memory and shape operations)."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from aten_overlay.apple.mpsgraph.semantics import compute_gradient, implements
from aten_overlay.apple.mpsgraph.types import torch_type


def _numbers(value: Sequence[int] | Tensor) -> list[int]:
    return [int(v) for v in (value.tolist() if isinstance(value, Tensor) else value)]


@implements("constantWithScalar:dataType")
def constant(value: float, code: int) -> Tensor:
    return torch.tensor([value]).to(torch_type(code))


@implements("constantWithScalar:shape:dataType")
def constant_of_shape(value: float, shape: list[int], code: int) -> Tensor:
    return torch.full(shape, value, dtype=torch.float64).to(torch_type(code))


@implements("constantWithRealPart:imaginaryPart:dataType")
def complex_constant(real: float, imaginary: float, code: int) -> Tensor:
    return torch.tensor([complex(real, imaginary)]).to(torch_type(code))


@implements("constantWithRealPart:imaginaryPart:shape:dataType")
def complex_constant_of_shape(real: float, imaginary: float, shape: list[int], code: int) -> Tensor:
    return torch.full(shape, complex(real, imaginary)).to(torch_type(code))


@implements("constantWithData:shape:dataType", "variableWithData:shape:dataType")
def constant_with_data(data: bytes, shape: list[int], code: int) -> Tensor:
    return torch.frombuffer(bytearray(data), dtype=torch_type(code)).reshape(shape)


@implements("readVariable")
def read_variable(variable: Tensor) -> Tensor:
    """The variable as it was made: assignments are not implemented, as it is not documented when they take effect."""
    return variable


@implements("reshapeTensor:withShape", "reshapeTensor:withShapeTensor", moves=True)
def reshape(x: Tensor, shape: Sequence[int] | Tensor) -> Tensor:
    return x.reshape(_numbers(shape))


@implements("transposeTensor:dimension:withDimension", moves=True)
def transpose(x: Tensor, one: int, other: int) -> Tensor:
    return x.transpose(one, other)


@implements("transposeTensor:permutation", moves=True)
def permute(x: Tensor, order: list[int]) -> Tensor:
    return x.permute(order)


@implements("sliceTensor:dimension:start:length", moves=True)
def slice_dimension(x: Tensor, dimension: int, start: int, length: int) -> Tensor:
    return x.narrow(dimension, start + (x.shape[dimension] if start < 0 else 0), length)


def _slices(
    x: Tensor, starts: list[int], ends: list[int], strides: list[int], start_mask: int = 0, end_mask: int = 0
) -> tuple[slice, ...]:
    made = []
    for i, (start, end, stride) in enumerate(zip(starts, ends, strides, strict=True)):
        made.append(slice(None if start_mask >> i & 1 else start, None if end_mask >> i & 1 else end, stride))
    return tuple(made)


@implements("sliceTensor:starts:ends:strides", moves=True)
def strided_slice(x: Tensor, starts: list[int], ends: list[int], strides: list[int]) -> Tensor:
    return _sliced(x, _slices(x, starts, ends, strides))


@implements("sliceTensor:starts:ends:strides:startMask:endMask:squeezeMask")
def masked_slice(
    x: Tensor, starts: list[int], ends: list[int], strides: list[int], start_mask: int, end_mask: int, squeeze_mask: int
) -> Tensor:
    made = _sliced(x, _slices(x, starts, ends, strides, start_mask, end_mask))
    for dimension in reversed(range(x.ndim)):
        if squeeze_mask >> dimension & 1:
            made = made.squeeze(dimension)
    return made


def _sliced(x: Tensor, slices: tuple[slice, ...]) -> Tensor:
    """torch takes no negative steps: such a dimension is picked by its indices."""
    for dimension, each in enumerate(slices):
        indices = range(*each.indices(x.shape[dimension]))
        if each.step is not None and each.step < 0:
            x = x.index_select(dimension, torch.tensor(list(indices), dtype=torch.int64, device=x.device))
        else:
            x = x[(slice(None),) * dimension + (each,)]
    return x


@implements("sliceGradientTensor:fwdInShapeTensor:starts:ends:strides:startMask:endMask:squeezeMask")
def slice_gradient(
    gradient: Tensor, shape: Tensor, starts: list[int], ends: list[int], strides: list[int], start_mask: int,
    end_mask: int, squeeze_mask: int,
) -> Tensor:  # fmt: skip
    made = torch.zeros(_numbers(shape), dtype=gradient.dtype, device=gradient.device)
    made[_slices(made, starts, ends, strides, start_mask, end_mask)] = gradient
    return made


@implements("sliceGradientTensor:fwdInShapeTensor:starts:ends:strides")
def plain_slice_gradient(
    gradient: Tensor, shape: Tensor, starts: list[int], ends: list[int], strides: list[int]
) -> Tensor:
    return slice_gradient(gradient, shape, starts, ends, strides, 0, 0, 0)


@implements("sliceUpdateDataTensor:updateTensor:starts:ends:strides")
def slice_update(data: Tensor, update: Tensor, starts: list[int], ends: list[int], strides: list[int]) -> Tensor:
    made = data.clone()
    made[_slices(made, starts, ends, strides)] = update
    return made


@implements("concatTensor:withTensor:dimension", moves=True)
def concat(x: Tensor, other: Tensor, dimension: int) -> Tensor:
    return torch.cat((x, other), dimension)


@implements("concatTensors:dimension", moves=True)
def concat_all(tensors: list[Tensor], dimension: int) -> Tensor:
    return torch.cat(tensors, dimension)


@implements("concatTensors:dimension:interleave", moves=True)
def concat_interleaved(tensors: list[Tensor], dimension: int, interleave: bool) -> Tensor:
    """Interleaved, one slice of each tensor follows another."""
    if not interleave:
        return torch.cat(tensors, dimension)
    at = dimension % tensors[0].ndim
    return torch.stack(tensors, at + 1).flatten(at, at + 1)


@implements("stackTensors:axis", moves=True)
def stack(tensors: list[Tensor], axis: int) -> Tensor:
    return torch.stack(tensors, axis)


@implements("splitTensor:numSplits:axis")
def split(x: Tensor, count: int, axis: int) -> list[Tensor]:
    return list(torch.chunk(x, count, axis))


@implements("splitTensor:splitSizes:axis")
def split_sizes(x: Tensor, sizes: list[int], axis: int) -> list[Tensor]:
    return list(torch.split(x, sizes, axis))


@implements("tileTensor:withMultiplier", moves=True)
def tile(x: Tensor, multiplier: list[int]) -> Tensor:
    return x.tile(multiplier)


@implements("tileGradientWithIncomingGradientTensor:sourceTensor:withMultiplier")
def tile_gradient(gradient: Tensor, source: Tensor, multiplier: list[int]) -> Tensor:
    return compute_gradient(lambda x: tile(x, multiplier), source, gradient)


@implements("broadcastTensor:toShape", "broadcastTensor:toShapeTensor", moves=True)
def broadcast(x: Tensor, shape: Sequence[int] | Tensor) -> Tensor:
    return x.broadcast_to(_numbers(shape))


@implements("reverseTensor", "reverseTensor:axes")
def reverse(x: Tensor, axes: list[int] | None = None) -> Tensor:
    return x.flip(list(range(x.ndim)) if axes is None else axes)


@implements("squeezeTensor:axes", "squeezeTensor:axis", moves=True)
def squeeze(x: Tensor, axes: list[int] | int) -> Tensor:
    return x.squeeze(tuple(axes) if isinstance(axes, list) else axes)


@implements("squeezeTensor")
def squeeze_all(x: Tensor) -> Tensor:
    return x.squeeze()


@implements("expandDimsOfTensor:axis", moves=True)
def expand_dimension(x: Tensor, axis: int) -> Tensor:
    return x.unsqueeze(axis)


@implements("expandDimsOfTensor:axes", moves=True)
def expand_dimensions(x: Tensor, axes: list[int]) -> Tensor:
    rank = x.ndim + len(axes)
    for axis in sorted(a % rank for a in axes):
        x = x.unsqueeze(axis)
    return x


@implements("flatten2DTensor:axis", moves=True)
def flatten(x: Tensor, axis: int) -> Tensor:
    """Two dimensions: those before the axis, and the rest."""
    return x.reshape(int(torch.Size(x.shape[:axis]).numel()), -1) if axis else x.reshape(1, -1)


@implements("shapeOfTensor")
def shape_of(x: Tensor) -> Tensor:
    return torch.tensor(list(x.shape), dtype=torch.int32)


@implements("coordinateAlongAxis:withShape")
def coordinate(axis: int, shape: list[int]) -> Tensor:
    sizes = [1] * len(shape)
    sizes[axis] = shape[axis]
    return torch.arange(shape[axis], dtype=torch.int32).reshape(sizes).broadcast_to(shape)


@implements("coordinateAlongAxis:withShapeTensor", "coordinateAlongAxisTensor:withShapeTensor")
def coordinate_tensor(axis: int | Tensor, shape: Tensor) -> Tensor:
    return coordinate(int(axis), _numbers(shape))


@implements("bandPartWithTensor:numLower:numUpper")
def band_part(x: Tensor, lower: int, upper: int) -> Tensor:
    result = x if upper < 0 else torch.tril(x, upper)
    return result if lower < 0 else torch.triu(result, -lower)


@implements("bandPartWithTensor:numLowerTensor:numUpperTensor")
def band_part_tensor(x: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
    return x if x.device.type == "meta" else band_part(x, int(lower), int(upper))


@implements("depthToSpace2DTensor:widthAxis:heightAxis:depthAxis:blockSize:usePixelShuffleOrder")
def depth_to_space(x: Tensor, width: int, height: int, depth: int, block: int, shuffled: bool) -> Tensor:
    """Blocks of pixels out of the channels; in pixel-shuffle order a channel's pixels are neighbors in the depth."""
    moved = x.movedim((depth, height, width), (-3, -2, -1))
    channels, rows, columns = moved.shape[-3] // block**2, *moved.shape[-2:]
    parts = (channels, block, block) if shuffled else (block, block, channels)
    split_up = moved.reshape(*moved.shape[:-3], *parts, rows, columns)
    ordered = split_up if shuffled else split_up.movedim(-3, -5)
    made = ordered.movedim((-4, -3), (-3, -1))
    return made.reshape(*moved.shape[:-3], channels, rows * block, columns * block).movedim(
        (-3, -2, -1), (depth, height, width)
    )


@implements("spaceToDepth2DTensor:widthAxis:heightAxis:depthAxis:blockSize:usePixelShuffleOrder")
def space_to_depth(x: Tensor, width: int, height: int, depth: int, block: int, shuffled: bool) -> Tensor:
    """The inverse of `depth_to_space`."""
    moved = x.movedim((depth, height, width), (-3, -2, -1))
    channels, rows, columns = moved.shape[-3], moved.shape[-2] // block, moved.shape[-1] // block
    split_up = moved.reshape(*moved.shape[:-3], channels, rows, block, columns, block)
    ordered = split_up.movedim((-3, -1), (-4, -3))
    made = ordered if shuffled else ordered.movedim(-5, -3)
    return made.reshape(*moved.shape[:-3], channels * block**2, rows, columns).movedim(
        (-3, -2, -1), (depth, height, width)
    )
