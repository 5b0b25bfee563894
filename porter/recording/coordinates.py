"""Finds the coordinate map of an operator: the one that computes the results of all recorded calls."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import product

import torch

from porter.core import dtypes
from porter.core.dtypes import BFLOAT, HALF, INT, LONG
from porter.loops.coordinates import INDEXED, CoordinateMap, Rule, Way
from porter.loops.fit import MIN_CALLS
from porter.recording.calls import OpCall
from porter.recording.record import RecordedRun, run_call

_TOLERANCES = {HALF: 2e-3, BFLOAT: 2e-2}
_LISTED = (Rule.REVERSED, Rule.PADDED, Rule.CLAMPED, Rule.REFLECTED)
_PADS = (Rule.CLAMPED, Rule.REFLECTED)  # whose gradients are sums
_COMBINED = {"add": "sum", "multiply": "prod"}  # what arguments say, and torch's reductions
_VARIED = 4  # calls
Coordinates = list[torch.Tensor]


def find_map(runs: Sequence[RecordedRun], run: Callable[[OpCall], RecordedRun] = run_call) -> CoordinateMap | None:
    """The first map that computes the result of every call; None if none does, or for few calls.

    Some calls are `run` again, with another way to combine elements.
    """
    runs = [*runs, *map(run, _combine_otherwise(runs))]
    if len(runs) < MIN_CALLS or any(len(each.results) != 1 for each in runs):
        return None
    ordered = sorted(runs, key=lambda each: each.results[0].numel())
    fitting = (each for each in _list_candidates(ordered) if all(_agrees(each, ran) for ran in ordered))
    found = next(fitting, None)
    if found is None:
        return None
    if found.rule is Rule.BIN:
        runs = [*runs, *_convert(runs, found, run)]
    types = dict.fromkeys(_dtype(each.results[0]) for each in runs)
    of_index: tuple[dtypes.DType, ...] = (INT, LONG) if found.index else ()  # ATen takes both, samples have but one
    if found.rule is Rule.BIN:
        of_index = tuple(dict.fromkeys(_dtype(each.given[found.index]) for each in runs))
    found = replace(found, dtypes=tuple(types), index_dtypes=of_index, wraps=_wraps(found, runs))
    return _read_ignored(found, runs)


def _read_ignored(found: CoordinateMap, runs: Sequence[RecordedRun]) -> CoordinateMap:
    """The map with what the CPU does by a number and a flag that the old code ignores: skips an index, averages."""
    if found.rule is not Rule.ROW:
        return found
    run = max(runs, key=lambda each: each.given[found.index].numel())  # of one index there is no average
    if run.given[found.index].numel() == 0:
        return found
    index = int(run.given[found.index].flatten()[0])
    for each in run.call.overload._schema.arguments:
        if str(each.type) in ("int", "SymInt"):
            found = _pick(found, replace(found, skipped=each.name), run, each.name, index)
        elif str(each.type) == "bool":
            twice = replace(run, given={**run.given, found.index: torch.full_like(run.given[found.index], index)})
            found = _pick(found, replace(found, averaged=each.name), twice, each.name, True)
    return found


def _pick(found: CoordinateMap, other: CoordinateMap, run: RecordedRun, name: str, value: object) -> CoordinateMap:
    """The other map, if it alone computes what the CPU makes of a call with another value of an argument."""
    given = replace(run, call=run.call.with_argument(name, value))
    made = _run_on_cpu(given, run.results[0])
    return other if _computes(other, given, made) and not _computes(found, given, made) else found


def _wraps(found: CoordinateMap, runs: Sequence[RecordedRun]) -> bool:
    """Whether the CPU counts indices below zero from the end, which no sample has and MPSGraph skips."""
    indexed = (each for each in runs if found.rule in INDEXED and each.given[found.index].numel())
    run = next(indexed, None)
    if run is None:
        return False
    other = _with_dimension(run.results[0] if found.writes else run.given[found.source])
    index, size = run.given[found.index], other.shape[int(str(run.call.arguments[found.argument]))]
    below = replace(run, given={**run.given, found.index: index - size})
    none = torch.empty(0)
    usual, counted = _run_on_cpu(run, none), _run_on_cpu(below, none)
    return counted is not none and torch.allclose(usual, counted, equal_nan=True)


def _convert(
    runs: Sequence[RecordedRun], found: CoordinateMap, run: Callable[[OpCall], RecordedRun]
) -> Iterator[RecordedRun]:
    """Calls with an index, or with a source, of other types, that the map computes; a source decides the result's."""
    weighted = next((each for each in runs if found.source in each.given), runs[0])
    real = [dtype for dtype in dtypes.ALL if dtype.kind is not dtypes.Kind.COMPLEX]
    whole = [dtype for dtype in real if dtype.kind is dtypes.Kind.INTEGRAL]
    sources = product((found.source,), real) if found.source in weighted.given else ()
    for name, dtype in (*product((found.index,), whole), *sources):
        made = None
        with suppress(Exception):  # whatever the fork's checks raise
            converted = weighted.call.arguments[name].to(getattr(torch, dtype.torch))
            made = run(weighted.call.with_argument(name, converted))
        if made is not None and _name(made.results[0]) in dtypes.BY_TORCH and _agrees(found, made):
            yield made


def _combine_otherwise(runs: Sequence[RecordedRun]) -> Iterator[OpCall]:
    """Some of the calls with the other way to combine, if an argument says how to."""
    for run in runs[:_VARIED]:
        for name, value in run.call.arguments.items():
            if isinstance(value, str) and value in _COMBINED:
                other = next(each for each in _COMBINED if each != value)
                yield run.call.with_argument(name, other)


def _dtype(tensor: torch.Tensor) -> dtypes.DType:
    return dtypes.BY_TORCH[_name(tensor)]


def _name(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _list_candidates(runs: Sequence[RecordedRun]) -> Iterator[CoordinateMap]:
    """The maps that the arguments of a schema allow for, those that only read first."""
    call = runs[0].call
    types = {each.name: str(each.type) for each in call.overload._schema.arguments if not each.is_out}
    optional = [name for name, type_ in types.items() if type_ == "Optional[Tensor]"]
    tensors = [name for name in types if all(name in run.given for run in runs)]
    indices = [name for name in tensors if all(not run.given[name].is_floating_point() for run in runs)]
    lists = [name for name, type_ in types.items() if type_ == "List[int]"]
    dims = [name for name, type_ in types.items() if type_ == "int" and name == "dim"]
    numbers = [name for name, type_ in types.items() if type_ == "number"]
    texts = [name for name, type_ in types.items() if type_ == "str"]
    for source in tensors:
        yield CoordinateMap(Rule.REPEATED, Way.READ, source=source)
        for rule, argument in product(_LISTED, lists):
            value = next(iter(numbers), "") if rule is Rule.PADDED else ""
            yield CoordinateMap(rule, Way.READ, argument, source=source, value=value)
        for rule, argument in product(_PADS, lists):
            yield CoordinateMap(rule, Way.ADD, argument, source=source)
    for index, source in product(indices, tensors):
        if index != source:
            yield CoordinateMap(Rule.ROW, Way.ADD, index=index, source=source)
    for index, source in product(indices, optional):
        yield CoordinateMap(Rule.BIN, Way.ADD, index=index, source=source)
    for rule, dim, index in product((Rule.ELEMENT, Rule.POSITION), dims, indices):
        others = [name for name in tensors if name != index]
        for source in others:
            yield CoordinateMap(rule, Way.READ, dim, index, source=source)
        for way, start in product((Way.COMBINE,) if texts else (Way.PUT, Way.ADD), others):
            combine = texts[0] if way is Way.COMBINE else ""
            for source in (each for each in others if each != start):
                for factor in ("", *(numbers if way is Way.ADD else ())):
                    yield CoordinateMap(rule, way, dim, index, source, "", start, factor, combine)
            for value in numbers:
                yield CoordinateMap(rule, way, dim, index, "", value, start, "", combine)


def _agrees(candidate: CoordinateMap, run: RecordedRun) -> bool:
    """Whether a map computes the result of a call, or what the CPU computes where that is another."""
    recorded = run.results[0].detach().cpu()
    return _computes(candidate, run, recorded) or (
        recorded.dtype == torch.bool and _computes(candidate, run, _run_on_cpu(run, recorded))
    )


def _run_on_cpu(run: RecordedRun, otherwise: torch.Tensor) -> torch.Tensor:
    """What the CPU computes of the arguments of a call: MPSGraph has no booleans, and takes 0.5 for false."""
    given = {name: run.given[name].clone() for name in run.given if name in run.call.arguments}
    try:
        made = OpCall(run.call.overload, {**run.call.arguments, **given}).run()
    except (RuntimeError, NotImplementedError, IndexError):
        return otherwise
    return made if isinstance(made, torch.Tensor) else otherwise


def _computes(candidate: CoordinateMap, run: RecordedRun, recorded: torch.Tensor) -> bool:
    result = _with_dimension(recorded)
    given = {name: _with_dimension(tensor) for name, tensor in run.given.items()}
    try:
        made = _compute(candidate, given, run.call.arguments, result)
    except (RuntimeError, IndexError, TypeError, ValueError):  # the shapes or the way do not fit
        return False
    dtype = _dtype(result)
    if made.shape != result.shape:
        return False
    if dtype.kind is dtypes.Kind.BOOL:
        return torch.equal(made != 0, result)
    exact = candidate.way in (Way.READ, Way.PUT)
    tolerance = 0.0 if exact or dtype.kind is dtypes.Kind.INTEGRAL else _TOLERANCES.get(dtype, 1e-5)
    return torch.allclose(made, result.to(made.dtype), rtol=tolerance, atol=tolerance, equal_nan=True)


def _with_dimension(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor that is indexed has a dimension."""
    return tensor if tensor.ndim else tensor.reshape(1)


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    is_whole = not tensor.is_floating_point() and not tensor.is_complex()
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.int64 if is_whole else torch.float64)


def _compute(
    found: CoordinateMap, given: Mapping[str, torch.Tensor], arguments: Mapping[str, object], result: torch.Tensor
) -> torch.Tensor:
    """The result of a call by a map."""
    type_ = _wide(result[:0]).dtype
    if found.way is Way.READ:
        source = given[found.source]
        own = _grid(result.shape)
        at, inside = _move(found, own, result.shape, source.shape, given, arguments)
        value = arguments[found.value] if found.value else 0
        outside = torch.tensor(value, dtype=result.dtype).to(type_)
        return torch.where(inside, _wide(source)[tuple(at)].to(type_), outside).reshape(result.shape)
    if found.rule is Rule.BIN:
        return _add_to_bins(given.get(found.source), given[found.index], type_, result.shape)
    if found.rule is Rule.ROW:
        rows = _wide(given[found.source]).to(type_)
        if arguments.get(found.averaged) is True:
            rows = _average(rows, given[found.index])
        return _add_rows(rows, given[found.index], result.shape, arguments.get(found.skipped))
    start = given[found.start].to(type_) if found.start else torch.zeros(result.shape, dtype=type_)
    walked = _find_walked(found, given, arguments, result)
    own = _grid(walked)
    at, inside = _move(found, own, walked, result.shape, given, arguments)
    elements = _read_elements(found, given, arguments, own, walked, result.dtype).to(type_)
    if found.factor:
        elements = elements * torch.tensor(arguments[found.factor], dtype=result.dtype).to(type_)
    flat = _flatten(at, result.shape)[inside]
    made = start.reshape(-1).clone()
    if made.numel() != math.prod(result.shape):
        raise ValueError("another shape")
    _WRITERS[found.way](made, flat, elements.expand(inside.shape)[inside], arguments.get(found.combine))
    return made.reshape(result.shape)


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


def _add_to_bins(
    source: torch.Tensor | None, index: torch.Tensor, type_: torch.dtype, shape: Sequence[int]
) -> torch.Tensor:
    """The sums of the elements of each index; of ones, where there is no source."""
    if index.ndim != 1 or len(shape) != 1:
        raise ValueError("another number of dimensions")
    elements = torch.ones(index.shape, dtype=type_) if source is None else _wide(source).to(type_)
    return torch.zeros(tuple(shape), dtype=type_).index_add_(0, index.long(), elements)


def _put(made: torch.Tensor, flat: torch.Tensor, elements: torch.Tensor, _: object) -> None:
    made.index_put_((flat,), elements)


def _add(made: torch.Tensor, flat: torch.Tensor, elements: torch.Tensor, _: object) -> None:
    made.index_put_((flat,), elements, accumulate=True)


def _combine(made: torch.Tensor, flat: torch.Tensor, elements: torch.Tensor, how: object) -> None:
    if str(how) not in _COMBINED:
        raise ValueError("another way to combine elements")
    made.scatter_reduce_(0, flat, elements, _COMBINED[str(how)])


_WRITERS: Mapping[Way, Callable[[torch.Tensor, torch.Tensor, torch.Tensor, object], None]] = {
    Way.PUT: _put, Way.ADD: _add, Way.COMBINE: _combine,
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
    found: CoordinateMap, given: Mapping[str, torch.Tensor], arguments: Mapping[str, object], result: torch.Tensor
) -> tuple[int, ...]:
    """The shape of what is put or added."""
    if found.rule is Rule.ELEMENT:
        return tuple(given[found.index].shape)
    if found.rule is Rule.POSITION:
        shape = list(result.shape)
        if shape:
            shape[int(str(arguments[found.argument]))] = given[found.index].numel()
        return tuple(shape)
    return tuple(given[found.source].shape)


def _read_elements(
    found: CoordinateMap,
    given: Mapping[str, torch.Tensor],
    arguments: Mapping[str, object],
    own: Coordinates,
    walked: Sequence[int],
    dtype: torch.dtype,
) -> torch.Tensor:
    """What is put or added, in the shape that is walked or in one that is expanded to it."""
    if not found.source:
        return _wide(torch.tensor(arguments[found.value], dtype=dtype))
    source = _wide(given[found.source])
    return source[tuple(own)] if found.rule is Rule.ELEMENT else source.expand(tuple(walked))


def _move(
    found: CoordinateMap,
    own: Coordinates,
    walked: Sequence[int],
    shape: Sequence[int],
    given: Mapping[str, torch.Tensor],
    arguments: Mapping[str, object],
) -> tuple[Coordinates, torch.Tensor]:
    """The coordinates in a tensor of another shape, and which of them are inside; others are any."""
    at = own[len(own) - len(shape) :] if found.rule is Rule.REPEATED else list(own)
    if len(at) != len(shape):
        raise ValueError("another number of dimensions")
    if found.rule is Rule.REPEATED:
        at = [each % size for each, size in zip(at, shape, strict=True)]
    elif found.rule in INDEXED:
        dim, index = int(str(arguments[found.argument])), given[found.index].long()
        if at:
            at[dim] = index[tuple(own)] if found.rule is Rule.ELEMENT else index.reshape(-1)[own[dim]]
    else:
        at = _by_list(found.rule, at, shape, arguments[found.argument])
    inside = torch.ones(tuple(walked), dtype=torch.bool)
    for each, size in zip(at, shape, strict=True):
        inside &= (each >= 0) & (each < size)
    return [each.clamp(0, size - 1) for each, size in zip(at, shape, strict=True)], inside


def _by_list(rule: Rule, at: Coordinates, shape: Sequence[int], given: object) -> Coordinates:
    """The coordinates by a list of dimensions, or of pads, which begins with the last dimension."""
    if not isinstance(given, (list, tuple)):
        raise TypeError("no list")
    rank = len(shape)
    if rule is Rule.REVERSED:
        named = {dim % rank for dim in given}
        return [shape[d] - 1 - each if d in named else each for d, each in enumerate(at)]
    left = [0] * rank
    for i in range(len(given) // 2):
        left[rank - 1 - i] = given[2 * i]
    moved = [each - before for each, before in zip(at, left, strict=True)]
    if rule is Rule.CLAMPED:
        return [each.clamp(0, size - 1) for each, size in zip(moved, shape, strict=True)]
    if rule is Rule.REFLECTED:
        return [size - 1 - (size - 1 - each.abs()).abs() for each, size in zip(moved, shape, strict=True)]
    return moved
