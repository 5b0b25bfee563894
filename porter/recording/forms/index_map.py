"""Finds the index map of an operator, or its sums by an index: what computes the results of all recorded calls."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import product

import torch

from porter.core import dtypes
from porter.core.dtypes import INT, LONG, DType, Kind
from porter.metal.forms.index_map import INDEXED, AccessMode, IndexMap, IndexRule
from porter.metal.forms.sums import Bincount
from porter.recording.calls import OpCall, find_dtype
from porter.recording.forms.agreement import (
    agrees_or_as_cpu,
    find_first,
    is_near,
    read_dtypes,
    read_types,
    run_on_cpu,
    tell_form,
    widen,
)
from porter.recording.runs import RecordedRun, run_call

_LISTED = (IndexRule.REVERSED, IndexRule.PADDED, IndexRule.CLAMPED, IndexRule.REFLECTED)
_PADS = (IndexRule.CLAMPED, IndexRule.REFLECTED)  # whose gradients are sums
_COMBINED = {"add": "sum", "multiply": "prod"}  # what arguments say, and torch's reductions
_VARIED = 4  # calls
Coordinates = list[torch.Tensor]


def find_index_map(runs: Sequence[RecordedRun], run: Callable[[OpCall], RecordedRun] = run_call) -> IndexMap | None:
    """The first map that computes the result of every call; None if none does, or for few calls.

    Some calls are `run` again, with another way to combine elements.
    """
    runs = [*runs, *map(run, _combine_otherwise(runs))]
    if not tell_form(runs):
        return None
    form = find_first(_list_candidates(runs), runs, _agrees)
    if form is None:
        return None
    of_index: tuple[DType, ...] = (INT, LONG) if form.index else ()  # ATen takes both, samples have but one
    return _read_ignored(replace(form, index_dtypes=of_index, wraps=_wraps(form, runs)), runs)


def _read_ignored(form: IndexMap, runs: Sequence[RecordedRun]) -> IndexMap:
    """The map with what the CPU does by a number and a flag that the old code ignores: skips an index, averages."""
    if form.rule is not IndexRule.ROW:
        return form
    run = max(runs, key=lambda each: each.given[form.index].numel())  # of one index there is no average
    if run.given[form.index].numel() == 0:
        return form
    index = int(run.given[form.index].flatten()[0])
    for name, type_ in read_types(run.call).items():
        if type_ in ("int", "SymInt"):
            form = _pick(form, replace(form, skipped=name), run, name, index)
        elif type_ == "bool":
            twice = replace(run, given={**run.given, form.index: torch.full_like(run.given[form.index], index)})
            form = _pick(form, replace(form, averaged=name), twice, name, True)
    return form


def _pick(form: IndexMap, other: IndexMap, run: RecordedRun, name: str, value: object) -> IndexMap:
    """The other map, if it alone computes what the CPU makes of a call with another value of an argument."""
    changed = replace(run, call=run.call.with_arguments({name: value}))
    result = run_on_cpu(changed, run.results[0])
    return other if _computes(other, changed, result) and not _computes(form, changed, result) else form


def _wraps(form: IndexMap, runs: Sequence[RecordedRun]) -> bool:
    """Whether the CPU counts indices below zero from the end, which no sample has and MPSGraph skips."""
    indexed = (each for each in runs if form.rule in INDEXED and each.given[form.index].numel())
    run = next(indexed, None)
    if run is None:
        return False
    other = _with_dimension(run.results[0] if form.writes else run.given[form.source])
    index, size = run.given[form.index], other.shape[int(str(run.call.arguments[form.argument]))]
    below = replace(run, given={**run.given, form.index: index - size})
    none = torch.empty(0)
    usual, counted = run_on_cpu(run, none), run_on_cpu(below, none)
    return counted is not none and torch.allclose(usual, counted, equal_nan=True)


def _combine_otherwise(runs: Sequence[RecordedRun]) -> Iterator[OpCall]:
    """Some of the calls with the other way to combine, if an argument says how to."""
    for run in runs[:_VARIED]:
        for name, value in run.call.arguments.items():
            if isinstance(value, str) and value in _COMBINED:
                other = next(each for each in _COMBINED if each != value)
                yield run.call.with_arguments({name: other})


def _list_candidates(runs: Sequence[RecordedRun]) -> Iterator[IndexMap]:
    """The maps that the arguments of a schema allow for, those that only read first."""
    call = runs[0].call
    types = read_types(call)
    tensors = [name for name in types if all(name in run.given for run in runs)]
    indices = [name for name in tensors if all(not run.given[name].is_floating_point() for run in runs)]
    lists = [name for name, type_ in types.items() if type_ == "List[int]"]
    dims = [name for name, type_ in types.items() if type_ == "int" and name == "dim"]
    numbers = [name for name, type_ in types.items() if type_ == "number"]
    texts = [name for name, type_ in types.items() if type_ == "str"]
    for source in tensors:
        yield IndexMap(IndexRule.REPEATED, AccessMode.READ, source=source)
        for rule, argument in product(_LISTED, lists):
            value = next(iter(numbers), "") if rule is IndexRule.PADDED else ""
            yield IndexMap(rule, AccessMode.READ, argument, source=source, value=value)
        for rule, argument in product(_PADS, lists):
            yield IndexMap(rule, AccessMode.ADD, argument, source=source)
    for index, source in product(indices, tensors):
        if index != source:
            yield IndexMap(IndexRule.ROW, AccessMode.ADD, index=index, source=source)
    for rule, dim, index in product((IndexRule.ELEMENT, IndexRule.POSITION), dims, indices):
        others = [name for name in tensors if name != index]
        for source in others:
            yield IndexMap(rule, AccessMode.READ, dim, index, source=source)
        for way, start in product((AccessMode.COMBINE,) if texts else (AccessMode.PUT, AccessMode.ADD), others):
            combine = texts[0] if way is AccessMode.COMBINE else ""
            for source in (each for each in others if each != start):
                for factor in ("", *(numbers if way is AccessMode.ADD else ())):
                    yield IndexMap(rule, way, dim, index, source, "", start, factor, combine)
            for value in numbers:
                yield IndexMap(rule, way, dim, index, "", value, start, "", combine)


def _agrees(candidate: IndexMap, run: RecordedRun) -> bool:
    """Whether a map computes the result of a call, or what the CPU computes where that is another."""
    return agrees_or_as_cpu(run, lambda result: _computes(candidate, run, result))


def _computes(candidate: IndexMap, run: RecordedRun, recorded: torch.Tensor) -> bool:
    result = _with_dimension(recorded)
    tensors = {name: _with_dimension(tensor) for name, tensor in run.given.items()}
    try:
        computed = _compute(candidate, tensors, run.call.arguments, result)
    except (RuntimeError, IndexError, TypeError, ValueError):  # the shapes or the way do not fit
        return False
    return is_near(computed, result, is_exact=candidate.mode in (AccessMode.READ, AccessMode.PUT))


def _with_dimension(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor that is indexed has a dimension."""
    return tensor if tensor.ndim else tensor.reshape(1)


def _compute(
    form: IndexMap, tensors: Mapping[str, torch.Tensor], arguments: Mapping[str, object], result: torch.Tensor
) -> torch.Tensor:
    """The result of a call by a map."""
    type_ = widen(result[:0]).dtype
    if form.mode is AccessMode.READ:
        source = tensors[form.source]
        coordinates = _grid(result.shape)
        at, inside = _move(form, coordinates, result.shape, source.shape, tensors, arguments)
        value = arguments[form.value] if form.value else 0
        outside = torch.tensor(value, dtype=result.dtype).to(type_)
        return torch.where(inside, widen(source)[tuple(at)].to(type_), outside).reshape(result.shape)
    if form.rule is IndexRule.ROW:
        rows = widen(tensors[form.source]).to(type_)
        if arguments.get(form.averaged) is True:
            rows = _average(rows, tensors[form.index])
        return _add_rows(rows, tensors[form.index], result.shape, arguments.get(form.skipped))
    start = tensors[form.start].to(type_) if form.start else torch.zeros(result.shape, dtype=type_)
    walked = _find_walked(form, tensors, arguments, result)
    coordinates = _grid(walked)
    at, inside = _move(form, coordinates, walked, result.shape, tensors, arguments)
    elements = _read_elements(form, tensors, arguments, coordinates, walked, result.dtype).to(type_)
    if form.factor:
        elements = elements * torch.tensor(arguments[form.factor], dtype=result.dtype).to(type_)
    flat = _flatten(at, result.shape)[inside]
    computed = start.reshape(-1).clone()
    if computed.numel() != math.prod(result.shape):
        raise ValueError("another shape")
    _WRITERS[form.mode](computed, flat, elements.expand(inside.shape)[inside], arguments.get(form.combine))
    return computed.reshape(result.shape)


def _add_rows(source: torch.Tensor, index: torch.Tensor, shape: Sequence[int], skipped: object) -> torch.Tensor:
    """The sums of the rows of each index but one."""
    rows, index = source.reshape(index.numel(), *shape[1:]), index.reshape(-1)
    inside = (index >= 0) & (index < shape[0])
    if isinstance(skipped, int):
        inside &= index != skipped
    return torch.zeros(tuple(shape), dtype=source.dtype).index_add_(0, index[inside], rows[inside])


def _average(source: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """The rows, each divided by how many have its index."""
    _, at, counts = index.unique(return_inverse=True, return_counts=True)
    shared: torch.Tensor = counts[at]
    return source / shared.reshape([*index.shape, *[1] * (source.ndim - index.ndim)])


def _put(computed: torch.Tensor, flat: torch.Tensor, elements: torch.Tensor, _: object) -> None:
    computed.index_put_((flat,), elements)


def _add(computed: torch.Tensor, flat: torch.Tensor, elements: torch.Tensor, _: object) -> None:
    computed.index_put_((flat,), elements, accumulate=True)


def _combine(computed: torch.Tensor, flat: torch.Tensor, elements: torch.Tensor, how: object) -> None:
    if str(how) not in _COMBINED:
        raise ValueError("another way to combine elements")
    computed.scatter_reduce_(0, flat, elements, _COMBINED[str(how)])


_WRITERS: Mapping[AccessMode, Callable[[torch.Tensor, torch.Tensor, torch.Tensor, object], None]] = {
    AccessMode.PUT: _put, AccessMode.ADD: _add, AccessMode.COMBINE: _combine,
}  # fmt: skip


def _grid(shape: Sequence[int]) -> Coordinates:
    """The coordinates of all elements of a shape, one tensor of that shape for each dimension."""
    return list(torch.meshgrid(*map(torch.arange, shape), indexing="ij")) if shape else []


def _flatten(at: Coordinates, shape: Sequence[int]) -> torch.Tensor:
    flat = torch.zeros(at[0].shape if at else (), dtype=torch.int64)
    for coordinate, size in zip(at, shape, strict=True):
        flat = flat * size + coordinate
    return flat


def _find_walked(
    form: IndexMap, tensors: Mapping[str, torch.Tensor], arguments: Mapping[str, object], result: torch.Tensor
) -> tuple[int, ...]:
    """The shape of what is put or added."""
    if form.rule is IndexRule.ELEMENT:
        return tuple(tensors[form.index].shape)
    if form.rule is IndexRule.POSITION:
        shape = list(result.shape)
        if shape:
            shape[int(str(arguments[form.argument]))] = tensors[form.index].numel()
        return tuple(shape)
    return tuple(tensors[form.source].shape)


def _read_elements(
    form: IndexMap,
    tensors: Mapping[str, torch.Tensor],
    arguments: Mapping[str, object],
    coordinates: Coordinates,
    walked: Sequence[int],
    dtype: torch.dtype,
) -> torch.Tensor:
    """What is put or added, in the shape that is walked or in one that is expanded to it."""
    if not form.source:
        return widen(torch.tensor(arguments[form.value], dtype=dtype))
    source = widen(tensors[form.source])
    return source[tuple(coordinates)] if form.rule is IndexRule.ELEMENT else source.expand(tuple(walked))


def _move(
    form: IndexMap,
    coordinates: Coordinates,
    walked: Sequence[int],
    shape: Sequence[int],
    tensors: Mapping[str, torch.Tensor],
    arguments: Mapping[str, object],
) -> tuple[Coordinates, torch.Tensor]:
    """The coordinates in a tensor of another shape, and which of them are inside; others are any."""
    at = coordinates[len(coordinates) - len(shape) :] if form.rule is IndexRule.REPEATED else list(coordinates)
    if len(at) != len(shape):
        raise ValueError("another number of dimensions")
    if form.rule is IndexRule.REPEATED:
        at = [each % size for each, size in zip(at, shape, strict=True)]
    elif form.rule in INDEXED:
        dim, index = int(str(arguments[form.argument])), tensors[form.index].long()
        if at:
            at[dim] = (
                index[tuple(coordinates)] if form.rule is IndexRule.ELEMENT else index.reshape(-1)[coordinates[dim]]
            )
    else:
        at = _by_list(form.rule, at, shape, arguments[form.argument])
    inside = torch.ones(tuple(walked), dtype=torch.bool)
    for coordinate, size in zip(at, shape, strict=True):
        inside &= (coordinate >= 0) & (coordinate < size)
    return [each.clamp(0, size - 1) for each, size in zip(at, shape, strict=True)], inside


def _by_list(rule: IndexRule, at: Coordinates, shape: Sequence[int], listed: object) -> Coordinates:
    """The coordinates by a list of dimensions, or of pads, which begins with the last dimension."""
    if not isinstance(listed, (list, tuple)):
        raise TypeError("no list")
    rank = len(shape)
    if rule is IndexRule.REVERSED:
        named = {dim % rank for dim in listed}
        return [shape[d] - 1 - each if d in named else each for d, each in enumerate(at)]
    padding = [0] * rank
    for i in range(len(listed) // 2):
        padding[rank - 1 - i] = listed[2 * i]
    moved = [each - before for each, before in zip(at, padding, strict=True)]
    if rule is IndexRule.CLAMPED:
        return [each.clamp(0, size - 1) for each, size in zip(moved, shape, strict=True)]
    if rule is IndexRule.REFLECTED:
        return [size - 1 - (size - 1 - each.abs()).abs() for each, size in zip(moved, shape, strict=True)]
    return moved


def find_bincount(runs: Sequence[RecordedRun], run: Callable[[OpCall], RecordedRun] = run_call) -> Bincount | None:
    """The index and the source whose sums are the result of every call; None if there are none, or for few calls.

    A call is `run` again with operands of other types: the source decides the type of the result.
    """
    if not tell_form(runs):
        return None
    form = find_first(_list_bincounts(runs), runs, _agrees_as_bincount)
    if form is None:
        return None
    runs = [*runs, *_convert(runs, form, run)]
    of_index = read_dtypes(run.given[form.index] for run in runs)
    return replace(form, dtypes=read_dtypes(run.results[0] for run in runs), index_dtypes=of_index)


def _list_bincounts(runs: Sequence[RecordedRun]) -> Iterator[Bincount]:
    """Whole tensors that all calls have, and those that calls may leave out."""
    types = read_types(runs[0].call)
    tensors = [name for name in types if all(name in run.given for run in runs)]
    whole = [name for name in tensors if all(not run.given[name].is_floating_point() for run in runs)]
    optional = [name for name, type_ in types.items() if type_ == "Optional[Tensor]"]
    yield from (Bincount(*pair) for pair in product(whole, optional))


def _convert(
    runs: Sequence[RecordedRun], form: Bincount, run: Callable[[OpCall], RecordedRun]
) -> Iterator[RecordedRun]:
    """Calls with an index, or with a source, of other types, whose results are such sums too."""
    weighted = next((each for each in runs if form.source in each.given), runs[0])
    real = [dtype for dtype in dtypes.ALL if dtype.kind is not Kind.COMPLEX]
    whole = [dtype for dtype in real if dtype.kind is Kind.INTEGRAL]
    sources = product((form.source,), real) if form.source in weighted.given else ()
    for name, dtype in (*product((form.index,), whole), *sources):
        converted = None
        with suppress(Exception):  # whatever the fork's checks raise
            operand = weighted.call.arguments[name].to(getattr(torch, dtype.torch))
            converted = run(weighted.call.with_arguments({name: operand}))
        if converted is not None and find_dtype(converted.results[0].dtype) and _agrees_as_bincount(form, converted):
            yield converted


def _agrees_as_bincount(candidate: Bincount, run: RecordedRun) -> bool:
    return agrees_or_as_cpu(run, lambda result: _computes_bincount(candidate, run, result))


def _computes_bincount(candidate: Bincount, run: RecordedRun, result: torch.Tensor) -> bool:
    source, index = run.given.get(candidate.source), run.given[candidate.index]
    if index.ndim != 1 or result.ndim != 1:
        return False
    type_ = widen(result[:0]).dtype
    elements = torch.ones(index.shape, dtype=type_) if source is None else widen(source).to(type_)
    try:
        sums = torch.zeros(result.shape, dtype=type_).index_add_(0, index.long(), elements)
    except (RuntimeError, IndexError):  # the shapes do not fit, or an index is outside
        return False
    return is_near(sums, result, is_exact=False)
